"""Advice while a log still grows: the number that diagnose would find, by a replay of what there is so far."""

from __future__ import annotations

import msgspec

from ckptlog.analysis import Analyzer
from ckptlog.records import Fix, TurnRecord
from ckptlog.verdict import replayed
from ckptlog.verdict.replayed import number_runs, wants_number

#: causes of which only a replay knows the number
_BY_REPLAY = frozenset({"checkpoint-evicted", "checkpoint-thinned"})
#: fixes whose number is an estimate until then
_ESTIMATED = frozenset({"raise-checkpoint-count", "smaller-spacing"})
#: turns replayed in all, some seconds' work: a log in which turns fail by the thousand is not held up
MOST_TURNS = 20_000


class Advice:
    """Turns as they may be shown now. ``log``: the file to ask about, ``-`` where there is none."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._left = MOST_TURNS

    def live(self, turn: TurnRecord, analyzer: Analyzer) -> TurnRecord:
        """``turn``, which has just ended, with the fixes that diagnose would give it if the log ended here.
        The turn itself is not changed."""
        if not wants_number(turn):
            return turn
        run = next((run for run in reversed(analyzer.runs) if run.no == turn.run), None)
        length = len(run.turns) if run is not None else 0
        if run is None or not length or length > min(self._left, replayed.MOST_TURNS):
            return self._unnumbered(turn)
        self._left -= length
        shown = msgspec.structs.replace(turn)
        number_runs([run], [shown], [run.no])
        return shown

    def _unnumbered(self, turn: TurnRecord) -> TurnRecord:
        """An estimate is no advice: it gives way to the command that finds the number."""
        if turn.cause not in _BY_REPLAY or not any(fix.name in _ESTIMATED for fix in turn.fixes):
            return turn
        name = "LOG (a file with this log)" if self._log == "-" else self._log
        ask = Fix(
            "raise-checkpoint-count",
            f"Keep more checkpoints a slot, or more of those that lie close. A replay tells how: ckptlog whatif {name}",
        )
        return msgspec.structs.replace(
            turn, fixes=[ask, *(fix for fix in turn.fixes if fix.name not in _ESTIMATED)]
        )
