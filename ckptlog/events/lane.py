"""A short way for the commonest shapes: all lines of one, read by one anchored expression.

What a lane takes is what the long way (shapes.py, then the tokens) would have given, at a third of the cost;
a line that no lane matches goes the long way. Every call of Polars costs as much as two hundred lines, so a lane makes
few, of expressions that are made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from ckptlog.events.builders import NO_NUMBERS, ColumnBuilder, column_builder
from ckptlog.events.columns import DOTTED, dotted_microseconds, microseconds, sound_number
from ckptlog.events.event import Event
from ckptlog.events.lane_pattern import LanePattern, lane_pattern
from ckptlog.events.plan import Plan

#: a longer line has free text in it
MOST_CHARS = 1000
PLACES = ("port", "slot", "task")


@dataclass(slots=True)
class Lane:
    """Lines that become an event each."""

    plan: Plan
    pattern: LanePattern
    #: lines taken so far, and lines of its shape when it was last tried, or learned
    taken: int = 0
    recent: int = 0
    _values: list[pl.Expr] = field(init=False)
    _build: ColumnBuilder = field(init=False)

    def __post_init__(self) -> None:
        plan, groups = self.plan, self.pattern.groups
        self._values = values(plan, groups)
        # in the order of the groups, as the columns have them
        fields = {name: plan.numbers[int(name[1:])].name for name in groups if name.startswith("f")}
        without = [field.name for field in plan.numbers if field.name in NO_NUMBERS]
        self._build = column_builder(
            plan.wording, groups, fields, without, plan.constants, with_text=plan.keep_text
        )

    def read(self, frame: pl.DataFrame) -> tuple[list[Event], int, pl.DataFrame]:
        """Of lines (no, line): the lane's events, of how many lines, and the lines that are not the lane's."""
        table, sound = read_values(frame["line"], self.pattern.text, self.pattern.groups, self._values)
        if table is None:
            return [], 0, frame
        rest = frame.clear()
        if sound is not None:
            frame, rest, table = frame.filter(sound), frame.filter(~sound), table.filter(sound)
            if not frame.height:
                return [], 0, rest
        columns = [frame["no"], *table.get_columns()]
        if self.plan.keep_text:
            columns.append(frame["line"])
        return self._build(*(column.to_list() for column in columns)), frame.height, rest


def values(plan: Plan, groups: Sequence[str]) -> list[pl.Expr]:
    """The groups' texts to numbers, under the groups' names."""
    found = []
    for name in groups:
        text = pl.col(name)
        if name == "stamp":
            found.append(dotted_microseconds(text) if plan.dotted_time else microseconds(text, dotted=False))
        elif name in PLACES:
            number = sound_number(text, is_float=False)
            found.append(-number if name == "task" and plan.heads.task_negative else number)
        else:
            of = plan.numbers[int(name[1:])]
            number = sound_number(text, is_float=of.is_float)
            found.append(-number if of.negative else number)
    return [expr.alias(name) for expr, name in zip(found, groups, strict=True)]


def read_values(
    texts: pl.Series, pattern: str, groups: Sequence[str], values: Sequence[pl.Expr]
) -> tuple[pl.DataFrame | None, pl.Series | None]:
    """The groups as numbers, and which texts fit and have no number beyond any sense (null: all).

    (null, null) if none fits. A number beyond any sense is for the long way, which tells that it is damaged.
    """
    cut = texts.str.extract_groups(pattern).struct.unnest()
    unfit = cut.to_series(0).null_count()
    if unfit == len(texts):
        return None, None
    cut.columns = list(groups)
    table = cut.select(values)
    fields = [column for column in table if column.name.startswith("f")]
    if not unfit and not any(column.null_count() for column in fields):
        return table, None
    sound = cut.to_series(0).is_not_null()
    for column in fields:
        if column.null_count() > unfit:
            sound &= column.is_not_null()
    return table, sound


def lane(plan: Plan, line: str) -> Lane | None:
    """The lane of a planned shape, made from an example; null if one expression can't tell for certain."""
    wanted = {i for i, of in enumerate(plan.numbers) if of.name not in NO_NUMBERS}
    pattern = pattern_of(plan, line, wanted)
    return None if pattern is None else Lane(plan, pattern)


def pattern_of(plan: Plan, line: str, wanted: set[int]) -> LanePattern | None:
    """What lines of the shape look like, with a group for the stamp, the places, and the ``wanted`` of the plan's numbers."""
    if plan.build is None or plan.slices or plan.open_ended or len(line) > MOST_CHARS:
        return None
    if len({of.token for of in plan.numbers}) < len(plan.numbers):
        return None
    names = {plan.numbers[i].token: f"f{i}" for i in wanted}
    for name, token in zip(("stamp", *PLACES), (plan.time_index, *plan.heads[:3]), strict=True):
        if token >= 0:
            if token in names:
                return None
            names[token] = name
    return lane_pattern(line, names, DOTTED if plan.dotted_time else None)
