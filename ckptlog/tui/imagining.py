"""What-if answers in threads of their own: each setting once, the newest wish first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar

from ckptlog.errors import CkptlogError
from ckptlog.records import Report

if TYPE_CHECKING:
    from ckptlog.replay.verdicts import Verdicts
    from ckptlog.replay.whatif import Flags, Replayed, Skipped, WhatIf
    from ckptlog.server.policy import Settings
    from ckptlog.tui.timeline import Timeline


T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What came out for ``flags``: the answer, or the sentence that says why there is none."""

    flags: Flags
    found: WhatIf | str


class Imaginer:
    """Replays the runs of ``timeline`` under other flags.

    ``tell`` is called in a thread, with the log's own settings (once, before anything else; null if no
    run can be replayed, a sentence if the log can't be read again) and with each answer. All methods are called in the app's thread only; the app
    hands each answer back to ``done``. A wish waits for the one before it, and only the newest waits.
    The sweep, which is asked for without flags, takes longer and keeps nobody waiting.
    """

    def __init__(
        self, report: Report, timeline: Timeline, tell: Callable[[Answer | Settings | str | None], object]
    ) -> None:
        self.report, self._timeline = report, timeline
        self._tell = tell
        #: the replay under the log's own flags, which every other one begins from; the first answer makes it
        self._base: tuple[tuple[list[Replayed], list[Skipped]], Verdicts] | None = None
        self._following = Lock()
        self._answers: dict[Flags, Answer] = {}
        #: what is being worked out, and what comes after it: by whether it is a sweep
        self._busy: dict[bool, Flags] = {}
        self._waiting: dict[bool, Flags] = {}

    def start(self) -> None:
        """Find the log's own settings."""
        Thread(target=lambda: self._tell(_safely(self._own)), name="ckptlog-own-flags", daemon=True).start()

    def answer(self, flags: Flags) -> Answer | None:
        """The answer, if it is there; else it will be told."""
        if flags in self._answers:
            return self._answers[flags]
        sweep = not flags
        if sweep in self._busy:
            if self._busy[sweep] != flags:
                self._waiting[sweep] = flags
            return None
        self._busy[sweep] = flags
        work = Thread(target=lambda: self._tell(self._work(flags)), name="ckptlog-what-if", daemon=True)
        work.start()
        return None

    def done(self, answer: Answer) -> None:
        """Keep an answer and begin with what waits for it."""
        self._answers[answer.flags] = answer
        sweep = not answer.flags
        self._busy.pop(sweep, None)
        if sweep in self._waiting:
            self.answer(self._waiting.pop(sweep))

    def _own(self) -> Settings | None:
        """The settings of the run with the most turns, of those that can be replayed."""
        from ckptlog.replay.from_timeline import NotReplayable, run_from_timeline

        for run in sorted(self._timeline.runs(), key=lambda run: -len(run.turns)):
            try:
                return run_from_timeline(run).settings
            except NotReplayable:
                continue
        return None

    def _work(self, flags: Flags) -> Answer:
        return Answer(flags, _safely(lambda: self._replayed(flags)))

    def _replayed(self, flags: Flags) -> WhatIf:
        from ckptlog.replay.verdicts import Verdicts
        from ckptlog.replay.whatif import replay_runs, whatif_of

        with self._following:
            if self._base is None:
                self._base = replay_runs(self._timeline.runs()), Verdicts(self.report, named=False)
        replayed, verdicts = self._base
        return whatif_of(replayed, flags, verdicts)


def _safely(work: Callable[[], T]) -> T | str:
    """What comes out of some work, or the sentence that says why nothing does."""
    try:
        return work()
    except CkptlogError as error:
        return str(error)
    except Exception as error:
        return f"a fault of ckptlog's own in the replay ({type(error).__name__}: {str(error)[:200]})"
