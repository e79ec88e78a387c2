"""The turns behind a check, as its verdict names them."""

from __future__ import annotations

from collections.abc import Sequence

from ckptlog.gate.verdict import Pointer, TurnFinding
from ckptlog.records import Fix, Report, TurnRecord
from ckptlog.report.brief import do, says
from ckptlog.report.digest import Finding, Numbered

#: turns that one check names; the rest are counted
MAX_TURNS = 200


def findings(report: Report, numbers: Sequence[int]) -> list[TurnFinding]:
    """The turns with these numbers (from 1) as a check's verdict names them, at most ``MAX_TURNS``.

    Turns with the same cause get the same fix: the one that does for all of them.
    """
    named = [Numbered(number, report.turns[number - 1]) for number in numbers[:MAX_TURNS]]
    alike: dict[tuple[str | None, ...], list[Numbered]] = {}
    for one in named:
        alike.setdefault(_kind(one.turn), []).append(one)
    fixes = {kind: next(iter(Finding(turns).fixes), None) for kind, turns in alike.items()}
    return [_finding(one.number, one.turn, fixes[_kind(one.turn)]) for one in named]


def _kind(turn: TurnRecord) -> tuple[str | None, ...]:
    return turn.outcome, turn.variant, turn.cause, turn.fixes[0].name if turn.fixes else None


def _finding(number: int, turn: TurnRecord, fix: Fix | None) -> TurnFinding:
    pointers: dict[str, Pointer] = {}
    for evidence in turn.evidence:
        if evidence.source == turn.source and evidence.says:
            pointers.setdefault(evidence.says, Pointer(evidence.line, evidence.says))
    return TurnFinding(
        turn=number,
        line=turn.lines[0],
        slot=turn.slot,
        task=turn.task,
        outcome=turn.outcome,
        cause=turn.cause,
        says=says(turn),
        do=do(fix) if fix is not None else None,
        evidence=list(pointers.values())[:5],
    )
