"""The log is read and judged in a thread; the app gets a picture of what there is so far.

Batch and follow are the same loop: bytes go through the engine's own ``Feeder`` and ``Analyzer``,
in small pieces at first, so that the first turns are on the screen before the rest is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal

from ckptlog.errors import CkptlogError, InputError
from ckptlog.records import Report

if TYPE_CHECKING:
    from ckptlog.intake.follow import Piece
    from ckptlog.intake.sources import Source
    from ckptlog.timeline.model import Run
    from ckptlog.tui.piped import PipedLog

Phase = Literal["reading", "following", "done", "stopped", "failed"]

#: seconds between two pictures, at least; making one costs time in which nothing is read
_PICTURE_EVERY = 0.25
#: a picture may take this share of the reading time
_PICTURE_SHARE = 0.2
#: bytes of the first piece, and of the largest one
_FIRST_BYTES = 64 << 10
_MOST_BYTES = 4 << 20
#: seconds without a new line after which a released turn is complete
_SETTLE_SECONDS = 0.3


@dataclass(frozen=True)
class Progress:
    """How far the reading is: raw bytes taken of ``total`` (null: not known), and since when."""

    phase: Phase
    taken: int
    total: int | None
    seconds: float
    #: the sentence that ended it, in the phase ``failed``
    error: CkptlogError | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the end at the speed so far; null while that is not known."""
        if not self.total or not self.taken or self.seconds < 0.5:
            return None
        return max(0.0, self.seconds * (self.total - self.taken) / self.taken)


@dataclass(frozen=True)
class Picture:
    """What was found so far. ``sources`` are the engine's, in the report's order."""

    report: Report
    sources: Sequence[Source]
    progress: Progress
    warnings: tuple[str, ...] = ()
    #: sentences about sources that hold nothing to judge, once all is read
    nothing: tuple[str, ...] = ()
    #: the timeline of a log that was read to its end, for a replay; null: not kept, or not complete
    runs: Sequence[Run] | None = None


class Loader:
    """Reads ``paths`` in a thread of its own and hands pictures and progress to two callbacks.

    The callbacks are called in that thread. ``stop`` ends the reading; what was found stays.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        follow: bool,
        piped: PipedLog | None = None,
        on_picture: Callable[[Picture], None],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.paths = list(paths)
        self.follow = follow
        self.piped = piped
        self._on_picture = on_picture
        self._on_progress = on_progress
        self._stop = Event()
        self._thread = Thread(target=self._run, name="ckptlog-reading", daemon=True)
        self._taken = 0
        self._began = 0.0
        #: a picture was handed over and is not on the screen yet
        self._unseen = False
        self._showing_cost = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def seen(self, seconds: float) -> None:
        """The last picture is on the screen, which took so long: with a large log that is not for free."""
        self._showing_cost = seconds
        self._unseen = False

    def join(self, seconds: float) -> bool:
        """Wait for the thread; whether it has ended."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._began = time.monotonic()
        try:
            self._read()
        except CkptlogError as error:
            self._on_progress(self._progress("failed", None, error))
        except Exception as error:
            sentence = f"a fault of ckptlog's own while reading ({type(error).__name__}: {str(error)[:200]})"
            self._on_progress(self._progress("failed", None, CkptlogError(sentence)))

    def _progress(self, phase: Phase, total: int | None, error: CkptlogError | None = None) -> Progress:
        return Progress(phase, self._taken, total, time.monotonic() - self._began, error)

    def _read(self) -> None:
        # imported here: Polars takes a third of a second, in which the screen is already there
        from ckptlog.analysis import Analysis, Analyzer
        from ckptlog.intake.follow import Idle, Replaced
        from ckptlog.intake.reader import Feeder
        from ckptlog.intake.sources import Source, expand
        from ckptlog.report.nothing import nothing_to_judge

        sources = [Source(self.piped.path)] if self.piped else expand(self.paths)
        sizes = [source.raw_size() for source in sources]
        total = None if self.piped or None in sizes else sum(size or 0 for size in sizes)
        # the replay at the end, which puts exact numbers into fixes, needs the timeline's own objects; a
        # followed log has no end, and without them its memory is bounded by the records
        analyzer = Analyzer(keep_timeline=not (self.follow or self.piped))
        shown_at, cost = 0.0, 0.0

        def show(phase: Phase, now: bool = False) -> None:
            nonlocal shown_at, cost
            began = time.monotonic()
            pause = max(_PICTURE_EVERY, (cost + self._showing_cost) / _PICTURE_SHARE)
            if not now and (self._unseen or began - shown_at < pause):
                self._on_progress(self._progress(phase, total))
                return
            analysis = Analysis(analyzer)
            nothing = tuple(nothing_to_judge(analysis)) if phase == "done" else ()
            progress = self._progress(phase, total)
            self._unseen = True
            ended = phase in ("done", "stopped") and analyzer.keep_timeline
            runs = tuple(analyzer.runs) if ended else None
            self._on_picture(
                Picture(analysis.report, tuple(analyzer.sources), progress, tuple(analysis.warnings), nothing, runs)
            )
            shown_at = time.monotonic()
            cost = shown_at - began

        def read(source: Source, follow: bool) -> Source | None:
            """One source to its end; the one that took its place, if it was rotated away."""
            analyzer.begin(source)
            feeder = Feeder(source)
            replaced = False
            #: new lines since the last picture; since the turns were settled
            unseen = unsettled = False
            last_bytes = 0.0
            for piece in self._pieces(source, follow):
                if isinstance(piece, Replaced):
                    replaced = True
                    break
                if isinstance(piece, Idle):
                    if unsettled and time.monotonic() - last_bytes >= _SETTLE_SECONDS:
                        analyzer.settle()
                        unsettled, unseen = False, True
                    if unseen or not shown_at:
                        show("following", now=True)
                        unseen = False
                    continue
                self._taken += len(piece)
                for chunk in feeder.stream(piece):
                    analyzer.feed(chunk)
                last_bytes = time.monotonic()
                unseen = unsettled = True
                show("reading")
                if source.facts.binary:
                    break
            if replaced or not (follow and self._stop.is_set()):
                for chunk in feeder.finish():
                    analyzer.feed(chunk)
            return Source(source.path) if replaced else None

        for index, source in enumerate(sources):
            current: Source | None = source
            while current is not None and not self._stop.is_set():
                current = read(current, self.follow and index == len(sources) - 1)
        stopped = self._stop.is_set()
        if not (self.follow and stopped):
            analyzer.finish()
        show("stopped" if stopped else "done", now=True)

    def _pieces(self, source: Source, follow: bool) -> Iterator[Piece]:
        """A source's bytes: what is there, or with ``follow`` also what is written later."""
        from ckptlog.intake.follow import follow_file

        if self.piped is not None:
            yield from self.piped.pieces(self._stop.is_set)
        elif follow:
            yield from follow_file(source, stopped=self._stop.is_set)
        else:
            yield from self._whole(source)

    def _whole(self, source: Source) -> Iterator[bytes]:
        from ckptlog.intake.sources import open_raw

        size = _FIRST_BYTES
        with open_raw(source) as file:
            while not self._stop.is_set():
                try:
                    data = file.read(size)
                except OSError as error:
                    reason = (error.strerror or str(error)).lower()
                    raise InputError(f"can't read {source.name}: {reason}") from None
                if not data:
                    return
                yield data
                size = min(2 * size, _MOST_BYTES)
