"""The texts that a lane's expression has cut out of its lines, as numbers.

Column by column, and not in one query: planning a query costs as much as casting thousands of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ckptlog.events.lane_pattern import STAMP_PARTS, LanePattern
from ckptlog.events.numbers import BEYOND, in_microseconds
from ckptlog.events.plan import Plan

#: what stands in a line's head
PLACES = ("port", "slot", "task")


class Column(NamedTuple):
    """What becomes of one group, or of the four of a dotted time: ``stamp`` (microseconds), one of PLACES, ``f0``..."""

    name: str
    groups: tuple[int, ...]
    is_float: bool = False
    negative: bool = False

    @property
    def is_field(self) -> bool:
        """Is it one of the message's numbers, which must be sound?"""
        return self.name.startswith("f")

    def values(self, texts: Sequence[pl.Series]) -> pl.Series:
        """Int64 or Float64; null for what is no such number or beyond any sense."""
        if len(self.groups) > 1:
            return in_microseconds(*(texts[at].cast(pl.Int64, strict=False) for at in self.groups))
        number = texts[self.groups[0]].cast(pl.Float64 if self.is_float else pl.Int64, strict=False)
        if self.name != "stamp":
            most = number.max()
            if most is not None and most > BEYOND:  # type: ignore[operator]
                number = number.set(number > BEYOND, None)
        return number * -1 if self.negative else number


def columns_of(plan: Plan, pattern: LanePattern) -> list[Column]:
    """The columns that a pattern's groups give, in the order of the groups."""
    found: list[Column] = []
    for at, name in enumerate(pattern.groups):
        if name in STAMP_PARTS:
            if name == STAMP_PARTS[0]:
                found.append(Column("stamp", tuple(range(at, at + len(STAMP_PARTS)))))
        elif name == "stamp" or name in PLACES:
            found.append(Column(name, (at,), negative=name == "task" and plan.heads.task_negative))
        else:
            of = plan.numbers[int(name[1:])]
            found.append(Column(name, (at,), of.is_float, of.negative))
    return found


def read_values(
    texts: pl.Series, pattern: str, columns: Sequence[Column]
) -> tuple[list[pl.Series] | None, pl.Series | None]:
    """The columns of the groups of ``pattern``, and which texts fit and have no number beyond any sense (null: all).

    (null, null) if none fits. A number beyond any sense is for the long way, which tells that it is damaged.
    """
    cut = texts.str.extract_groups(pattern).struct.unnest().get_columns()
    unfit = cut[0].null_count()
    if unfit == len(texts):
        return None, None
    found = [column.values(cut) for column in columns]
    fields = [series for series, column in zip(found, columns, strict=True) if column.is_field]
    if not unfit and not any(series.null_count() for series in fields):
        return found, None
    sound = cut[0].is_not_null()
    for series in fields:
        if series.null_count() > unfit:
            sound &= series.is_not_null()
    return found, sound
