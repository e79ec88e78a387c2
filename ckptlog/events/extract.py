"""From chunks of lines to events, in log order.

Per chunk, in columns: keep the lines that can matter (literals), drop the floods of free text,
replace the numbers by ``#`` to get each line's shape, look the shape up (a new one is planned
once, see plan.py), and cut the numbers out of the lines whose kind the timeline needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

import polars as pl

from ckptlog.events.event import Event, Wording
from ckptlog.events.mismatch import MismatchWindows
from ckptlog.events.numbers import BEYOND, NUMBER, PADDED_NUMBER, padded_number_tokens
from ckptlog.events.plan import NumberField, Plan, Planner, cut_slices, event_by_line
from ckptlog.events.tally import Drift, Tally
from ckptlog.grammar import messages
from ckptlog.intake.reader import Chunk
from ckptlog.intake.unwrap import Envelope, unwrap

#: a message of interest ends well before this; longer lines are free text at their tail
SHAPE_CHARS = 3000
#: distinct shapes remembered; more than this means that free text got into shapes
MAX_SHAPES = 200_000
#: lines at the beginning from which the log's form is told
SAMPLE_LINES = 400
#: fields that the number pattern cuts, and that are none
NO_NUMBERS = frozenset({"pointer"})
#: heads that every line of the slots' and the server's own loggers has
LINE_HEADS = ["slot ", "srv "]


class Extractor:
    """Turns the chunks of one source into events.

    ``needed`` names the kinds to be turned into events; ``evidence`` those whose raw text is kept;
    ``blocks`` those of which neighbouring lines become one event.
    However the lines are cut into chunks, the events are the same.
    """

    def __init__(self, needed: Iterable[str], evidence: Iterable[str], blocks: Iterable[str] = ()) -> None:
        grammar = messages()
        self.needed = frozenset(needed)
        self.blocks = frozenset(blocks)
        self.planner = Planner(grammar, self.needed, frozenset(evidence))
        self.plans: list[Plan] = []
        self.index: dict[str, int] = {}
        self.tally = Tally()
        self.windows = MismatchWindows()
        self._sampled: dict[str, Envelope] = {}
        text_kinds = [k for k in grammar.kinds.values() if k.treatment == "text"]
        self.text_heads = [h for k in text_kinds if k.name in self.needed for h in k.heads]
        self.flood_heads = [h for k in text_kinds if k.name not in self.needed for h in k.heads]
        self.literals = sorted(
            {
                h
                for k in grammar.kinds.values()
                if k.treatment != "ignored" and k.name in self.needed
                for h in k.heads
            }
        )
        self.known = sorted({h for k in grammar.kinds.values() for h in k.heads})

    def feed(self, chunk: Chunk) -> list[Event]:
        """The events of one chunk (some may be held back until a later chunk decides them)."""
        if chunk.first_line <= SAMPLE_LINES:
            self._look_around(chunk)
        frame = self._candidates(chunk)
        events = self._events(frame) if frame.height else []
        return self.windows.feed(events, chunk)

    def _look_around(self, chunk: Chunk) -> None:
        """What stands around the messages at the log's beginning, whether they are needed or not."""
        first = chunk.lines.head(SAMPLE_LINES - chunk.first_line + 1).str.slice(0, SHAPE_CHARS)
        for line in first.filter(first.str.contains_any([*LINE_HEADS, *self.literals])):
            shape = padded_number_tokens.sub("#", line)
            envelope = self._sampled.get(shape)
            if envelope is None:
                envelope = self._sampled[shape] = unwrap(line)
            if envelope.family is not None:
                told = envelope.family != "bare" or envelope.format != "legacy"
                self.tally.count_form(envelope.wrapper or "", (envelope.format or "") if told else "")

    def finish(self) -> list[Event]:
        """The events still held back at the end of the input."""
        return self.windows.finish()

    def _candidates(self, chunk: Chunk) -> pl.DataFrame:
        """The lines that may matter, with their shapes. Each pass looks only at what the one before left."""
        line = pl.col("line")
        frame = pl.DataFrame([chunk.lines.rename("line")]).with_row_index("no", offset=chunk.first_line)
        hit = frame["line"].str.contains_any(self.literals)
        rest = frame.filter(~hit)
        # a line without letters behind its head (a row of ids) has no literal: it comes in as unknown ones do
        unknown = rest.filter(line.str.contains_any(LINE_HEADS)).filter(~line.str.contains_any(self.known))
        frame = frame.filter(hit)
        if unknown.height:
            frame = pl.concat([frame, unknown]).sort("no")
        if not frame.height:
            return frame
        if self.flood_heads:
            flooded = frame["line"].str.contains_any(self.flood_heads)
            if flooded.any():
                kept = frame.filter(flooded).filter(line.str.contains_any(self.text_heads))
                frame = frame.filter(~flooded)
                if kept.height:
                    frame = pl.concat([frame, kept]).sort("no")
        frame = frame.with_columns(line.str.slice(0, SHAPE_CHARS).alias("shape"))
        texts = frame["line"].str.contains_any(self.text_heads) if self.text_heads else None
        if texts is not None and texts.any():
            # behind the head of a window stands free text: the shape ends with the head
            text_at = pl.min_horizontal(*(line.str.find(head, literal=True) for head in self.text_heads))
            size = text_at + len(self.text_heads[0])
            before = line.cast(pl.Binary).bin.slice(0, size).cast(pl.String, strict=False)
            windows = frame.filter(texts).with_columns(before.alias("shape"))
            frame = pl.concat([frame.filter(~texts), windows]).sort("no")
        return frame.with_columns(pl.col("shape").str.replace_all(PADDED_NUMBER, "#"))

    def _events(self, frame: pl.DataFrame) -> list[Event]:
        groups = (
            frame.group_by("shape")
            .agg(
                pl.col("line").first(),
                pl.col("no").first(),
                pl.col("line").last().alias("last"),
                pl.len().alias("n"),
            )
            .sort("no")
        )
        ids = [
            self._plan_id(shape, line, last, no, n)
            for shape, line, last, no, n in groups.select("shape", "line", "last", "no", "n").iter_rows()
        ]
        wanted = (
            groups.select("shape")
            .with_columns(pl.Series("plan", ids, dtype=pl.Int32))
            .filter(pl.col("plan") >= 0)
        )
        if not wanted.height:
            return []
        rows = frame.select("no", "line", "shape").join(wanted, on="shape", how="inner").drop("shape")
        events: list[Event] = []
        for (plan_id,), part in rows.partition_by("plan", as_dict=True).items():
            plan = self.plans[plan_id]
            events += self._slow(plan, part) if plan.build is None else self._fast(plan, part)
        events.sort(key=_line_number)
        return events

    def _fast(self, plan: Plan, part: pl.DataFrame) -> list[Event]:
        """All lines of one shape at once: the wanted number tokens become typed columns."""
        tokens = pl.col("tokens")
        with_text = plan.keep_text or bool(plan.slices)
        columns = [
            pl.col("no"),
            _time(plan, tokens).alias("t"),
            _integer(tokens, plan.port_index).alias("port"),
            _integer(tokens, plan.slot_index).alias("slot"),
            (
                -_integer(tokens, plan.task_index)
                if plan.task_negative
                else _integer(tokens, plan.task_index)
            ).alias("task"),
            *(_number(tokens, field, i) for i, field in enumerate(plan.numbers)),
            *([pl.col("line")] if with_text else []),
        ]
        cut = pl.col("line").str.slice(0, SHAPE_CHARS).str.extract_all(NUMBER).alias("tokens")
        table = part.lazy().select("no", cut, "line") if with_text else part.lazy().select("no", cut)
        rows = self._undamaged(plan, part, table.select(columns).collect())
        if plan.wording.kind in self.blocks:
            return list(_in_blocks(plan.wording, rows, tuple(field.name for field in plan.numbers)))
        assert plan.build is not None
        events = plan.build(rows.iter_rows(), plan.wording, plan.constants)
        if plan.slices:
            for event in events:
                assert event.text is not None
                event.f.update(cut_slices(plan, event.text))
                if not plan.keep_text:
                    event.text = None
        return events

    def _undamaged(self, plan: Plan, part: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """The lines whose numbers can all be read; the others count as drifted."""
        needed = [f"f{i}" for i, field in enumerate(plan.numbers) if field.name not in NO_NUMBERS]
        if not needed or not rows.select(pl.any_horizontal(pl.col(needed).has_nulls())).item():
            return rows
        sound = rows.drop_nulls(needed)
        bad = part.join(sound.select("no"), on="no", how="anti", maintain_order="left")
        line, no = bad["line"][0], bad["no"][0]
        self._count_drift(
            f"damaged {plan.wording.kind}", replace(plan, status="drifted"), line, no, bad.height
        )
        return sound

    def _slow(self, plan: Plan, part: pl.DataFrame) -> Iterator[Event]:
        """Lines with free text in them: unwrapped and parsed one by one."""
        for no, line in part.select("no", "line").iter_rows():
            event = event_by_line(plan, self.planner, no, line)
            if event is None:
                self._count_drift(
                    f"damaged {plan.wording.kind}", replace(plan, status="drifted"), line, no, 1
                )
            elif event.kind in self.needed:
                yield event

    def _plan_id(self, shape: str, line: str, last: str, no: int, count: int) -> int:
        """The plan's index for a shape that gives events, else -1; counts what gives none.

        ``line`` and ``last`` are its first and last example: one odd line condemns no shape.
        """
        plan_id = self.index.get(shape)
        if plan_id is None:
            plan = self.planner.plan(line)
            if plan.status in ("drifted", "unknown") and last != line:
                other = self.planner.plan(last)
                plan = other if other.status == "event" else plan
            plan_id = len(self.plans)
            if len(self.index) < MAX_SHAPES:
                self.plans.append(plan)
                self.index[shape] = plan_id
            elif plan.status == "event":
                self.plans.append(plan)
        else:
            plan = self.plans[plan_id]
        if plan.envelope is not None and plan.status != "noise":
            self.tally.count_form(plan.envelope.wrapper or "", plan.envelope.format or "", count)
        if plan.status == "event":
            return plan_id
        if plan.status in ("drifted", "unknown"):
            self._count_drift(shape, plan, line, no, count)
        return -1

    def _count_drift(self, shape: str, plan: Plan, line: str, no: int, count: int) -> None:
        message = plan.envelope.message if plan.envelope is not None else line
        example = Drift(plan.status, no, line, message, plan.column, plan.expected, plan.literal)
        self.tally.count_drift(shape, example, count)


def _in_blocks(of: Wording, rows: pl.DataFrame, names: tuple[str, ...]) -> Iterator[Event]:
    """One event for each block of neighbouring lines; its fields are tuples in ``rows``, named by ``names``."""
    columns = [rows[f"f{i}"].to_list() for i in range(len(names))]
    fields = list(zip(*columns, strict=True)) if columns else [()] * rows.height
    heads = rows.select("no", "t", "port", "slot", "task").with_row_index("at")
    heads = heads.filter((pl.col("no").diff() != 1).fill_null(value=True))
    begun = heads["at"].to_list()
    for (at, no, t, port, slot, task), end in zip(heads.iter_rows(), [*begun[1:], rows.height], strict=True):
        yield Event(of, no, t, port, slot, task, {"rows": fields[at:end], "names": names}, None, of.kind)


_line_number = attrgetter("line")


def _integer(tokens: pl.Expr, index: int) -> pl.Expr:
    if index < 0:
        return pl.lit(None, dtype=pl.Int64)
    number = tokens.list.get(index, null_on_oob=True).cast(pl.Int64, strict=False)
    return pl.when(number <= BEYOND).then(number)


def _number(tokens: pl.Expr, field: NumberField, position: int) -> pl.Expr:
    """A field as Int64 or Float64, as its example was written; null for what is no number."""
    token = tokens.list.get(field.token, null_on_oob=True)
    number = token.cast(pl.Float64 if field.is_float else pl.Int64, strict=False)
    number = pl.when(number <= BEYOND).then(number)
    # two fields may have one name (a wording that prints a number twice): the last one counts
    return (-number if field.negative else number).alias(f"f{position}")


def _time(plan: Plan, tokens: pl.Expr) -> pl.Expr:
    """Microseconds: from ``M.SS.mmm.uuu``, or as JSON has them."""
    if plan.time_index < 0:
        return pl.lit(None, dtype=pl.Int64)
    stamp = tokens.list.get(plan.time_index, null_on_oob=True)
    if not plan.dotted_time:
        return stamp.cast(pl.Int64, strict=False)
    part = stamp.str.split_exact(".", 3).struct
    minutes, seconds, milli, micro = (part.field(f"field_{i}").cast(pl.Int64, strict=False) for i in range(4))
    return ((minutes * 60 + seconds) * 1000 + milli) * 1000 + micro
