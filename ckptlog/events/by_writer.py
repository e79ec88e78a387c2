"""The events of a chunk, by the server that wrote them where several write into one file."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import polars as pl

from ckptlog.events.event import Event
from ckptlog.events.mismatch import MismatchWindows
from ckptlog.intake.reader import Chunk
from ckptlog.intake.writers import NOBODY

#: events in log order, with the number of their writer
Owned = tuple[int, list[Event]]


class Reading(NamedTuple):
    """A chunk, the events of its lines, and the number of each line's writer (or the one that all have)."""

    chunk: Chunk
    events: list[Event]
    owners: int | pl.Series


class WriterWindows:
    """Windows for each writer: what another server writes meanwhile is no text of a prompt."""

    def __init__(self) -> None:
        self._windows: defaultdict[int, MismatchWindows] = defaultdict(MismatchWindows)
        #: the line in front of the next chunk, and whose it is
        self._last = "", NOBODY
        #: from this line on the log is known to have its ``<`` and ``>`` escaped as in HTML
        self.escaped_from: int | None = None

    @property
    def is_open(self) -> bool:
        """Is any window's text not over yet?"""
        return any(windows.is_open for windows in self._windows.values())

    def feed(self, reading: Reading) -> list[Owned]:
        """The events in order, each list of one writer."""
        owned = self._fed(reading)
        chunk, _, owners = reading
        if len(chunk.lines):
            self._last = str(chunk.lines[-1]), owners if isinstance(owners, int) else owners[-1]
        return owned

    def _fed(self, reading: Reading) -> list[Owned]:
        chunk, events, owners = reading
        if isinstance(owners, int):
            if not any(windows.is_open for owner, windows in self._windows.items() if owner != owners):
                return [(owners, self._of(owners).feed(events, chunk, None, self._before(owners)))]
            owners = pl.repeat(owners, len(chunk.lines), dtype=pl.UInt32, eager=True)
        of_event = owners.gather([event.line - chunk.first_line for event in events])
        mine: defaultdict[int, list[Event]] = defaultdict(list)
        for owner, event in zip(of_event, events, strict=True):
            mine[owner].append(event)
        for owner, windows in self._windows.items():
            if windows.is_open:
                mine.setdefault(owner, [])
        found = [
            (event.line, owner, event)
            for owner, own_events in mine.items()
            for event in self._of(owner).feed(own_events, chunk, owners == owner, self._before(owner))
        ]
        return _in_order(found)

    def _before(self, owner: int) -> str:
        """The line in front of the next chunk, if it is that writer's."""
        line, of = self._last
        return line if of == owner else ""

    def _of(self, owner: int) -> MismatchWindows:
        windows = self._windows[owner]
        windows.escaped_from = self.escaped_from
        return windows

    def finish(self) -> list[Owned]:
        """What was held back, at the end of the input."""
        found = [
            (event.line, owner, event)
            for owner, windows in self._windows.items()
            for event in windows.finish()
        ]
        return _in_order(found)


def _in_order(found: list[tuple[int, int, Event]]) -> list[Owned]:
    found.sort(key=itemgetter(0))
    return [(owner, [event for *_, event in group]) for owner, group in groupby(found, key=itemgetter(1))]
