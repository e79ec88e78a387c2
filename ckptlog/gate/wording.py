"""The sentences of check verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from ckptlog.query.compile import CheckResult
from ckptlog.report.brief import number
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


def unknown_words(count: int, columns: Sequence[str]) -> str:
    """``3 turns have no known n_lost``."""
    verb = "has" if count == 1 else "have"
    what = " or ".join([", ".join(columns[:-1]), columns[-1]]) if len(columns) > 1 else "".join(columns)
    return f"{plural(count, 'turn')} {verb} no known {what or 'value'}"
