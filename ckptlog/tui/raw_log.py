"""The log itself, line by line from the disk: the selected turn's lines marked, searchable."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from ckptlog.errors import InputError
from ckptlog.intake.lines import LineStore
from ckptlog.intake.sources import Source
from ckptlog.report.digest import Numbered
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.rows import RowList
from ckptlog.tui.scan import Scan

Only = Literal["all", "slot", "task"]
_ONLY: tuple[Only, ...] = ("all", "slot", "task")

#: characters of a line that are shown and searched; the rest is counted
SHOWN_CHARS = 4000
#: pages kept
_PAGE, _KEPT_PAGES = 64, 32
#: seconds between two looks at a scan that is running
_LOOK_EVERY = 0.05


def slot_pattern(slot: int | None) -> re.Pattern[str]:
    """Lines that a slot speaks in: ``slot update_slots: id  0 | task 12 | ...``."""
    return re.compile(rf"\bid\s+{slot if slot is not None else '-?[0-9]+'}\s*\|\s*task\s")


def task_pattern(task: int | None) -> re.Pattern[str]:
    """Lines that name a task, by the slot's head or in the server's own words."""
    return re.compile(rf"\|\s*task\s+{task}\s*\||\btask(?:\s+id)?\s*=\s*{task}\b|\bid_task\s*=\s*{task}\b")


def search_pattern(text: str) -> re.Pattern[str]:
    """What was typed as a regular expression, or literally if it is none; capitals make it exact."""
    flags = re.IGNORECASE if text == text.lower() else 0
    try:
        return re.compile(text, flags)
    except re.error:
        return re.compile(re.escape(text), flags)


class RawLog(RowList):
    """The lines of one source, all of them or only a slot's or a task's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "scroll_left", "left", show=False),
        Binding("right,l", "scroll_right", "right", show=False),
        Binding("o", "next_only", "only slot/task", show=False),
    ]

    class Found(Message):
        """A search has ended: at a line, or nowhere (null); ``wrapped`` if it went round the end."""

        def __init__(self, line: int | None, text: str, wrapped: bool) -> None:
            self.line, self.text, self.wrapped = line, text, wrapped
            super().__init__()

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.book: Book | None = None
        self.item: Numbered | None = None
        self.source = 0
        self.only: Only = "all"
        self.pattern: re.Pattern[str] | None = None
        self.pattern_text = ""
        self._sources: Sequence[Source] = ()
        self._stores: dict[int, LineStore | None] = {}
        self._pages: OrderedDict[tuple[int, int], list[str]] = OrderedDict()
        self._marked: dict[int, str] = {}
        self._widest = 0
        self._filter: Scan | None = None
        self._search: Scan | None = None
        self._search_step = 1
        self._wrapped = False
        self._timer: Timer | None = None

    # -- what is shown

    def show(self, book: Book, item: Numbered | None, sources: Sequence[Source]) -> None:
        """Show the log of ``item``'s source; the cursor goes to its first line if it is another turn."""
        moved = item is not None and (self.item is None or item.turn is not self.item.turn)
        grown = self.book is not book
        self.book, self.item, self._sources = book, item, sources
        if grown:
            # the last page may have got more lines
            self._pages.clear()
        if item is not None:
            self._marked = {e.line: e.says for e in item.turn.evidence if e.source == item.turn.source}
            if moved:
                if self.source != item.turn.source:
                    self.source = item.turn.source
                    self._widest = 0
                if self.only != "all":
                    self._start_filter()
                self.changed()
                self.go_to_line(item.turn.lines[0])
                return
        self.changed()

    def go_to_line(self, line: int, source: int | None = None) -> None:
        """The cursor on a line of the log; a filter that hides it is taken off."""
        if source is not None and source != self.source:
            self.source = source
            self.only = "all"
            self._widest = 0
        if self.only != "all" and (self._filter is None or self._index_of(line) is None):
            self.set_only("all")
        self.changed()
        self.cursor = self._index_of(line) or 0
        if self.inner.height:
            self._show_cursor()
        else:  # its tab was only just opened and has no size yet
            self.call_after_refresh(self._show_cursor)

    def _show_cursor(self) -> None:
        """Scroll so that some lines before the cursor show how it came about."""
        self.scroll_to(y=max(0, self.cursor - self.room // 3), animate=False, immediate=True)
        self.go(self.cursor)

    def _index_of(self, line: int) -> int | None:
        if self._filter is None:
            return line - 1
        found = self._filter.found
        index = bisect_left(found, line)
        return index if index < len(found) and found[index] == line else None

    @property
    def line_number(self) -> int:
        """The line under the cursor, 1-based."""
        return self._number(self.cursor)

    def _number(self, index: int) -> int:
        if self._filter is None:
            return index + 1
        found: array[int] = self._filter.found
        return found[index] if index < len(found) else 0

    @property
    def total_lines(self) -> int:
        """How many lines the source has, as far as it is read."""
        return self._sources[self.source].facts.lines if self.source < len(self._sources) else 0

    @property
    def n_rows(self) -> int:
        return self.total_lines if self._filter is None else len(self._filter.found)

    def empty_text(self) -> str:
        if self._filter is not None:
            return "looking ..." if not self._filter.done else f"no line of this {self.only}"
        return "no line yet"

    def row_width(self) -> int:
        return max(self.inner.width, self._widest + self._gutter)

    @property
    def _gutter(self) -> int:
        return len(str(max(self.total_lines, 1))) + 3

    def title(self) -> str:
        """What the tab says of what is shown."""
        if self.only == "all" or self.item is None:
            return "log"
        what = self.item.turn.slot if self.only == "slot" else self.item.turn.task
        return f"log: {self.only} {what}"

    def row(self, index: int, width: int) -> list[Segment]:
        number = self._number(index)
        line = self._line(number)
        turn = self.item.turn if self.item and self.item.turn.source == self.source else None
        inside = turn is not None and turn.lines[0] <= number <= turn.lines[1]
        marked = turn is not None and number in self._marked
        mark = self.glyphs.pointer if marked else "|" if inside else " "
        digits = self._gutter - 3
        segments = [
            Segment(f"{number:>{digits}} ", self.ink("axis")),
            Segment(f"{mark} ", self.ink("strong" if marked else "number" if inside else "dim")),
        ]
        shown = self.glyphs.text(line[:SHOWN_CHARS])
        if len(line) > SHOWN_CHARS:
            shown += f" {self.glyphs.more} {len(line) - SHOWN_CHARS:,} more characters"
        wide = cell_len(shown)
        if wide > self._widest:
            self._widest = wide
            self.call_later(self.changed)
        ink = "quote" if marked else "plain" if inside or turn is None else "dim"
        style = None if ink == "plain" else self.ink(ink)
        if self.pattern is None:
            return [*segments, Segment(shown, style)]
        at = 0
        for match in self.pattern.finditer(shown):
            if match.end() > match.start():
                segments.append(Segment(shown[at : match.start()], style))
                segments.append(Segment(match.group(), self.ink("match")))
                at = match.end()
        return [*segments, Segment(shown[at:], style)]

    def _store(self) -> LineStore | None:
        if self.source not in self._stores and self.source < len(self._sources):
            try:
                self._stores[self.source] = LineStore(self._sources[self.source])
            except InputError:
                self._stores[self.source] = None
        return self._stores.get(self.source)

    def _line(self, number: int) -> str:
        store = self._store()
        if store is None or number < 1:
            return ""
        page = (number - 1) // _PAGE
        key = (self.source, page)
        if key not in self._pages:
            self._pages[key] = store.lines(page * _PAGE + 1, (page + 1) * _PAGE)
            if len(self._pages) > _KEPT_PAGES:
                self._pages.popitem(last=False)
        lines = self._pages[key]
        at = (number - 1) % _PAGE
        return lines[at] if at < len(lines) else ""

    # -- only some lines

    def action_next_only(self) -> None:
        self.set_only(_ONLY[(_ONLY.index(self.only) + 1) % len(_ONLY)])

    def set_only(self, only: Only) -> None:
        """All lines, only the selected turn's slot, or only its task; the cursor stays near its line."""
        line = self.line_number
        self.only = only
        self._start_filter()
        if only == "all":
            self.changed()
            self.go(line - 1, centre=True)

    def _start_filter(self) -> None:
        if self._filter is not None:
            self._filter.stop()
            self._filter = None
        store = self._store()
        if self.only == "all" or self.item is None or store is None:
            self.changed()
            return
        turn = self.item.turn
        if self.only == "task":
            first, last = turn.lines
            pattern = task_pattern(turn.task)
        else:
            first, last = 1, max(self.total_lines, 1)
            pattern = slot_pattern(turn.slot)
        self._filter = Scan(store, first, last, lambda line: bool(pattern.search(line[:SHOWN_CHARS]))).start()
        self.cursor = 0
        self._watch()
        self.changed()

    # -- search

    def search(self, text: str) -> None:
        """Look for a text or regular expression from the cursor on; ``Found`` tells."""
        self.pattern_text = text
        self.pattern = search_pattern(text) if text else None
        self.refresh()
        if self.pattern is not None:
            self.search_next(1, here=True)

    def search_next(self, step: int, here: bool = False) -> bool:
        """The next match (or with ``step`` -1 the one before); false if nothing is looked for."""
        if self.pattern is None:
            return False
        self._wrapped = False
        self._search_step = step
        number = self.line_number
        if step > 0:
            self._look(number if here else number + 1, self.total_lines, step)
        else:
            self._look(1, number - 1, step)
        return True

    def _look(self, first: int, last: int, step: int) -> None:
        if self._search is not None:
            self._search.stop()
        store, pattern = self._store(), self.pattern
        if store is None or pattern is None:
            return
        glyphs = self.glyphs

        def wanted(line: str) -> bool:
            return bool(pattern.search(glyphs.text(line[:SHOWN_CHARS])))

        # within a filter the first hit may be hidden, so all of them are needed
        limit = 1 if self._filter is None else None
        self._search = Scan(store, first, last, wanted, step=step, limit=limit)
        self._search.start()
        self._watch()

    def cancel(self) -> bool:
        """Stop a search or a scan that is running; whether there was one."""
        running = [scan for scan in (self._search, self._filter) if scan is not None and not scan.done]
        for scan in running:
            scan.stop()
        return bool(running)

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self.set_interval(_LOOK_EVERY, self._look_after)

    def _look_after(self) -> None:
        """Take over what the scans found since the last look."""
        if self._filter is not None and self.n_rows != self.virtual_size.height - self.HEAD:
            line = self.item.turn.lines[0] if self.item else 1
            before = self.cursor
            self.changed()
            if before == 0:
                found = self._filter.found
                self.go(next((n for n, number in enumerate(found) if number >= line), 0), centre=True)
        search = self._search
        if search is not None:
            hit = self._hit(search)
            if hit is not None:
                self._search = None
                search.stop()
                index = self._index_of(hit)
                if index is not None:
                    self.go(index, centre=True)
                self.post_message(self.Found(hit, self.pattern_text, self._wrapped))
            elif search.done:
                self._search = None
                if not self._wrapped and self.total_lines:
                    self._wrapped = True
                    self._look(1, self.total_lines, self._search_step)
                else:
                    self.post_message(self.Found(None, self.pattern_text, True))
        if (self._filter is None or self._filter.done) and self._search is None and self._timer is not None:
            self._timer.stop()
            self._timer = None
            self.changed()

    def _hit(self, search: Scan) -> int | None:
        for number in search.found:
            if self._index_of(number) is not None:
                return number
        return None

    def on_unmount(self) -> None:
        for scan in (self._filter, self._search):
            if scan is not None:
                scan.stop()
