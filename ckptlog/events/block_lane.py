"""A lane for messages that come in blocks of many lines (a listing): neighbouring lines become one event.

A server prints the same listing again and again, with an entry more or less. So what stands behind the stamp is read once
for all lines that are the same there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ckptlog.events.event import Event
from ckptlog.events.lane import pattern_of
from ckptlog.events.lane_pattern import STAMP_PARTS, LanePattern
from ckptlog.events.lane_values import PLACES, Column, columns_of, read_values
from ckptlog.events.plan import Plan


@dataclass(slots=True)
class BlockLane:
    """Lines of a shape; each block becomes one event with ``rows``, a tuple of the fields ``names`` for each line.

    What stands before the ``at``-th byte of a line looks like ``head``, the rest like ``body``.
    """

    plan: Plan
    names: tuple[str, ...]
    at: int
    head: LanePattern
    body: LanePattern
    #: lines taken so far, and lines of its shape when it was last tried, or learned
    taken: int = 0
    recent: int = 0
    _body: str = field(init=False)
    _head: str = field(init=False)
    _body_columns: list[Column] = field(init=False)
    _head_columns: list[Column] = field(init=False)

    def __post_init__(self) -> None:
        self._body, self._head = self.body.text, self.head.text
        self._body_columns = columns_of(self.plan, self.body)
        self._head_columns = columns_of(self.plan, self.head)

    def read(self, frame: pl.DataFrame) -> tuple[list[Event], int, pl.DataFrame]:
        """Of lines (no, line): the lane's events, of how many lines, and the lines that are not the lane's."""
        line = frame["line"].cast(pl.Binary)
        bodies = line.bin.slice(self.at).alias("body")
        distinct = bodies.unique()
        texts = distinct.cast(pl.String, strict=False)
        found, sound = read_values(texts, self._body, self._body_columns)
        if found is None:
            return [], 0, frame
        if sound is not None:
            distinct, found = distinct.filter(sound), [series.filter(sound) for series in found]
        known = distinct.to_frame().with_row_index("which")
        which = bodies.to_frame().join(known, on="body", how="left", maintain_order="left")["which"]
        heads = line.bin.slice(0, self.at).cast(pl.String, strict=False)
        own = which.is_not_null() & heads.str.contains(self._head)
        rest = frame.clear()
        if not own.all():
            frame, rest, which, heads = frame.filter(own), frame.filter(~own), which.filter(own), heads.filter(own)
            if not frame.height:
                return [], 0, rest
        values = _named(self._body_columns, found)
        return list(self._blocks(frame, heads, which, values)), frame.height, rest

    def _blocks(
        self, frame: pl.DataFrame, heads: pl.Series, which: pl.Series, values: dict[str, pl.Series]
    ) -> Iterator[Event]:
        of = self.plan.wording
        fields = self._rows(values)
        rows = [fields[i] for i in which.to_list()]
        places = {name: values[name].gather(which) for name in PLACES if name in values}
        in_head = {column.name for column in self._head_columns}
        if "port" in in_head:
            places["port"] = self._of_heads(heads)["port"]
        no = frame["no"]
        apart = no.diff().fill_null(0) != 1
        for place in (*places.values(), *(frame[name] for name in frame.columns if name == "owner")):
            apart |= place.ne_missing(place.shift(1))
        begins = apart.arg_true()
        starts = begins.to_list()
        nothing = [None] * len(starts)
        numbers = no.gather(begins).to_list()
        times = self._of_heads(heads.gather(begins))["stamp"].to_list() if "stamp" in in_head else nothing
        owners = [places[name].gather(begins).to_list() if name in places else nothing for name in PLACES]
        for at, end, number, t, port, slot, task in zip(
            starts, [*starts[1:], len(rows)], numbers, times, *owners, strict=True
        ):
            yield Event(of, number, t, port, slot, task, {"rows": rows[at:end]}, None, of.kind)

    def _of_heads(self, heads: pl.Series) -> dict[str, pl.Series]:
        found, _ = read_values(heads, self._head, self._head_columns)
        assert found is not None
        return _named(self._head_columns, found)

    def _rows(self, values: dict[str, pl.Series]) -> list[tuple[Any, ...]]:
        """The named fields of each distinct text; those that the shape doesn't have are null."""
        numbers = {self.plan.numbers[int(name[1:])].name: series for name, series in values.items() if name not in PLACES}
        nothing = [None] * len(next(iter(values.values())))
        lists = [numbers[name].to_list() if name in numbers else nothing for name in self.names]
        return list(zip(*lists, strict=True))


def _named(columns: list[Column], found: list[pl.Series]) -> dict[str, pl.Series]:
    return {column.name: series for column, series in zip(columns, found, strict=True)}


def block_lane(plan: Plan, line: str, names: tuple[str, ...], at: int) -> BlockLane | None:
    """The lane of a planned shape, made from an example; ``at``: the byte at which its message begins.

    Null if it can't be told for certain, or if the time stands behind: then no two lines are the same there.
    """
    if plan.constants or plan.keep_text:
        return None
    wanted = {i for i, of in enumerate(plan.numbers) if of.name in names}
    pattern = pattern_of(plan, line, wanted)
    cut = None if pattern is None else pattern.cut(len(line.encode()[:at].decode()))
    if cut is None or not cut[1].groups or any(name in ("stamp", *STAMP_PARTS) for name in cut[1].groups):
        return None
    return BlockLane(plan, names, at, *cut)
