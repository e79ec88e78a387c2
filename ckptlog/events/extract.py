"""From chunks of lines to events, in log order.

Per chunk, in columns: keep the lines that can matter (literals), drop the floods of free text,
replace the numbers by ``#`` to get each line's shape, look the shape up (a new one is planned
once, see plan.py), and cut the numbers out of the lines whose kind the timeline needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from ckptlog.events.event import Event
from ckptlog.events.mismatch import MismatchWindows
from ckptlog.events.numbers import NUMBER, PADDED_NUMBER
from ckptlog.events.plan import Plan, Planner, event_by_line, event_of
from ckptlog.grammar import messages
from ckptlog.intake.reader import Chunk

#: a message of interest ends well before this; longer lines are free text at their tail
SHAPE_CHARS = 3000
#: distinct shapes remembered; more than this means that free text got into shapes
MAX_SHAPES = 200_000
#: heads by which any line of the server's own loggers is recognised
LINE_HEADS = ("slot ", "srv ", "cmn ")


@dataclass(slots=True)
class Drift:
    """Lines with a known literal that the grammar refuses, or with a slot/srv head it doesn't know."""

    status: str  # "drifted" or "unknown"
    line: int
    text: str
    message: str
    column: int | None
    expected: tuple[str, ...]
    literal: str
    count: int = 0


class Extractor:
    """Turns the chunks of one source into events.

    ``needed`` names the kinds to be turned into events; ``evidence`` those whose raw text is kept.
    However the lines are cut into chunks, the events are the same.
    """

    def __init__(self, needed: Iterable[str], evidence: Iterable[str]) -> None:
        grammar = messages()
        self.needed = frozenset(needed)
        self.planner = Planner(grammar, self.needed, frozenset(evidence))
        self.plans: list[Plan] = []
        self.index: dict[str, int] = {}
        self.drift: dict[str, Drift] = {}
        self.drifted_lines = 0
        self.unknown_slot_lines = 0
        self.wrappers: Counter[str] = Counter()
        self.formats: Counter[str] = Counter()
        self.windows = MismatchWindows()
        text_kinds = [k for k in grammar.kinds.values() if k.treatment == "text"]
        self.text_heads = [h for k in text_kinds if k.name in self.needed for h in k.heads]
        self.flood_heads = [h for k in text_kinds if k.name not in self.needed for h in k.heads]
        bare = {
            h
            for k in grammar.kinds.values()
            if k.treatment == "parsed" and k.name in self.needed
            for h in k.heads
            if h
        }
        self.literals = sorted({*LINE_HEADS, *bare, *self.text_heads})

    def feed(self, chunk: Chunk) -> list[Event]:
        """The events of one chunk (some may be held back until a later chunk decides them)."""
        frame = self._candidates(chunk)
        events = self._events(frame) if frame.height else []
        return self.windows.feed(events, chunk)

    def finish(self) -> list[Event]:
        """The events still held back at the end of the input."""
        return self.windows.finish()

    def _candidates(self, chunk: Chunk) -> pl.DataFrame:
        line = pl.col("line")
        frame = pl.DataFrame([chunk.lines.rename("line")]).with_row_index("no", offset=chunk.first_line)
        frame = frame.filter(line.str.contains_any(self.literals))
        if frame.height and self.flood_heads:
            frame = frame.filter(~line.str.contains_any(self.flood_heads) | line.str.contains_any(self.text_heads))
        if not frame.height:
            return frame
        text_at = pl.min_horizontal(*(line.str.find(head, literal=True) for head in self.text_heads))
        shaped = line.str.slice(0, SHAPE_CHARS)
        if self.text_heads:
            # behind the head of a window stands free text: the shape ends with the head
            before = line.cast(pl.Binary).bin.slice(0, text_at + len(self.text_heads[0])).cast(pl.String, strict=False)
            shaped = pl.when(line.str.contains_any(self.text_heads)).then(before).otherwise(shaped)
        return frame.with_columns(shaped.str.replace_all(PADDED_NUMBER, "#").alias("shape"))

    def _events(self, frame: pl.DataFrame) -> list[Event]:
        groups = frame.group_by("shape").agg(pl.col("line").first(), pl.col("no").first(), pl.len().alias("n"))
        ids = [
            self._plan_id(shape, line, no, n)
            for shape, line, no, n in sorted(groups.iter_rows(), key=lambda row: row[2])
        ]
        shapes = groups.sort("no").select("shape").with_columns(pl.Series("plan", ids, dtype=pl.Int32))
        wanted = shapes.filter(pl.col("plan") >= 0)
        if not wanted.height:
            return []
        rows = frame.join(wanted, on="shape", how="inner", maintain_order="left")
        keep = [i for i in set(ids) if i >= 0 and (self.plans[i].keep_text or self.plans[i].by_line)]
        rows = rows.select(
            "no",
            "plan",
            pl.col("line").str.slice(0, SHAPE_CHARS).str.extract_all(NUMBER).alias("numbers"),
            pl.when(pl.col("plan").is_in(keep)).then(pl.col("line")).alias("text"),
        )
        events: list[Event] = []
        append = events.append
        plans = self.plans
        for no, plan_id, numbers, text in zip(
            rows["no"].to_list(), rows["plan"].to_list(), rows["numbers"].to_list(), rows["text"].to_list(), strict=True
        ):
            plan = plans[plan_id]
            if plan.by_line:
                event = event_by_line(plan, self.planner, no, text)
                if event is not None and event.kind in self.needed:
                    append(event)
            else:
                append(event_of(plan, no, numbers, text))
        return events

    def _plan_id(self, shape: str, line: str, no: int, count: int) -> int:
        """The plan's index for a shape that gives events, else -1; counts what gives none."""
        plan_id = self.index.get(shape)
        if plan_id is None:
            plan = self.planner.plan(line)
            plan_id = len(self.plans)
            if len(self.index) < MAX_SHAPES:
                self.plans.append(plan)
                self.index[shape] = plan_id
            elif plan.status == "event":
                self.plans.append(plan)
        else:
            plan = self.plans[plan_id]
        if plan.envelope is not None and plan.status != "noise":
            self.wrappers[plan.envelope.wrapper or ""] += count
            self.formats[plan.envelope.format or ""] += count
        if plan.status == "event":
            return plan_id
        if plan.status in ("drifted", "unknown"):
            self._count_drift(shape, plan, line, no, count)
        return -1

    def _count_drift(self, shape: str, plan: Plan, line: str, no: int, count: int) -> None:
        if plan.status == "drifted":
            self.drifted_lines += count
        else:
            self.unknown_slot_lines += count
        item = self.drift.get(shape)
        if item is None:
            message = plan.envelope.message if plan.envelope is not None else line
            item = Drift(plan.status, no, line, message, plan.column, plan.expected, plan.literal)
            if len(self.drift) < 1000:
                self.drift[shape] = item
        item.count += count
