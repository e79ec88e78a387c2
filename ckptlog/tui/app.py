"""The app: panes, keys, filters, and the pictures that the loader sends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Footer, Static

from ckptlog import __version__
from ckptlog.errors import CkptlogError, ExitCode, NothingToJudge
from ckptlog.records import SCHEMA, Report, Summary, Tool
from ckptlog.report.digest import Numbered
from ckptlog.report.safe import safe_text
from ckptlog.report.words import label, plural
from ckptlog.tui.book import Book, TurnId, id_of
from ckptlog.tui.checkpoint_table import CheckpointTable
from ckptlog.tui.commands import TimelineCommands
from ckptlog.tui.evidence import EvidenceList
from ckptlog.tui.export import as_markdown, as_text, exported, write_new
from ckptlog.tui.finding import finding_content
from ckptlog.tui.glyphs import ASCII, UNICODE, Glyphs
from ckptlog.tui.inks import Inked, InkWell
from ckptlog.tui.keys import bindings
from ckptlog.tui.lanes import LaneKey
from ckptlog.tui.loading import Loader, Picture, Progress
from ckptlog.tui.map import TimelineMap
from ckptlog.tui.mismatch import MismatchPane
from ckptlog.tui.overview import column_words, help_content, progress_words, top_line
from ckptlog.tui.raw_log import RawLog
from ckptlog.tui.rows import RowList
from ckptlog.tui.turn_list import TurnList
from ckptlog.tui.widgets import Prompt, Sheet, TabBar, TextPane, ascii_scrollbars, fitting

if TYPE_CHECKING:
    from ckptlog.intake.sources import Source
    from ckptlog.query.compile import CompiledFilter
    from ckptlog.tui.piped import PipedLog

TABS = ("finding", "evidence", "mismatch", "checkpoints", "log")

_LABELS = {"search": "search", "filter": "filter", "goto": "go to", "export": "export to"}
_HINTS = {
    "search": "text or regular expression, in the whole log; n and N go on",
    "filter": "such as: failed and n_lost > 1k    (empty: all turns)",
    "goto": "2011 a line, t881 a task, #40 a turn",
    "export": "the turns shown, as .md, .json or .txt; the screen as .svg",
}


class PictureTaken(Message):
    """The loader has a new picture of the log."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        super().__init__()


class Progressed(Message):
    """The loader tells how far it is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        super().__init__()


class TimelineApp(App[None]):
    """``ckptlog tui``: walk through a log's turns and see why.

    ``failure`` is the error that ended it, if one did: the caller tells it once the terminal is
    restored.
    """

    CSS_PATH = Path(__file__).with_name("style.tcss")
    TITLE = "ckptlog"
    COMMANDS = App.COMMANDS | {TimelineCommands}
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it so
        (0, "-narrow"), (78, "-normal"), (126, "-wide"), (170, "-huge"),
    ]  # fmt: skip
    VERTICAL_BREAKPOINTS = [(0, "-short"), (40, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(),
        Binding("escape", "escape", "back", show=False),
        Binding("ctrl+c", "interrupt", "quit", show=False),
    ]

    def __init__(
        self,
        paths: Sequence[str],
        *,
        follow: bool = False,
        ascii_only: bool = False,
        piped: PipedLog | None = None,
    ) -> None:
        super().__init__()
        self.paths = list(paths)
        self.glyphs: Glyphs = ASCII if ascii_only else UNICODE
        self.failure: CkptlogError | None = None
        self.book = Book(Report(SCHEMA, Tool("ckptlog", __version__), [], [], [], [], Summary()))
        self.progress = Progress("reading", 0, None, 0.0)
        self.follow = follow
        self.selected: TurnId | None = None
        self._sources: tuple[Source, ...] = ()
        #: the user has chosen a turn; the app no longer moves to the worst one by itself
        self._touched = False
        self._sticks = follow
        self._filter: CompiledFilter | None = None
        #: the prompt is open: keys are letters
        self._asking = False
        self._news = ""
        #: what a followed log held at the beginning is read: what fails from now on is news
        self._caught_up = False
        self._loader = Loader(
            self.paths,
            follow=follow,
            piped=piped,
            on_picture=lambda picture: self._tell(PictureTaken(picture)),
            on_progress=lambda progress: self._tell(Progressed(progress)),
        )

    def _tell(self, message: Message) -> None:
        """From the loader's thread; after the end there is nobody to tell."""
        self.post_message(message)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that lead nowhere at the moment are not in the footer."""
        if self._asking:
            return action in ("leave", "interrupt", "escape", "show_tab", "copy_flags")
        if action == "next_failed":
            return bool(self.book.failed)
        if action == "step_scope":
            return len(self.book.lanes) > 1
        return True

    # -- layout

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
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if self.glyphs.ascii:
            self.add_class("-ascii")
            self.screen.add_class("-ascii")
            ascii_scrollbars(self.screen)
        self.turn_list.nothing = "reading the log ..."
        self._show_all()
        self.turn_list.focus()
        self._loader.start()

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
    def prompt(self) -> Prompt:
        return self.screen_stack[0].query_one("#prompt", Prompt)

    @property
    def tab(self) -> str:
        return self.screen_stack[0].query_one("#tabs", ContentSwitcher).current or TABS[0]

    @property
    def item(self) -> Numbered | None:
        """The selected turn."""
        return self.book.find(self.selected) if self.selected else None

    # -- pictures

    def on_progressed(self, message: Progressed) -> None:
        self.progress = message.progress
        if message.progress.phase == "failed":
            self._fail(message.progress.error)
        else:
            self._show_status()

    def _fail(self, error: CkptlogError | None) -> None:
        self.failure = error
        self.exit(return_code=int(error.exit_code) if error else int(ExitCode.USAGE))

    def on_picture_taken(self, message: PictureTaken) -> None:
        began = time.monotonic()
        self._take(message.picture)
        self._loader.seen(time.monotonic() - began)

    def _take(self, picture: Picture) -> None:
        self.progress = picture.progress
        if picture.progress.phase == "done" and not picture.report.turns:
            self._fail(NothingToJudge("; ".join(picture.nothing) or "there is no turn in it"))
            return
        before = self.book
        was_last = bool(before.turns) and self.item is not None and self.item.number == len(before.turns)
        self._sources = tuple(picture.sources)
        self.book = Book(picture.report, before.outcomes, before.lane_filter)
        self._apply_filter()
        self._announce(before)
        if self.follow and self._sticks and (was_last or not self._touched) and self.book.turns:
            last = self.book.shown[-1:] or self.book.turns[-1:]
            wanted: Numbered | None = last[0]
            if not self._touched and self.progress.phase != "following":
                wanted = self.book.worst
        else:
            wanted = self.item if self._touched else self.book.worst
        self.turn_list.nothing = (
            "no turn yet" if not self.book.turns else "no turn passes the filters (0 clears them)"
        )
        self.selected = id_of(wanted.turn) if wanted else None
        self._show_all()

    def _announce(self, before: Book) -> None:
        """Tell of turns that failed since the last picture of a growing log."""
        caught_up, self._caught_up = self._caught_up, self._caught_up or self.progress.phase == "following"
        if not caught_up:
            return
        new = [
            item
            for item in self.book.turns
            if (item.turn.failed or item.turn.outcome == "error") and before.find(id_of(item.turn)) is None
        ]
        if new:
            names = ", ".join(f"turn {item.number} {label(item.turn)}" for item in new[-3:])
            self._news = f"new failure: {names}"
            self.bell()

    # -- showing

    def _show_all(self) -> None:
        book, item = self.book, self.item
        self.screen_stack[0].query_one("#top", Static).update(top_line(book, self.paths, self.glyphs))
        shown = book.shown
        self.turn_list.show(shown, item.number if item else None, len(book.lanes) > 1)
        counts = (
            f"{len(shown):,} of {plural(len(book.turns), 'turn')}"
            if len(shown) != len(book.turns)
            else "turns"
        )
        self._title(self.turn_list, counts)
        self._show_item()
        self.refresh_bindings()

    def _show_item(self) -> None:
        """The selected turn on the map and in the details."""
        item = self.item
        lane = self.book.lane_of(item) if item else None
        self.map.show(lane, lane.index[item.number] if lane and item else None)
        self._show_titles()
        self._show_details()
        self._show_status()

    def _readout(self, item: Numbered) -> str:
        lane = self.book.lane_of(item)
        place = lane.index[item.number]
        return column_words(self.map.column(place // self.map.pitch.turns)) if self.map.lane else ""

    def _title_map(self) -> None:
        lane = self.map.lane
        if lane is None:
            self._title(self.map, "map")
            return
        lanes = list(self.book.lanes.values())
        words = lane.name
        if len(lanes) > 1:
            words += f" ({lanes.index(lane) + 1} of {len(lanes)})"
        if lane.n_ctx:
            words += f", context {lane.n_ctx:,}"
        if self.map.scale_kind != "context":
            words += {"used": ", used part", "log": ", log scale"}[self.map.scale_kind]
        if self.map.pitch.turns > 1:
            words += f", {self.map.pitch.turns} turns a column"
        self._title(self.map, words)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_titles)

    def _show_titles(self) -> None:
        """What stands in the borders is cut to their widths."""
        self._title_map()
        if self.item is not None:
            self._subtitle(self.map, self._readout(self.item))

    def _title(self, widget: Widget, text: str) -> None:
        widget.border_title = Content(fitting(widget, text))

    def _subtitle(self, widget: Widget, text: str) -> None:
        widget.border_subtitle = Content(fitting(widget, text))

    def _show_details(self) -> None:
        item = self.item
        screen = self.screen_stack[0]
        tab = self.tab
        if tab == "finding":
            content = finding_content(self.book, item, self.glyphs) if item else Content("")
            screen.query_one("#finding", TextPane).show(content)
        elif tab == "log":
            self.raw_log.show(self.book, item, self._sources)
        else:
            pane = screen.query_one(f"#{tab}")
            assert isinstance(pane, EvidenceList | MismatchPane | CheckpointTable)
            pane.show(self.book, item)
        screen.query_one(TabBar).show(tab, log=self.raw_log.title())

    def _show_status(self) -> None:
        parts: list[Content | tuple[str, str] | str] = []
        if self._news:
            parts.append((self._news + "   ", "bold $text-error"))
        progress = progress_words(self.progress)
        if progress:
            parts.append(
                (progress + "   ", "bold $text-accent" if self.progress.phase == "reading" else "$text-muted")
            )
        if self.follow and self._sticks and self.progress.phase == "following":
            parts.append(("at the end (F)   ", "$text-muted"))
        parts += self._filter_words()
        self.screen_stack[0].query_one("#status", Static).update(Content.assemble(*parts))

    def _filter_words(self) -> list[Content | tuple[str, str] | str]:
        parts: list[Content | tuple[str, str] | str] = []
        if self.book.outcomes:
            parts.append(("only " + ", ".join(sorted(self.book.outcomes)) + "   ", "bold"))
        if self.book.lane_filter is not None:
            lane = self.book.lanes.get(self.book.lane_filter)
            parts.append((f"only {lane.name if lane else 'a slot'}   ", "bold"))
        if self._filter is not None:
            parts.append((f"filter: {self.glyphs.text(self._filter.text)}   ", "bold"))
        if parts:
            parts.append(("0 shows all", "$text-muted"))
        return parts

    # -- selecting

    def select(self, item: Numbered | None) -> None:
        """Make a turn the selected one, everywhere."""
        if item is None:
            return
        self._touched = True
        self._news = ""
        self.selected = id_of(item.turn)
        self._sticks = self.follow and item.number == (self.book.shown or self.book.turns)[-1].number
        self.turn_list.point_at(item.number)
        self._show_item()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        if message.rows is self.turn_list:
            self.select(self.turn_list.items[message.index])

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_show_log()

    def on_turn_list_sorted(self) -> None:
        self._show_all()

    def on_timeline_map_picked(self, message: TimelineMap.Picked) -> None:
        self.select(message.item)

    def on_timeline_map_pointed(self, message: TimelineMap.Pointed) -> None:
        if message.column is not None:
            words = column_words(message.column)
        else:
            words = self._readout(self.item) if self.item else ""
        self._subtitle(self.map, words)

    def on_raw_log_found(self, message: RawLog.Found) -> None:
        if message.line is None:
            self._say(f"no line matches {message.text}", "warning")
        elif message.wrapped:
            self._say(f"went round the end: line {message.line:,}")

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

    # -- actions

    def action_next_failed(self, step: int) -> None:
        item = self.item
        found = self.book.next_failed(item.number if item else 0, step, self.book.shown)
        if found is None:
            self._say(
                "no failed turn"
                + (" among those shown" if len(self.book.shown) < len(self.book.turns) else "")
            )
        else:
            self.select(found)

    def action_step_slot(self, step: int) -> None:
        """The turn of the next slot that is nearest to the selected one."""
        lanes, item = list(self.book.lanes.values()), self.item
        if item is None or len(lanes) < 2:
            return
        lane = lanes[(lanes.index(self.book.lane_of(item)) + step) % len(lanes)]
        self.select(min(lane.turns, key=lambda other: abs(other.number - item.number)))

    def action_step_scope(self, step: int) -> None:
        """All slots, then each one alone."""
        keys: list[LaneKey | None] = [None, *self.book.lanes]
        if len(keys) == 2:
            self._say("there is only one slot")
            return
        at = keys.index(self.book.lane_filter) if self.book.lane_filter in keys else 0
        self.book.lane_filter = keys[(at + step) % len(keys)]
        self._filters_changed()

    def action_toggle_outcome(self, outcome: str) -> None:
        self.book.outcomes = self.book.outcomes ^ {outcome}
        self._filters_changed()

    def action_clear_filters(self) -> None:
        self.book.outcomes, self.book.lane_filter, self._filter = frozenset(), None, None
        self._filters_changed()

    def _filters_changed(self) -> None:
        self._apply_filter()
        item, shown = self.item, self.book.shown
        if shown and (item is None or item not in shown):
            number = item.number if item else 0
            self.selected = id_of(min(shown, key=lambda other: abs(other.number - number)).turn)
            self._touched = True
        self._show_all()

    def _apply_filter(self) -> None:
        if self._filter is None:
            self.book.numbers = None
            return
        from ckptlog.query.frames import turns_frame

        frame = turns_frame(self.book.report).filter(self._filter.expr)
        self.book.numbers = frozenset(frame["turn"].to_list())

    def action_show_log(self) -> None:
        """The raw log at the turn's first line, or at the line that is pointed at."""
        focused = self.focused
        line = source = None
        item = self.item
        if isinstance(focused, EvidenceList):
            evidence = focused.evidence_at(focused.cursor)
            if evidence is not None:
                source, line = evidence.source, evidence.line
        elif isinstance(focused, CheckpointTable) and focused.lives and item is not None:
            record = focused.lives[focused.cursor].record
            source, line = item.turn.source, record.fate_line or record.line
        elif item is not None:
            source, line = item.turn.source, item.turn.lines[0]
        self.action_show_tab("log")
        if line is not None:
            self.raw_log.go_to_line(line, source)
        self.raw_log.focus()

    def action_show_tab(self, name: str) -> None:
        switcher = self.screen_stack[0].query_one("#tabs", ContentSwitcher)
        inside = self.focused is not None and switcher in self.focused.ancestors
        switcher.current = name
        self._show_details()
        if inside:
            self.screen_stack[0].query_one(f"#{name}").focus()

    def action_step_tab(self, step: int) -> None:
        self.action_show_tab(TABS[(TABS.index(self.tab) + step) % len(TABS)])

    def action_search_next(self, step: int) -> None:
        if self.raw_log.pattern is None:
            self.action_ask("search")
            return
        self.action_show_tab("log")
        self.raw_log.search_next(step)

    def action_only(self) -> None:
        self.action_show_tab("log")
        self.raw_log.focus()
        self.raw_log.action_next_only()
        self._show_details()

    def action_next_order(self) -> None:
        self.turn_list.next_order()

    def action_zoom(self, step: int) -> None:
        if self.map.set_zoom(step):
            self._title_map()

    def action_next_scale(self) -> None:
        self.map.next_scale()
        self._title_map()

    def action_copy_finding(self) -> None:
        item = self.item
        if item is None:
            return
        finding = self.book.finding_of(item)
        numbers = [other.number for other in finding.turns] if finding else [item.number]
        self._copy(as_markdown(self.book.report, numbers))
        self._say("the finding is in the clipboard, as Markdown")

    def _copy(self, text: str) -> None:
        """To the clipboard; a lone surrogate of a file name has no UTF-8 and is escaped."""
        self.copy_to_clipboard(text.encode("utf-8", "backslashreplace").decode("utf-8"))

    def action_copy_flags(self, n: int) -> None:
        item = self.item
        fixes = item.turn.fixes if item else []
        flags = " ".join(fixes[n].flags) if n < len(fixes) else ""
        if flags:
            # it will be pasted into a shell
            self._copy(safe_text(flags))
            self._say(f"in the clipboard: {flags}")
        else:
            self._say("this turn has no flags to copy")

    def action_summary(self) -> None:
        numbers = [item.number for item in self.book.shown] or [item.number for item in self.book.turns]
        if not numbers:
            return
        width = max(40, min(98, int(self.size.width * 0.9) - 6))
        text = as_text(self.book.report, numbers, width)
        lines = [Content(self.glyphs.text(line)) for line in text.splitlines()]
        self.push_screen(Sheet("report", Content("\n").join(lines)))

    def action_help(self) -> None:
        self.push_screen(Sheet(f"ckptlog {__version__}", help_content(self.glyphs)))

    def action_stick(self) -> None:
        if not self.follow:
            self._say("the log is not followed (--follow)")
            return
        shown = self.book.shown
        if self._sticks:
            self._sticks = False
            self._show_status()
        elif shown:
            self.select(shown[-1])

    def action_maximize(self) -> None:
        screen = self.screen
        if screen.maximized is not None:
            screen.minimize()
            return
        pane = self.focused
        details = self.screen_stack[0].query_one("#details")
        if pane is not None and details in pane.ancestors:
            pane = details
        if pane is not None:
            screen.maximize(pane, container=False)

    def watch_theme(self) -> None:
        """The drawn widgets hold no styles of their own that would tell them."""
        for widget in self.query(Inked) if self.screen_stack else ():
            widget.refresh()

    def action_dark(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_escape(self) -> None:
        """Escape: from the details to the list; in the list it stops what is running."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif self.raw_log.cancel():
            self._say("stopped looking")
        elif self.focused is not None and self.focused is not self.turn_list:
            self.turn_list.focus()
        elif self.progress.phase == "reading":
            self._loader.stop()
        else:
            self._news = ""
            self._show_status()

    def action_leave(self) -> None:
        self._loader.stop()
        self.exit(return_code=int(ExitCode.OK))

    def action_interrupt(self) -> None:
        self._loader.stop()
        self.exit(return_code=int(ExitCode.INTERRUPTED))

    def on_unmount(self) -> None:
        self._loader.stop()

    def loader_ended(self, seconds: float) -> bool:
        """Whether the reading thread has ended, after waiting for it."""
        return self._loader.join(seconds)

    # -- asking

    def action_ask(self, kind: str) -> None:
        value = ""
        if kind == "filter" and self._filter is not None:
            value = self._filter.text
        elif kind == "search":
            value = self.raw_log.pattern_text
        elif kind == "export":
            stem = self.book.source_name(0).split(".")[0] if self.book.report.sources else "report"
            value = f"{self.glyphs.text(stem)}.ckptlog.md"
        self.prompt.open(kind, _LABELS[kind], _HINTS[kind], value)
        self._asking = True
        self.refresh_bindings()

    def on_prompt_closed(self) -> None:
        self._asked()

    def _asked(self) -> None:
        """The prompt is done: keys are keys again."""
        self._asking = False
        self.prompt.close()
        self.turn_list.focus()
        self.refresh_bindings()

    def on_prompt_asked(self, message: Prompt.Asked) -> None:
        if message.kind == "filter":
            self._asked_filter(message.text.strip(), message.final)
        elif message.final:
            answer = getattr(self, f"_asked_{message.kind}")
            self._asked()
            answer(message.text.strip())

    def _asked_filter(self, text: str, final: bool) -> None:
        from ckptlog.query import QueryError, compile_filter
        from ckptlog.query.frames import turns_frame

        try:
            compiled = compile_filter(text) if text else None
        except QueryError as error:
            self.prompt.hint(Content.styled(self.glyphs.text(str(error)), "$text-error"))
            return
        if not final:
            count = len(self.book.turns)
            if compiled is not None:
                count = turns_frame(self.book.report).filter(compiled.expr).height
            self.prompt.hint(Content(f"{count:,} of {plural(len(self.book.turns), 'turn')}"))
            return
        self._filter = compiled
        self._asked()
        self._filters_changed()

    def _asked_search(self, text: str) -> None:
        self.action_show_tab("log")
        self.raw_log.focus()
        self.raw_log.search(text)

    def _asked_goto(self, text: str) -> None:
        digits = text.lstrip("#tT ").removeprefix("ask").removeprefix("urn").strip().replace(",", "")
        if not digits.isdecimal():
            self._say(f"{text or 'nothing'} is no line (2011), task (t881) or turn (#40)", "warning")
            return
        number = int(digits)
        if text[:1] == "#" or text.lower().startswith("turn"):
            found = [item for item in self.book.turns if item.number == number]
        elif text[:1] in "tT":
            found = [item for item in self.book.turns if item.turn.task == number]
        else:
            self._go_to_line(number)
            return
        if found:
            self.select(found[0])
        else:
            self._say(f"there is no {'turn' if text[:1] == '#' else 'task'} {number}", "warning")

    def _go_to_line(self, line: int) -> None:
        source = self.item.turn.source if self.item else 0
        self.action_show_tab("log")
        if not 1 <= line <= self.raw_log.total_lines:
            self._say(f"the log has lines 1 to {self.raw_log.total_lines:,}", "warning")
        self.raw_log.focus()
        self.raw_log.go_to_line(max(1, min(line, self.raw_log.total_lines)), source)

    def _asked_export(self, text: str) -> None:
        if not text:
            return
        try:
            if os.path.splitext(text)[1].lower() == ".svg":
                data = self.export_screenshot(title="ckptlog").encode()
            else:
                data = exported(self.book.report, [item.number for item in self.book.shown], text)
            write_new(text, data)
        except CkptlogError as error:
            self._say(str(error), "error")
        else:
            self._say(f"written: {text}")


def needs_ascii() -> bool:
    """Whether the terminal's encoding can't show the map's characters."""
    try:
        "".join([UNICODE.reused, UNICODE.lost, UNICODE.divergence]).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
