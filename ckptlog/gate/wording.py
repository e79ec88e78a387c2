"""The sentences of check verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from ckptlog.query.compile import CheckResult
from ckptlog.records import TurnRecord
from ckptlog.report.words import plural

_WANTED = {
    "<=": "at most {} allowed",
    "<": "less than {} allowed",
    ">=": "at least {} wanted",
    ">": "more than {} wanted",
    "==": "exactly {} wanted",
    "!=": "anything but {} wanted",
}
#: the operator seen from the other side
MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "==", "!=": "!="}


def number(value: float | None) -> str:
    """``1,234``, ``0.913``, ``unknown``."""
    if value is None:
        return "unknown"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def found_and_wanted(result: CheckResult, limit_is_left: bool) -> str:
    """What a check came to beside what it allows: ``3, at most 2 allowed``."""
    if result.sides is None:
        return ", ".join(f"{a.text} = {number(a.value)}" for a in result.aggregates)
    found, operator, limit = result.sides.left, str(result.sides.operator), result.sides.right
    if limit_is_left:
        found, operator, limit = limit, MIRRORED[operator], found
    shown, bound = number(found), number(limit)
    if shown == bound and found != limit:  # 0.8999 beside 0.9
        shown, bound = f"{found!r}", f"{limit!r}"
    return f"{shown}, {_WANTED[operator].format(bound)}"


def says(turn: TurnRecord) -> str:
    """What happened in a turn: the verdict's own sentence, with the words to look up."""
    words = [turn.outcome, *([turn.variant] if turn.variant else []), *([turn.cause] if turn.cause else [])]
    label = ", ".join(words)
    return f"{label}: {turn.headline}" if turn.headline else label


def do(turn: TurnRecord) -> str | None:
    """The first fix, its flags first."""
    if not turn.fixes:
        return None
    fix = turn.fixes[0]
    flags = " ".join(fix.flags)
    return f"{flags}: {fix.text}" if flags and flags not in fix.text else fix.text


def unknown_words(count: int, columns: Sequence[str]) -> str:
    """``3 turns have no known n_lost``."""
    verb = "has" if count == 1 else "have"
    what = " or ".join([", ".join(columns[:-1]), columns[-1]]) if len(columns) > 1 else "".join(columns)
    return f"{plural(count, 'turn')} {verb} no known {what or 'value'}"
