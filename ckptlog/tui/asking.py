"""What is asked in the prompt: a search, a filter, a place to go to, a file to write."""

from __future__ import annotations

import os

from textual.content import Content

from ckptlog.errors import CkptlogError
from ckptlog.report.words import plural
from ckptlog.tui.filters import Filters
from ckptlog.tui.widgets import Prompt

_LABELS = {"search": "search", "filter": "filter", "goto": "go to", "export": "export to"}
_HINTS = {
    "search": "text or regular expression, in the whole log; n and N go on",
    "filter": "such as: failed and n_lost > 1k    (empty: all turns)",
    "goto": "2011 a line, t881 a task, #40 a turn",
    "export": "the turns shown, as .md, .json or .txt; the screen as .svg",
}


class Asking(Filters):
    """The prompt is opened, and each kind of answer is acted upon by its ``_asked_*`` method."""

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

        try:
            compiled = compile_filter(text) if text else None
        except QueryError as error:
            self.prompt.hint(Content.styled(self.glyphs.text(str(error)), "$text-error"))
            return
        if not final:
            count = len(self.book.turns)
            if compiled is not None:
                count = self.book.frame.filter(compiled.expr).height
            self.prompt.hint(Content(f"{count:,} of {plural(len(self.book.turns), 'turn')}"))
            return
        self._filter = compiled
        self._asked()
        self._filters_changed()

    def _asked_search(self, text: str) -> None:
        self.action_show_tab("log")
        self.raw_log.focus()
        self.raw_log.search(text)

    def action_search_next(self, step: int) -> None:
        if self.raw_log.pattern is None:
            self.action_ask("search")
            return
        self.action_show_tab("log")
        self.raw_log.search_next(step)

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
        from ckptlog.tui.export import exported, write_new

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
