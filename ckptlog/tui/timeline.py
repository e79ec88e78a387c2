"""The timeline of a log that was read, for a replay: kept, or made again from the log when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptlog.intake.sources import Source
    from ckptlog.timeline.model import Run

_PIECE_BYTES = 4 << 20


class Timeline:
    """The runs of ``sources`` with all their turns.

    ``kept`` are the runs, if they were kept while the log was read; of a big log they take more memory
    than all else, and it is read a second time by the first call of ``runs``.
    """

    def __init__(self, sources: Sequence[Source], kept: Sequence[Run] | None = None) -> None:
        self._sources = tuple(sources)
        self._runs = kept
        #: of each source as much as had been read: it may have been stopped early, or have grown since
        self._sizes = [source.facts.raw_bytes for source in self._sources]
        self._taken = 0
        self._stop = Event()
        self._reading = Lock()

    @property
    def share(self) -> float | None:
        """How much of the log has been read again, from 0 to 1; null where it needs no reading."""
        return self._taken / max(1, sum(self._sizes)) if self._runs is None else None

    def runs(self) -> Sequence[Run]:
        """The runs; to be called in a thread. Raises InputError if the log can't be read any more."""
        with self._reading:
            if self._runs is None:
                self._runs = self._again()
            return self._runs

    def _again(self) -> Sequence[Run]:
        from ckptlog.analysis import Analyzer
        from ckptlog.intake.reader import Feeder
        from ckptlog.intake.sources import Source, open_raw, read_raw
        from ckptlog.timeline.limits import MAX_TURNS

        analyzer = Analyzer(most_whole=MAX_TURNS)
        for source, left in zip(self._sources, self._sizes, strict=True):
            copy = Source(source.path)
            analyzer.begin(copy)
            feeder = Feeder(copy)
            with open_raw(copy) as file:
                while left > 0 and not self._stop.is_set():
                    data = read_raw(file, min(left, _PIECE_BYTES), copy)
                    if not data:
                        break
                    left -= len(data)
                    self._taken += len(data)
                    for chunk in feeder.stream(data):
                        analyzer.feed(chunk)
            for chunk in feeder.finish():
                analyzer.feed(chunk)
        analyzer.end()
        return analyzer.runs

    def stop(self) -> None:
        """End a reading that goes on."""
        self._stop.set()

    def ended(self, seconds: float) -> bool:
        """Whether nothing is being read any more, after waiting for it."""
        if not self._reading.acquire(timeout=max(0.0, seconds)):
            return False
        self._reading.release()
        return True
