"""Which lane a line may take: by what stands where the messages of this log begin."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ckptlog.events.block_lane import BlockLane, block_lane
from ckptlog.events.event import Event
from ckptlog.events.lane import Lane, lane
from ckptlog.events.plan import Plan
from ckptlog.events.shape_book import ShapeBook
from ckptlog.events.shapes import LINE_HEADS

#: lines of a shape in one reading that promise to be worth a lane
WORTH_LINES = 20
#: lines that are worth trying it: its calls of Polars cost as much as so many lines the long way
TRIED_LINES = 150
#: fewer lines than this go the long way at once
FEW_LINES = 2000
#: how much of a line is its key: the logger's name and the beginning of the function's
KEY_BYTES = 18
#: keys that get lanes; where there are more, they are no names
MOST_KEYS = 64
#: a key with more lanes than this is no help
MOST_LANES = 16

AnyLane = Lane | BlockLane


class Lanes:
    """Learns lanes from the lines that went the long way."""

    def __init__(self, book: ShapeBook, blocks: Mapping[str, tuple[str, ...]]) -> None:
        self.book = book
        self.blocks = blocks
        self._key_at = -1
        self._by_key: dict[bytes, list[AnyLane]] = {}
        self._lanes: dict[int, AnyLane | None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def learn(self, number: int, line: str, count: int) -> None:
        """``line`` is one of ``count`` that have this plan."""
        found = self._lanes.get(number)
        if found is not None:
            found.recent = max(found.recent, count)
        if count < WORTH_LINES:
            return
        data = line.encode()
        if self._key_at < 0:
            self._key_at = min(
                (at for head in LINE_HEADS if (at := data.find(head.encode())) >= 0), default=-1
            )
        if number not in self._lanes:
            found = self._lanes[number] = self._lane(self.book.plans[number], line)
            if found is not None:
                found.recent = max(count, TRIED_LINES)
        if found is None:
            return
        key = data[self._key_at : self._key_at + KEY_BYTES]
        if self._key_at >= 0 and (key in self._by_key or len(self._by_key) < MOST_KEYS):
            lanes = self._by_key.setdefault(key, [])
            found.taken += count
            if found not in lanes and len(lanes) < MOST_LANES:
                lanes.append(found)
                lanes.sort(key=_by_use)

    def _lane(self, plan: Plan, line: str) -> AnyLane | None:
        names = self.blocks.get(plan.wording.kind)
        if names is not None and self._key_at >= 0:
            return block_lane(plan, line, names, self._key_at) or lane(plan, line)
        return lane(plan, line)

    def read(self, frame: pl.DataFrame) -> tuple[list[Event], pl.DataFrame]:
        """Of lines (no, line): the events of those that a lane takes, and the other lines, in order."""
        if frame.height < FEW_LINES or not self._by_key:
            return [], frame
        key = pl.col("line").cast(pl.Binary).bin.slice(self._key_at, KEY_BYTES).alias("key")
        frame = frame.with_columns(key)
        open_keys = [key for key, lanes in self._by_key.items() if any(map(_is_worth_it, lanes))]
        known = frame["key"].is_in(open_keys)
        rest = [frame.filter(~known).drop("key")]
        events: list[Event] = []
        for (value,), part in (
            frame.filter(known).partition_by("key", as_dict=True, include_key=False).items()
        ):
            left = part
            for one in self._by_key[value]:
                if left.height < TRIED_LINES:
                    break
                if not _is_worth_it(one):
                    continue
                found, n, left = one.read(left)
                one.recent = n
                if n:
                    events += found
                    self.book.count_form(one.plan, n)
                    one.taken += n
            # what takes most goes first from now on
            self._by_key[value].sort(key=_by_use)
            rest.append(left)
        return events, pl.concat(rest).sort("no")


def _is_worth_it(one: AnyLane) -> bool:
    return one.recent >= TRIED_LINES


def _by_use(one: AnyLane) -> int:
    return -one.taken
