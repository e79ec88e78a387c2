"""The log is read and judged in a thread; the app gets a picture of what there is so far.

What the thread does is in ``reading``, which is imported in it: Polars takes its time, in which the screen is
already there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal

from ckptlog.errors import CkptlogError
from ckptlog.records import Report, TurnRecord

if TYPE_CHECKING:
    from ckptlog.intake.sources import Source
    from ckptlog.tui.piped import PipedLog
    from ckptlog.tui.timeline import Timeline

Phase = Literal["reading", "following", "done", "stopped", "failed"]


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
    #: the timeline of a log that is read no further, for a replay; null: not kept, or not complete
    timeline: Timeline | None = None
    #: the turn that was complete last
    newest: TurnRecord | None = None


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
        on_picture: Callable[[Picture], object],
        on_progress: Callable[[Progress], object],
    ) -> None:
        self.paths = list(paths)
        self.follow = follow
        self.piped = piped
        #: raw bytes read so far, of how many (null: not known)
        self.taken = 0
        self.total: int | None = None
        #: a picture was handed over and is not on the screen yet; how many seconds showing the last one took
        self.unseen = False
        self.showing_cost = 0.0
        self._on_picture = on_picture
        self._on_progress = on_progress
        self._stop = Event()
        self._thread = Thread(target=self._run, name="ckptlog-reading", daemon=True)
        self._began = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def seen(self, seconds: float) -> None:
        """The last picture is on the screen, which took so long: with a large log that is not for free."""
        self.showing_cost = seconds
        self.unseen = False

    def join(self, seconds: float) -> bool:
        """Wait for the thread; whether it has ended."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def show(self, picture: Picture) -> None:
        """Hand a picture over; for the reading thread."""
        self.unseen = True
        self._on_picture(picture)

    def tell(self, phase: Phase, error: CkptlogError | None = None) -> None:
        """Tell how far the reading is; for the reading thread."""
        self._on_progress(self.progress(phase, error))

    def progress(self, phase: Phase, error: CkptlogError | None = None) -> Progress:
        return Progress(phase, self.taken, self.total, time.monotonic() - self._began, error)

    def _run(self) -> None:
        self._began = time.monotonic()
        try:
            from ckptlog.tui.reading import Reading

            Reading(self).run()
        except CkptlogError as error:
            self.tell("failed", error)
        except Exception as error:
            sentence = f"a fault of ckptlog's own while reading ({type(error).__name__}: {str(error)[:200]})"
            self.tell("failed", CkptlogError(sentence))
