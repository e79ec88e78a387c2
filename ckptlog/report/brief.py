"""A turn, or a figure, in a few words: what the gate and the comparison quote."""

from __future__ import annotations

from ckptlog.records import Fix, TurnRecord


def number(value: float | None) -> str:
    """``1,234``, ``0.913``, ``unknown``."""
    if value is None:
        return "unknown"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def says(turn: TurnRecord) -> str:
    """What happened in a turn: the verdict's own sentence, with the words to look up."""
    words = [turn.outcome, *([turn.variant] if turn.variant else []), *([turn.cause] if turn.cause else [])]
    label = ", ".join(words)
    return f"{label}: {turn.headline}" if turn.headline else label


def do(fix: Fix) -> str:
    """A fix, its flags first."""
    flags = " ".join(fix.flags)
    return f"{flags}: {fix.text}" if flags and flags not in fix.text else fix.text
