"""The old:/new: windows: free text of the prompt that may hold newlines and whole fake log lines.

A dump is four records: old text, new text, and two rows of token ids. Whatever stands between
``old:`` and the ``new:`` of the same slot and task, and between ``new:`` and the id row, is text
of the prompt and never an event.
"""

from __future__ import annotations

import re
from operator import attrgetter

import polars as pl

from ckptlog.events.event import Event
from ckptlog.events.free_text import WINDOW_HEADS
from ckptlog.intake.reader import Chunk
from ckptlog.intake.surround import form_of
from ckptlog.intake.unwrap import continuation, is_headed

WINDOW_KINDS = frozenset({"mismatch_old", "mismatch_new"})
_kind = attrgetter("kind")
#: a window is a dozen tokens; a dump that goes on longer has lost its other half (a grep'd log)
MAX_LINES = 2000
MAX_EVENTS = 200
#: a time that another program writes
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
#: a line of supervisord's or Dozzle's, which is little more, is not longer
_STAMP_CHARS = 120


class MismatchWindows:
    """Holds events back while a window is open; joins the window's physical lines."""

    def __init__(self) -> None:
        self._open: Event | None = None  # the old or new record whose text is not over yet
        self._old: str | None = None
        self._held: list[Event] = []
        self._chunks: list[tuple[Chunk, pl.Series | None]] = []
        self._stamps: re.Pattern[str] | None = None
        self._line_before = ""  # the one in front of the first of these chunks
        #: from this line on the log is known to have its ``<`` and ``>`` escaped as in HTML
        self.escaped_from: int | None = None

    @property
    def is_open(self) -> bool:
        """Is a window's text not over yet?"""
        return self._open is not None

    def feed(self, events: list[Event], chunk: Chunk, own: pl.Series | None = None, line_before: str = "") -> list[Event]:
        """``own``: which of the chunk's lines may be text of a window; null: all. ``line_before``: the one in front of
        the chunk, if that may be such a line, too."""
        if not self._chunks:
            self._line_before = line_before
        self._chunks.append((chunk, own))
        out: list[Event] = []
        if self._open is None and WINDOW_KINDS.isdisjoint(map(_kind, events)):
            out = events
        else:
            for event in events:
                if self._open is None and event.kind not in WINDOW_KINDS:
                    out.append(event)
                else:
                    self._take(event, out)
        last = chunk.first_line + len(chunk.lines) - 1
        if self._open is not None and last - self._open.line > MAX_LINES:
            self._give_up(out)
        if self._open is None:
            self._chunks.clear()
        return out

    def finish(self) -> list[Event]:
        out: list[Event] = []
        self._give_up(out)
        return out

    def _take(self, event: Event, out: list[Event]) -> None:
        window = self._open
        if window is None:
            out.append(event)
            if event.kind in WINDOW_KINDS:
                self._start(event)
            return
        if event.line - window.line > MAX_LINES or len(self._held) > MAX_EVENTS:
            self._give_up(out)
            self._take(event, out)
            return
        if window.slot is None and window.kind == "mismatch_new" and event.slot is not None:
            # the heads were trimmed away, and no rows of ids follow: the next whole line ends the window
            window.f["text"] = self._text(window, event.line)
            self._split(window)
            self._held.clear()
            self._open = None
            out.append(event)
            return
        same = (event.port, event.slot, event.task) == (window.port, window.slot, window.task)
        if same and window.kind == "mismatch_old" and event.kind == "mismatch_new":
            window.f["text"] = self._text(window, event.line)
            self._old = window.f["text"]
            self._held.clear()
            self._start(event)
            out.append(event)
        elif same and window.kind == "mismatch_new" and event.kind == "token_ids":
            window.f["text"] = self._text(window, event.line)
            self._split(window)
            self._held.clear()
            self._open = None
            out.append(event)
        else:
            self._held.append(event)

    def _start(self, event: Event) -> None:
        self._open = event
        if event.kind == "mismatch_old":
            self._stamps = self._stamps_before(event)
        event.f["text"] = self._text(event, event.line + 1)

    def _give_up(self, out: list[Event]) -> None:
        """The other half never came: what was held back counts as events after all."""
        window, held = self._open, self._held
        self._open, self._held = None, []
        if window is not None and window.kind == "mismatch_new":
            self._split(window)
        for event in held:
            self._take(event, out)
        if self._open is not None and self._open is not window:
            self._give_up(out)

    def _split(self, new: Event) -> None:
        """Cut both texts at the bar: the tokens before it are the same in both windows."""
        old_text, new_text = self._old or "", str(new.f.get("text") or "")
        same = 0
        for a, b in zip(old_text, new_text, strict=False):
            if a != b:
                break
            same += 1
        bar = old_text[:same].rfind(" | ")
        if old_text.startswith(" | ") and new_text.startswith(" | "):
            bar = 0  # nothing stands before the bar
        if bar < 0:
            new.f["old_after"] = new.f["new_after"] = None
        else:
            new.f["old_after"], new.f["new_after"] = old_text[bar + 3 :], new_text[bar + 3 :]
        self._old = None

    def _text(self, event: Event, end_line: int) -> str:
        """The window's text: from behind its head up to the line before ``end_line``."""
        first = str(event.f.get("head_text", event.f.get("text") or ""))
        event.f["head_text"] = first
        parts = self._lines(event.line + 1, end_line)
        if parts:
            inside = continuation(event.text or "")
            stamps = self._stamps
            parts = [inside(line) for line in parts if stamps is None or not stamps.fullmatch(line)]
        text = "\n".join([first, *parts])
        if self.escaped_from is None or event.line < self.escaped_from:
            return text
        from html import unescape  # not at once: few logs need it

        return unescape(text)

    def _lines(self, first: int, end: int) -> list[str]:
        """The lines from one number up to another one."""
        lines: list[str] = []
        for chunk, own in self._chunks:
            low, high = (min(max(no - chunk.first_line, 0), len(chunk.lines)) for no in (first, end))
            if low < high:
                part = chunk.lines.slice(low, high - low)
                lines.extend(map(str, part if own is None else part.filter(own.slice(low, high - low))))
        return lines

    def _stamps_before(self, event: Event) -> re.Pattern[str] | None:
        """What the stamps look like if another program writes them on lines of their own: one is in front of the event."""
        if event.line == self._chunks[0][0].first_line:
            before = self._line_before
        else:
            before = next(iter(self._lines(event.line - 1, event.line)), "")
        if len(before) > _STAMP_CHARS or not _CLOCK.search(before) or before.startswith("{") or is_headed(before):
            return None
        head = (event.text or "").partition(WINDOW_HEADS[event.kind])[0]
        # what stamps the event's own line stamps the line before it, too
        return None if _CLOCK.search(head) else re.compile(form_of(before.strip()) + r"\s*")
