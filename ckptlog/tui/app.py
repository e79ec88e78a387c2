"""The app: its keys, its start and its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from ckptlog.errors import ExitCode
from ckptlog.tui.asking import Asking
from ckptlog.tui.commands import TimelineCommands
from ckptlog.tui.following import Following
from ckptlog.tui.glyphs import UNICODE
from ckptlog.tui.keys import bindings
from ckptlog.tui.taking import Taking
from ckptlog.tui.walking import Walking
from ckptlog.tui.widgets import ascii_scrollbars


class TimelineApp(Asking, Following, Walking, Taking):
    """``ckptlog tui``: walk through a log's turns and see why."""

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that lead nowhere at the moment are not in the footer."""
        if self._asking:
            return action in ("leave", "interrupt", "escape", "show_tab", "copy_flags")
        if action == "next_failed":
            return bool(self.book.failed)
        if action == "step_scope":
            return len(self.book.lanes) > 1
        return True

    def on_mount(self) -> None:
        if self.glyphs.ascii:
            self.add_class("-ascii")
            self.screen.add_class("-ascii")
            ascii_scrollbars(self.screen)
        self.turn_list.nothing = "reading the log ..."
        self._show_all()
        self.turn_list.focus()
        self._loader.start()

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


def needs_ascii() -> bool:
    """Whether the terminal's encoding can't show the map's characters."""
    try:
        "".join([UNICODE.reused, UNICODE.lost, UNICODE.divergence]).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
