"""From chunks of lines to events, in log order.

Per chunk, in columns: keep the lines that can matter and find each line's shape (shapes.py), look the shape
up (a new one is planned once, see plan.py), and cut the number tokens out of the lines whose kind the timeline
needs. Then one pass in Python makes the events, each by its shape's own function (builders.py). Lines of the
commonest shapes take a shorter way (lane.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

import polars as pl

from ckptlog.events.by_line import event_by_line
from ckptlog.events.by_writer import Reading, WriterWindows
from ckptlog.events.columns import microseconds, sound_number
from ckptlog.events.event import Event
from ckptlog.events.lanes import Lanes
from ckptlog.events.numbers import NUMBER, padded_number_tokens
from ckptlog.events.plan import Planner
from ckptlog.events.shape_book import ShapeBook
from ckptlog.events.shapes import LINE_HEADS, SHAPE_CHARS, LineFilter
from ckptlog.events.tally import Tally
from ckptlog.events.wrapped import Rejoiner
from ckptlog.grammar import messages
from ckptlog.intake.learner import Learner
from ckptlog.intake.reader import Chunk
from ckptlog.intake.unwrap import Envelope, unwrap
from ckptlog.intake.writers import Writers

#: lines at the beginning from which the log's form is told
SAMPLE_LINES = 400
#: more tokens than any line has
MANY = 1 << 40
#: of a big first chunk, the lines from which lanes are learned for the others
LEARN_LINES = 10_000


class Extractor:
    """Turns the chunks of one source into events.

    ``needed`` names the kinds to be turned into events; ``evidence`` those whose raw text is kept;
    ``blocks`` those of which neighbouring lines may become one event, and the fields that are wanted of each line.
    However the lines are cut into chunks, the events are the same (but for where a block is cut).
    """

    def __init__(self, needed: Iterable[str], evidence: Iterable[str], blocks: Mapping[str, tuple[str, ...]] | None = None) -> None:
        grammar = messages()
        self.needed = frozenset(needed)
        self.planner = Planner(grammar, self.needed, frozenset(evidence))
        self.filter = LineFilter(grammar, self.needed, self.planner.text_heads)
        self.tally = Tally()
        self.book = ShapeBook(self.planner, self.tally)
        self.writers = Writers()
        self.windows = WriterWindows()
        self._sampled: dict[str, Envelope] = {}
        self.lanes = Lanes(self.book, blocks or {})
        self.learner = Learner()
        self.rejoiner = Rejoiner(self.planner.told)

    def feed(self, chunk: Chunk) -> list[Event]:
        """The events of one chunk (some may be held back until a later chunk decides them)."""
        return self._of(self.ready(chunk))

    def finish(self) -> list[Event]:
        """The events still held back at the end of the input."""
        return self._of(self.rest()) + [event for _, events in self.windows.finish() for event in events]

    def ready(self, chunk: Chunk) -> list[Chunk]:
        """The chunks that ``read`` can take by now: their lines are those that the server printed."""
        return [ready for learned in self.learner.feed(chunk) for ready in self.rejoiner.feed(learned)]

    def rest(self) -> list[Chunk]:
        """No more lines: what was still kept back."""
        last = [ready for learned in self.learner.finish() for ready in self.rejoiner.feed(learned)]
        return [*last, *self.rejoiner.finish()]

    def through(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """``ready`` of all of them, to the last."""
        return self.rejoiner.through(self.learner.through(chunks))

    def _of(self, chunks: Iterable[Chunk]) -> list[Event]:
        return [event for chunk in chunks for _, events in self.windows.feed(self.read(chunk)) for event in events]

    def read(self, chunk: Chunk) -> Reading:
        """What the lines of a chunk that is ready say, one by one: ``windows`` puts together the texts that span lines."""
        if self.learner.forms:
            self.tally.around = "other"
        if chunk.first_line <= SAMPLE_LINES:
            self._look_around(chunk)
        raw = chunk.lines if chunk.raw is None else chunk.raw
        if chunk.first_line == 1:
            self.writers.begin(raw)
        owners = self.writers.of(raw)
        frame = _owned(self.filter.numbered(chunk), owners)
        whole = self.lanes or frame.height <= 2 * LEARN_LINES
        events: list[Event] = []
        for at, size in ((0, None),) if whole else ((0, LEARN_LINES), (LEARN_LINES, None)):
            events += self._read(frame.slice(at, size))
            if events and not self.writers.known:
                self.writers.learn(raw[events[0].line - chunk.first_line])
                owners = self.writers.of(raw)
                frame = _owned(frame, owners)
        self.windows.escaped_from = self.book.escaped_from
        return Reading(chunk, events, owners)

    def _read(self, frame: pl.DataFrame) -> list[Event]:
        """The events of lines (no, line): by lanes as far as there are any, else the long way."""
        events, frame = self.lanes.read(frame)
        frame = self.filter.candidates(frame)
        if frame.height:
            events += self._lines(frame)
        events.sort(key=_line_number)
        return events

    def _look_around(self, chunk: Chunk) -> None:
        """What stands around the messages at the log's beginning, whether they are needed or not."""
        first = chunk.lines.head(SAMPLE_LINES - chunk.first_line + 1).str.slice(0, SHAPE_CHARS)
        for line in first.filter(first.str.contains_any([*LINE_HEADS, *self.filter.literals])):
            shape = padded_number_tokens.sub("#", line)
            envelope = self._sampled.get(shape)
            if envelope is None:
                envelope = self._sampled[shape] = unwrap(line)
            if envelope.family is not None:
                told = envelope.family != "bare" or envelope.format != "legacy"
                self.tally.count_form(envelope.wrapper or "", (envelope.format or "") if told else "")

    def _lines(self, frame: pl.DataFrame) -> list[Event]:
        """An event for each line of a needed kind, in any order."""
        rows = self._planned(frame)
        if not rows.height:
            return []
        if not rows["odd"].any():
            return self._made(rows)
        return [*self._made(rows.filter(~pl.col("odd"))), *self._by_line(rows.filter(pl.col("odd")))]

    def _by_line(self, rows: pl.DataFrame) -> Iterator[Event]:
        """Lines that can't be read by their tokens' places: unwrapped and parsed one by one."""
        for no, line, number in rows.select("no", "line", "plan").iter_rows():
            plan = self.book.plans[number]
            event = event_by_line(self.planner, no, line)
            if event is None:
                self.book.count_damaged(plan, line, no)
            elif event.kind in self.needed:
                yield event

    def _planned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The lines that give events, in order: no, line, plan, tokens, and if it is ``odd``: to be parsed by itself."""
        book = self.book
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
        wanted: list[tuple[str, int]] = []
        for shape, line, last, no, n in groups.select("shape", "line", "last", "no", "n").iter_rows():
            number = book.number(shape, line, last)
            if book.count(number, shape, line, no, n):
                self.lanes.learn(number, line, n)
                wanted.append((shape, number))
        if not wanted:
            return pl.DataFrame()
        plans = [book.plans[number] for _, number in wanted]
        table = pl.DataFrame(
            {
                "shape": [shape for shape, _ in wanted],
                "plan": [number for _, number in wanted],
                "stamp_at": [plan.time_index for plan in plans],
                "dotted": [plan.dotted_time for plan in plans],
                "least": [plan.n_tokens for plan in plans],
                "most": [MANY if plan.open_ended else plan.n_tokens for plan in plans],
                "text": [plan.keep_text or bool(plan.slices) for plan in plans],
                "odd": [plan.build is None for plan in plans],
            },
            schema_overrides={"plan": pl.Int64, "stamp_at": pl.Int64, "least": pl.Int64, "most": pl.Int64},
        )
        rows = frame.join(table, on="shape", how="inner", maintain_order="left").drop("shape")
        tokens = pl.col("line").str.slice(0, SHAPE_CHARS).str.extract_all(NUMBER)
        rows = rows.with_columns(tokens.alias("tokens"))
        size = pl.col("tokens").list.len().cast(pl.Int64)
        return rows.with_columns(pl.col("odd") | ~size.is_between(pl.col("least"), pl.col("most")))

    def _made(self, rows: pl.DataFrame) -> list[Event]:
        """The events of lines with as many number tokens as their plans say, in one pass."""
        size = pl.col("tokens").list.len().cast(pl.Int64)
        rows = rows.with_columns((size.cum_sum() - size).alias("at"))
        flat = rows["tokens"].explode(empty_as_null=False)
        numbers = pl.DataFrame([flat.alias("token")]).select(
            sound_number(pl.col("token"), is_float=False).alias("int"),
            sound_number(pl.col("token"), is_float=True).alias("float"),
        )
        stamp_at = pl.when(pl.col("stamp_at") >= 0).then(pl.col("at") + pl.col("stamp_at"))
        rows = rows.with_columns(flat.gather(rows.select(stamp_at).to_series()).alias("stamp"))
        dotted = rows["dotted"]
        stamp = pl.col("stamp")
        if dotted.all():
            time = microseconds(stamp, dotted=True)
        else:
            time = (
                pl.when("dotted")
                .then(microseconds(stamp, dotted=True))
                .otherwise(microseconds(stamp, dotted=False))
            )
        text = pl.when("text").then(pl.col("line"))
        table = rows.select("no", time.alias("t"), "at", "plan", text.alias("text"))
        ints, floats = numbers["int"].to_list(), numbers["float"].to_list()
        builds = [plan.build for plan in self.book.plans]
        events: list[Event] = []
        damaged: list[tuple[int, int]] = []
        for no, t, at, number, line in zip(*(table[name].to_list() for name in table.columns), strict=True):
            event = builds[number](no, t, at, ints, floats, line)  # those that have none are odd
            if event is not None:
                events.append(event)
            else:
                damaged.append((number, no))
        if damaged:
            lines = dict(
                rows.filter(pl.col("no").is_in([no for _, no in damaged])).select("no", "line").iter_rows()
            )
            for number, no in damaged:
                self.book.count_damaged(self.book.plans[number], lines[no], no)
        return events


def _owned(frame: pl.DataFrame, owners: int | pl.Series) -> pl.DataFrame:
    """Lines of several servers say whose they are."""
    return frame if isinstance(owners, int) else frame.with_columns(owners.alias("owner"))


_line_number = attrgetter("line")
