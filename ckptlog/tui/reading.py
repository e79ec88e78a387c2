"""What the loader's thread does: bytes in, turns judged, a picture of what there is now and then.

Batch and follow are the same: bytes go through the engine's own ``Feeder`` and ``Analyzer``, in small pieces
at first, so that the first turns are on the screen before the rest is read.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ckptlog.analysis import Analysis, Analyzer
from ckptlog.analysis.analyze import BIG_BYTES
from ckptlog.analysis.collector import no_collector
from ckptlog.intake.follow import POLL_SECONDS, Idle, Piece, Replaced, follow_file
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source, expand, open_raw, read_raw
from ckptlog.report.nothing import nothing_to_judge
from ckptlog.tui.loading import Picture
from ckptlog.tui.timeline import Timeline

if TYPE_CHECKING:
    from ckptlog.tui.loading import Loader, Phase

#: seconds between two pictures, at least; making one costs time in which nothing is read
_PICTURE_EVERY = 0.25
#: a picture may take this share of the reading time: the longer the log, the fewer there are
_PICTURE_SHARE = 0.2
#: bytes of the first piece, and of the largest one
_FIRST_BYTES = 64 << 10
_MOST_BYTES = 4 << 20
#: seconds without a new line after which a released turn is complete
_SETTLE_SECONDS = 0.3
#: turns whose objects take Python's cycle collector a tenth of a second to look at
_MANY_TURNS = 2000


class _Log:
    """One log that is read: what gives its bytes, and what makes lines of them."""

    def __init__(self, source: Source, pieces: Iterator[Piece], index: int) -> None:
        self.source = source
        self.pieces = pieces
        #: the place of its source in the analysis
        self.index = index
        self.feeder = Feeder(source)


class Reading:
    """Reads all of a loader's logs to their end; followed ones on and on until it is stopped."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._sources = [Source(loader.piped.path)] if loader.piped else expand(loader.paths)
        sizes = [source.raw_size() for source in self._sources]
        known = loader.piped is None and None not in sizes
        loader.total = sum(size or 0 for size in sizes) if known else None
        # the replay at the end, which puts exact numbers into fixes, needs some of the timeline's own objects,
        # what-if all of them; a followed log has no end, and without them its memory is bounded by the records
        self._ends = not (loader.follow or loader.piped)
        whole = loader.total is not None and loader.total < BIG_BYTES
        self._analyzer = Analyzer(keep_timeline=self._ends, whole_timeline=whole)
        self._phase: Phase = "reading"
        self._shown_at = self._cost = 0.0
        #: lines were read, or turns settled, since the last picture
        self._unseen = False
        #: when the last lines came, while turns may wait to be settled
        self._unsettled: float | None = None

    def run(self) -> None:
        """Read, one log after the other as batch does; what grows later is followed in all of them."""
        logs: list[_Log] = []
        with no_collector():
            for source in self._sources:
                if self._loader.stopped:
                    break
                log = self._begin(source)
                if not self._until_idle(log):
                    logs.append(log)
            if logs:
                self._idle()
            else:
                self._end()
            if len(self._analyzer.turns) >= _MANY_TURNS:
                # what was read stays: the collector would look at all of it again and again
                gc.freeze()
        if logs:
            while logs and not self._loader.stopped:
                logs = [log for log in logs if not self._until_idle(log)]
                self._idle()
            self._end()

    def _end(self) -> None:
        stopped = self._loader.stopped
        if self._ends or not stopped:
            self._analyzer.finish()
        self._phase = "stopped" if stopped else "done"
        self._show(now=True)

    def _begin(self, source: Source) -> _Log:
        self._analyzer.begin(source, beside=self._loader.follow)
        return _Log(source, self._pieces(source), len(self._analyzer.sources) - 1)

    def _until_idle(self, log: _Log) -> bool:
        """Take what a log has; whether that was its end."""
        for piece in log.pieces:
            if isinstance(piece, Idle):
                return False
            if isinstance(piece, Replaced):
                self._replace(log)
                continue
            self._loader.taken += len(piece)
            for chunk in log.feeder.stream(piece):
                self._analyzer.feed(chunk, log.index)
            self._unseen, self._unsettled = True, time.monotonic()
            self._show()
            if log.source.facts.binary:
                break
        if self._ends or not self._loader.stopped:
            self._finish(log)
        return True

    def _finish(self, log: _Log) -> None:
        for chunk in log.feeder.finish():
            self._analyzer.feed(chunk, log.index)

    def _replace(self, log: _Log) -> None:
        """Another file of the same name takes a log's place."""
        self._finish(log)
        source = Source(log.source.path)
        self._analyzer.begin(source, after=log.index, beside=True)
        log.source, log.feeder = source, Feeder(source)
        log.index = len(self._analyzer.sources) - 1

    def _idle(self) -> None:
        """Nothing new in any log."""
        began, self._phase = self._phase, "following"
        if self._unsettled is not None and time.monotonic() - self._unsettled >= _SETTLE_SECONDS:
            self._analyzer.settle()
            self._unsettled, self._unseen = None, True
        if began != "following" or self._unseen:
            self._show(now=began != "following")

    def _show(self, now: bool = False) -> None:
        """Hand over a picture, if it is time for one; else only how far the reading is."""
        loader = self._loader
        began = time.monotonic()
        pause = max(_PICTURE_EVERY, (self._cost + loader.showing_cost) / _PICTURE_SHARE)
        if not now and (loader.unseen or began - self._shown_at < pause):
            loader.tell(self._phase)
            return
        analyzer = self._analyzer
        analysis = Analysis(analyzer)
        nothing = tuple(nothing_to_judge(analysis)) if self._phase == "done" else ()
        timeline = None
        if self._ends and self._phase in ("done", "stopped"):
            timeline = Timeline(analyzer.sources, analyzer.runs if analyzer.whole_timeline else None)
        loader.show(
            Picture(
                analysis.report,
                tuple(analyzer.sources),
                loader.progress(self._phase),
                tuple(analysis.warnings),
                nothing,
                timeline,
                analyzer.turns[-1] if analyzer.turns else None,
            )
        )
        self._unseen = False
        self._shown_at = time.monotonic()
        self._cost = self._shown_at - began

    def _pieces(self, source: Source) -> Iterator[Piece]:
        """A source's bytes: what is there, or with ``follow`` also what is written later."""
        loader = self._loader
        if loader.piped is not None:
            return loader.piped.pieces(lambda: loader.stopped)
        if loader.follow:
            poll = POLL_SECONDS / len(self._sources)
            return follow_file(source, stopped=lambda: loader.stopped, poll=poll)
        return self._whole_file(source)

    def _whole_file(self, source: Source) -> Iterator[bytes]:
        size = _FIRST_BYTES
        with open_raw(source) as file:
            while not self._loader.stopped:
                data = read_raw(file, size, source)
                if not data:
                    return
                yield data
                size = min(2 * size, _MOST_BYTES)
