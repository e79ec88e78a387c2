"""What can be taken away, and what is read on a sheet of its own."""

from __future__ import annotations

from textual.content import Content

from ckptlog import __version__
from ckptlog.report.safe import safe_text
from ckptlog.tui.overview import help_lines
from ckptlog.tui.showing import Showing
from ckptlog.tui.widgets import Sheet


class Taking(Showing):
    """The clipboard, the whole report, the help."""

    def action_copy_finding(self) -> None:
        item = self.item
        if item is None:
            return
        finding = self.book.finding_of(item)
        numbers = [other.number for other in finding.turns] if finding else [item.number]
        from ckptlog.tui.export import as_markdown

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
        from ckptlog.tui.export import as_text

        width = max(40, min(98, int(self.size.width * 0.9) - 6))
        text = as_text(self.book.report, numbers, width)
        lines = [Content(self.glyphs.text(line)) for line in text.splitlines()]
        self.push_screen(Sheet("report", lines))

    def action_help(self) -> None:
        self.push_screen(Sheet(f"ckptlog {__version__}", help_lines(self.glyphs)))
