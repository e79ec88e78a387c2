"""One log that is followed: bytes in, finished turns out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ckptlog.analysis import Analysis, Analyzer
from ckptlog.analysis.to_records import incident_record, is_told
from ckptlog.intake.follow import Idle, Piece, Replaced
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source
from ckptlog.records import TurnRecord
from ckptlog.report.incidents import incident_sentence

#: seconds without a new line after which a released turn is complete: the logger's threads are never
#: that far apart, and the next line about the slot may be hours away
SETTLE_SECONDS = 0.3

#: server starts at most between two looks of which what happens outside of turns is told
_RUNS = 64


class Session:
    """Feeds what a follower gives to the analysis; ``on_turn`` gets each turn as it is complete.

    A replaced file begins a new source, so that lines are numbered as in the new file; the run goes
    on if the new file has no server start and its time goes on.
    """

    def __init__(
        self, path: str, on_turn: Callable[[TurnRecord], None], *, max_bytes: int | None = None
    ) -> None:
        self.analyzer = Analyzer(on_turn)
        self._max_bytes = max_bytes
        self._path = path
        #: how many of its incidents have been told, by run
        self._told: dict[int, int] = {}
        self._begin()
        self._last = time.monotonic()
        self._settled = True

    def _begin(self) -> None:
        self.source = Source(self._path)
        self._feeder = Feeder(self.source, max_bytes=self._max_bytes)
        self.analyzer.begin(self.source)

    def follow(self, pieces: Iterable[Piece], on_idle: Callable[[], None] = lambda: None) -> None:
        """Take pieces until there are no more. ``on_idle`` is called after each look at the log."""
        for piece in pieces:
            if isinstance(piece, Idle):
                self._idle()
            elif isinstance(piece, Replaced):
                self.replaced()
            else:
                self.take(piece)
            on_idle()

    def take(self, data: bytes) -> None:
        """Bytes as they were written."""
        for chunk in self._feeder.stream(data):
            self.analyzer.feed(chunk)
        self._last = time.monotonic()
        self._settled = False

    def _idle(self) -> None:
        if not self._settled and time.monotonic() - self._last >= SETTLE_SECONDS:
            self._settled = True
            self.analyzer.settle()

    def replaced(self) -> None:
        """What comes next is another file of the same name."""
        self._finish_source()
        self._begin()

    def finish(self) -> None:
        """No more bytes: the last line counts without its newline, what is open is cut."""
        self._finish_source()
        self.analyzer.finish()

    def _finish_source(self) -> None:
        for chunk in self._feeder.finish():
            self.analyzer.feed(chunk)

    def news(self) -> list[str]:
        """What has happened outside of turns since the last look, each of several alike once."""
        found: list[str] = []
        runs = self.analyzer.tracker.runs[-_RUNS:]
        for run in runs:
            told = self._told.get(run.no, 0)
            new = (each for each in run.incidents[told:] if is_told(run, each, self.analyzer.mixed))
            found += (incident_sentence(incident_record(run, each), f"line {each.line:,}") for each in new)
        self._told = {run.no: len(run.incidents) for run in runs}
        return found

    def analysis(self) -> Analysis:
        """What was found, as of a whole log."""
        return Analysis(self.analyzer)
