"""The log is read and judged in a thread; the app gets a picture of what there is so far.

Batch and follow are the same loop: bytes go through the engine's own ``Feeder`` and ``Analyzer``,
in small pieces at first, so that the first turns are on the screen before the rest is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import Literal

from ckptlog.errors import CkptlogError
from ckptlog.records import Report
from ckptlog.tui.tail import Restarted, Waiting, pieces

Phase = Literal["reading", "following", "done", "stopped", "failed"]

#: seconds between two pictures, at least; making one costs time in which nothing is read
_PICTURE_EVERY = 0.25
#: a picture may take this share of the reading time
_PICTURE_SHARE = 0.2


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
    sources: Sequence[object]
    progress: Progress
    warnings: tuple[str, ...] = ()
    #: sentences about sources that hold nothing to judge, once all is read
    nothing: tuple[str, ...] = ()


class Loader:
    """Reads ``paths`` in a thread of its own and hands pictures and progress to two callbacks.

    The callbacks are called in that thread. ``stop`` ends the reading; what was found stays.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        follow: bool,
        on_picture: Callable[[Picture], None],
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.paths = list(paths)
        self.follow = follow
        self._on_picture = on_picture
        self._on_progress = on_progress
        self._stop = Event()
        self._thread = Thread(target=self._run, name="ckptlog-reading", daemon=True)
        self._taken = 0
        self._began = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

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
        from ckptlog.intake.reader import Feeder
        from ckptlog.intake.sources import Source, expand
        from ckptlog.report.nothing import nothing_to_judge

        sources = expand(self.paths)
        sizes = [source.raw_size() for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        analyzer = Analyzer()
        shown_at, cost = 0.0, 0.0

        def show(phase: Phase, last: bool = False) -> None:
            nonlocal shown_at, cost
            now = time.monotonic()
            if not last and now - shown_at < max(_PICTURE_EVERY, cost / _PICTURE_SHARE):
                self._on_progress(self._progress(phase, total))
                return
            warnings = [warning for source in analyzer.sources for warning in source.facts.warnings]
            analysis = Analysis(analyzer, warnings)
            nothing = tuple(nothing_to_judge(analysis)) if phase == "done" else ()
            self._on_picture(
                Picture(
                    analysis.report,
                    tuple(analyzer.sources),
                    self._progress(phase, total),
                    tuple(warnings),
                    nothing,
                )
            )
            shown_at = time.monotonic()
            cost = shown_at - now

        def read(source: Source, follow: bool) -> Source | None:
            """One source to its end; the one that took its place, if it was rotated away."""
            analyzer.begin(source)
            feeder = Feeder(source)
            dirty = False
            for piece in pieces(source, follow=follow, stopped=self._stop.is_set):
                if isinstance(piece, Restarted):
                    for chunk in feeder.finish():
                        analyzer.feed(chunk)
                    return Source(source.path)
                if isinstance(piece, Waiting):
                    # the picture that was due before is shown when there is time
                    show("following", last=dirty or not shown_at)
                    dirty = False
                    continue
                self._taken += len(piece)
                for chunk in feeder.stream(piece):
                    analyzer.feed(chunk)
                dirty = True
                show("reading")
                if source.facts.binary:
                    break
            if not (follow and self._stop.is_set()):
                for chunk in feeder.finish():
                    analyzer.feed(chunk)
            return None

        for index, source in enumerate(sources):
            current: Source | None = source
            while current is not None and not self._stop.is_set():
                current = read(current, self.follow and index == len(sources) - 1)
        stopped = self._stop.is_set()
        if not (self.follow and stopped):
            analyzer.finish()
        show("stopped" if stopped else "done", last=True)
