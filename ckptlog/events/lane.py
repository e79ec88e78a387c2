"""A short way for the commonest shapes: all lines of one, read by one anchored expression.

What a lane takes is what the long way (shapes.py, then the tokens) would have given, at a third of the cost;
a line that no lane matches goes the long way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from ckptlog.events.builders import NO_NUMBERS, ColumnBuilder, column_builder
from ckptlog.events.event import Event
from ckptlog.events.lane_pattern import LanePattern, lane_pattern
from ckptlog.events.lane_values import PLACES, Column, columns_of, read_values
from ckptlog.events.plan import Plan

#: a longer line has free text in it
MOST_CHARS = 1000


@dataclass(slots=True)
class Lane:
    """Lines that become an event each."""

    plan: Plan
    pattern: LanePattern
    #: lines taken so far, and lines of its shape when it was last tried, or learned
    taken: int = 0
    recent: int = 0
    _expression: str = field(init=False)
    _columns: list[Column] = field(init=False)
    _build: ColumnBuilder = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self._expression = self.pattern.text
        self._columns = columns_of(plan, self.pattern)
        names = [column.name for column in self._columns]
        # in the order of the groups, as the columns have them
        fields = {column.name: plan.numbers[int(column.name[1:])].name for column in self._columns if column.is_field}
        without = [of.name for of in plan.numbers if of.name in NO_NUMBERS]
        self._build = column_builder(
            plan.wording, names, fields, without, plan.constants, with_text=plan.keep_text
        )

    def read(self, frame: pl.DataFrame) -> tuple[list[Event], int, pl.DataFrame]:
        """Of lines (no, line): the lane's events, of how many lines, and the lines that are not the lane's."""
        found, sound = read_values(frame["line"], self._expression, self._columns)
        if found is None:
            return [], 0, frame
        rest = frame.clear()
        if sound is not None:
            frame, rest = frame.filter(sound), frame.filter(~sound)
            if not frame.height:
                return [], 0, rest
            found = [series.filter(sound) for series in found]
        columns = [frame["no"], *found]
        if self.plan.keep_text:
            columns.append(frame["line"])
        return self._build(*(column.to_list() for column in columns)), frame.height, rest


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
    return lane_pattern(line, names, dotted_time=plan.dotted_time)
