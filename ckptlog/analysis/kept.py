"""Which of the timeline's turns are kept when their records are made."""

from __future__ import annotations

from collections import Counter

from ckptlog.intake.writer import Writer
from ckptlog.records import TurnRecord
from ckptlog.timeline.model import Run, Turn
from ckptlog.verdict.replayed import MOST_RUNS, MOST_TURNS, wants_number


class KeptTurns:
    """Turns that may be among those replayed for the numbers in fixes (see ``runs_to_number``).

    A turn takes several times the memory of its record, and a big log has a million; of a run that is over
    and not among the costliest, or that is too long, none is needed.
    """

    def __init__(self) -> None:
        self._length: Counter[int] = Counter()
        self._cost: Counter[int] = Counter()
        self._over: list[Run] = []
        self._open: dict[tuple[Writer | None, int | None], Run] = {}

    def begin(self, runs: list[Run], records: list[TurnRecord]) -> None:
        """Go on from where all turns were kept: ``records`` are those of the turns in ``runs``, as they ended."""
        turns = {run.no: (run, iter(run.turns)) for run in runs}
        for run in runs:
            run.turns = []
        for record in records:
            run, its_turns = turns[record.run]
            self.add(run, next(its_turns), record)

    def add(self, run: Run, turn: Turn, record: TurnRecord) -> None:
        """One more turn of a run, which is kept in ``run.turns`` as long as it may be needed."""
        if not self._length[run.no]:
            self._begin(run)
        self._length[run.no] += 1
        if wants_number(record):
            self._cost[run.no] += record.n_lost or 0
        if self._length[run.no] <= MOST_TURNS:
            run.turns.append(turn)
        else:
            run.turns.clear()

    def _begin(self, run: Run) -> None:
        """A new run: the one before it of this server is over."""
        before = self._open.get((run.writer, run.port))
        self._open[run.writer, run.port] = run
        if before is None:
            return
        self._over.append(before)
        wanted = [over for over in self._over if over.no in self._cost]
        wanted.sort(key=lambda over: (-self._cost[over.no], over.no))
        kept = {over.no for over in wanted[:MOST_RUNS]}
        for over in self._over:
            if over.no not in kept:
                over.turns.clear()
        self._over = [over for over in self._over if over.no in kept]
