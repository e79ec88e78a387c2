"""Advice while a log still grows: a number that only a replay can find is not guessed."""

from __future__ import annotations

import msgspec

from ckptlog.records import Fix, TurnRecord

#: causes of which diagnose finds the number by a replay of the whole log
_BY_REPLAY = frozenset({"checkpoint-evicted", "checkpoint-thinned"})
#: fixes whose number is an estimate until then
_ESTIMATED = frozenset({"raise-checkpoint-count", "smaller-spacing"})


def live(turn: TurnRecord, log: str) -> TurnRecord:
    """``turn`` as it may be shown now: an estimated number gives way to the command that finds the one
    that helps. ``log``: the file to ask about, ``-`` where there is none. The turn itself is not changed."""
    if turn.cause not in _BY_REPLAY or not any(fix.name in _ESTIMATED for fix in turn.fixes):
        return turn
    name = "LOG (a file with this log)" if log == "-" else log
    ask = Fix(
        "raise-checkpoint-count",
        f"Keep more checkpoints a slot. How many this takes, a replay tells: ckptlog whatif {name}",
    )
    return msgspec.structs.replace(
        turn, fixes=[ask, *(fix for fix in turn.fixes if fix.name not in _ESTIMATED)]
    )
