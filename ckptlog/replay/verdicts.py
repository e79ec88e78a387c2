"""What the log's own report says of the turns that a what-if replays."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from ckptlog.records import Report, TurnRecord


class Verdicts:
    """The report behind a what-if: whose log it is of (unless who asks knows that), and what became of each
    turn in it."""

    def __init__(self, report: Report, *, named: bool = True) -> None:
        self.sources, self.tool = report.sources if named else [], report.tool
        self._turns = report.turns

    @cached_property
    def _by_name(self) -> dict[tuple[int, int | None, int | None], TurnRecord]:
        return {(turn.run, turn.slot, turn.task): turn for turn in self._turns}

    def of(self, run: int, slot: int, task: int) -> TurnRecord | None:
        return self._by_name.get((run, slot, task))

    @cached_property
    def elsewhere(self) -> dict[str, int]:
        """Turns that went wrong in a way that has nothing to do with checkpoints, by outcome."""
        return dict(
            Counter(
                turn.outcome
                for turn in self._turns
                if turn.outcome == "error" or (turn.failed and turn.outcome != "checkpoint-reprefill")
            ).most_common()
        )
