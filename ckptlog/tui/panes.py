"""What the app is made of: its panes, and the state that all of its parts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from textual.app import App, ComposeResult
from textual.containers import Container, Vertical
from textual.widgets import ContentSwitcher, Footer, Static

from ckptlog import __version__
from ckptlog.records import SCHEMA, Report, Summary, Tool
from ckptlog.report.digest import Numbered
from ckptlog.tui.book import Book, TurnId
from ckptlog.tui.checkpoint_table import CheckpointTable
from ckptlog.tui.evidence import EvidenceList
from ckptlog.tui.glyphs import ASCII, UNICODE, Glyphs
from ckptlog.tui.inks import InkWell
from ckptlog.tui.loading import Progress
from ckptlog.tui.map import TimelineMap
from ckptlog.tui.mismatch import MismatchPane
from ckptlog.tui.raw_log import RawLog
from ckptlog.tui.turn_list import TurnList
from ckptlog.tui.widgets import Prompt, TabBar, TextPane

if TYPE_CHECKING:
    from ckptlog.intake.sources import Source
    from ckptlog.query.compile import CompiledFilter
    from ckptlog.replay.whatif import WhatIfTurn
    from ckptlog.tui.timeline import Timeline
    from ckptlog.tui.whatif import WhatIfPane

TABS = ("finding", "evidence", "mismatch", "checkpoints", "log")
#: the panel that has no tab: a key opens it in the place of one
WHAT_IF = "what-if"


class Panes(App[None]):
    """The app's widgets, the book they show, and which of its turns is selected."""

    def __init__(self, paths: Sequence[str], *, follow: bool = False, ascii_only: bool = False) -> None:
        super().__init__()
        self.paths = list(paths)
        self.glyphs: Glyphs = ASCII if ascii_only else UNICODE
        self.book = Book(Report(SCHEMA, Tool("ckptlog", __version__), [], [], [], [], Summary()))
        self.progress = Progress("reading", 0, None, 0.0)
        self.follow = follow
        self.selected: TurnId | None = None
        self._sources: tuple[Source, ...] = ()
        #: the user has chosen a turn; the app no longer moves to the worst one by itself
        self._touched = False
        self._sticks = follow
        #: which of several logs that grow was written to last
        self._newest_source: int | None = None
        #: what the what-if panel works on: the report, the timeline (null: none), whether that is still read
        self._replay: tuple[Report, Timeline | None, bool] = (self.book.report, None, True)
        #: the turns that the map's what-if marks were made of
        self._imagined: Sequence[WhatIfTurn] = ()
        self._filter: CompiledFilter | None = None
        #: the prompt is open: keys are letters
        self._asking = False
        self._news = ""

    def compose(self) -> ComposeResult:
        yield InkWell()
        yield Static(id="top", markup=False)
        with Container(id="panes"):
            yield TurnList(self.glyphs, id="turns")
            yield TimelineMap(self.glyphs, id="map")
            with Vertical(id="details"):
                yield TabBar(TABS, id="tab-bar")
                with ContentSwitcher(id="tabs", initial="finding"):
                    yield TextPane(id="finding")
                    yield EvidenceList(self.glyphs, id="evidence")
                    yield MismatchPane(self.glyphs, id="mismatch")
                    yield CheckpointTable(self.glyphs, id="checkpoints")
                    yield RawLog(self.glyphs, id="log")
        yield Prompt(id="prompt")
        yield Static(id="status", markup=False)
        yield Footer(show_command_palette=False, compact=True)

    @property
    def turn_list(self) -> TurnList:
        return self.screen_stack[0].query_one("#turns", TurnList)

    @property
    def map(self) -> TimelineMap:
        return self.screen_stack[0].query_one("#map", TimelineMap)

    @property
    def raw_log(self) -> RawLog:
        return self.screen_stack[0].query_one("#log", RawLog)

    @property
    def what_if(self) -> WhatIfPane:
        """The what-if panel, once it was opened."""
        return cast("WhatIfPane", self.screen_stack[0].query_one(f"#{WHAT_IF}"))

    @property
    def prompt(self) -> Prompt:
        return self.screen_stack[0].query_one("#prompt", Prompt)

    @property
    def tab(self) -> str:
        return self.screen_stack[0].query_one("#tabs", ContentSwitcher).current or TABS[0]

    @property
    def item(self) -> Numbered | None:
        """The selected turn."""
        return self.book.find(self.selected) if self.selected else None

    def _say(self, text: str, severity: str = "information") -> None:
        self.notify(
            self.glyphs.text(text),
            severity="warning"
            if severity == "warning"
            else "error"
            if severity == "error"
            else "information",
            timeout=4,
            markup=False,
        )
