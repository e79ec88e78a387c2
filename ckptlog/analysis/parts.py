"""A big log in parts, each analysed by a process of its own, and the parts put together.

A part begins where a server was started anew: no turn, slot, list or cache crosses such a line. That is
guessed from the bytes (a stamp that falls to the clock's beginning) and then proved from what was read: the
state at a part's end and the first event of the next one must be what begins a run for the tracker, too.
Where it can't be proved, ``Undivided`` is raised, and the log is to be read in one go.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import IO

import msgspec

from ckptlog.analysis.analyzer import Analyzer, source_record
from ckptlog.events import Drift, Tally
from ckptlog.events.extract import SAMPLE_LINES
from ckptlog.events.shape_book import MAX_SHAPES
from ckptlog.intake.encoding import SNIFF_BYTES, encoding_of
from ckptlog.intake.reader import CHUNK_BYTES, Chunk, Feeder
from ckptlog.intake.sources import Source, SourceFacts, open_raw
from ckptlog.intake.unpack import compression_of
from ckptlog.records import CheckpointRecord, Fix, RunRecord, SourceRecord, TurnRecord
from ckptlog.timeline.dialect import SAME_AS
from ckptlog.timeline.limits import (
    MAX_CHECKPOINTS,
    MAX_EMPTY,
    MAX_RUNS,
    MAX_TURNS,
    LeftOut,
    is_empty,
    weight,
)
from ckptlog.timeline.startup import STARTUP
from ckptlog.timeline.stream import CLOCK_FALL_US, StreamEnd, restarted
from ckptlog.verdict.replayed import number_runs, runs_to_number

#: how the first line of a process with a clock begins, and from where (microseconds) the clock must have fallen:
#: its first millisecond, or its first second
_CLOCK_STARTS = ((b"\n0.00.000.", 10_000), (b"\n0.00.", 2 * CLOCK_FALL_US))
_STAMP = re.compile(rb"^(\d{1,6})\.(\d\d)\.(\d{3})\.(\d{3}) ", re.MULTILINE)
#: how far before a line its predecessor's stamp is looked for, and for how many lines
_LOOK_BACK = 4 << 10
_MOST_LOOKS = 2000


class Undivided(Exception):
    """The log can't be read in parts, or what the parts say can't be put together for certain."""


class Span(msgspec.Struct):
    """A part of a file, in bytes; ``end`` null: up to where the file ends."""

    path: str
    start: int
    end: int | None


class Joint(msgspec.Struct):
    """What a part shows of its two ends. The first event has ``kind``, ``t`` and ``port``."""

    kind: str
    t: int | None
    port: int | None
    last_t: int | None
    seen_turn: bool
    waking: bool
    window_open: bool
    slot_files_written: bool
    slot_files_read: bool
    shapes: int
    left_out: bool


class Result(msgspec.Struct):
    """What one part gave. Runs are numbered from 0; lines are those of the whole file."""

    turns: list[TurnRecord]
    runs: list[RunRecord]
    checkpoints: list[CheckpointRecord]
    facts: SourceFacts
    tally: Tally
    joint: Joint


def divided(path: str, parts: int, lead: int) -> list[Span]:
    """The file in at most so many parts of about one size; the first is ``lead`` bytes longer.

    Raises Undivided if the file is no plain UTF-8 text with several server starts in it.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise Undivided
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            head = text[: 2 * SNIFF_BYTES]
            if (
                compression_of(head) is not None
                or not encoding_of(head).startswith("utf-8")
                or head[:1] == b"{"
            ):
                raise Undivided
            share = max(0, size - lead) // parts
            cuts = {_start_near(text, lead + number * share) for number in range(1, parts)} - {None}
    if not cuts:
        raise Undivided
    begins = [0, *sorted(cut for cut in cuts if cut is not None)]
    return [Span(path, start, end) for start, end in zip(begins, [*begins[1:], None], strict=True)]


def _start_near(text: mmap.mmap, position: int) -> int | None:
    """The line nearest to a position at which the clock begins anew; null if there is none in the file."""
    found = [place for mark, fall in _CLOCK_STARTS for place in _places(text, mark, fall, position)]
    return min(found, key=lambda start: abs(start - position), default=None)


def _places(text: mmap.mmap, mark: bytes, fall: int, position: int) -> Iterator[int]:
    """The nearest such lines before and behind a position."""
    steps: list[Callable[[int], int]] = [
        lambda place: text.rfind(mark, 0, place),
        lambda place: text.find(mark, place + 1),
    ]
    for step in steps:
        place = step(position)
        for _ in range(_MOST_LOOKS):
            if place < 0:
                break
            if _begins_anew(text, place, fall):
                yield place + 1
                break
            place = step(place)


def _begins_anew(text: mmap.mmap, newline: int, fall: int) -> bool:
    """Is the last stamp before this newline one of an older process?"""
    stamps = list(_STAMP.finditer(text[max(0, newline - _LOOK_BACK) : newline + 1]))
    return bool(stamps) and _us(stamps[-1]) >= fall


def _us(stamp: re.Match[bytes]) -> int:
    minutes, seconds, milli, micro = map(int, stamp.groups())
    return ((minutes * 60 + seconds) * 1000 + milli) * 1000 + micro


class Part:
    """The analysis of one part, in this process; kept until it is said which runs are to be numbered."""

    def __init__(self, span: Span, progress: Callable[[int], None] | None = None) -> None:
        source = Source(span.path)
        self.analyzer = Analyzer(whole_timeline=False)
        self.analyzer.begin(source)
        extractor, tracker = self.analyzer.extractor, self.analyzer.tracker
        first: tuple[str, int | None, int | None] | None = None
        for chunk in _chunks(source, span):
            events = extractor.feed(chunk)
            if extractor.writers.named:
                raise Undivided
            if events and first is None:
                first = events[0].kind, events[0].t, events[0].port
            tracker.feed(events)
            if progress is not None:
                progress(source.facts.raw_bytes)
        window_open = extractor.windows.is_open
        # what ends the open turns of a part that is not the last one is the next server's start
        self.analyzer.end("cut" if span.end is None else "restart")
        if (
            first is None
            or first[0] in SAME_AS
            or len(tracker.streams) != 1
            or source.facts.encoding != "utf-8"
            or extractor.learner.forms
            or extractor.rejoiner.n_joined
            or extractor.rejoiner.n_cut
        ):
            raise Undivided
        stream = tracker.streams[0]
        if stream.ollama:
            raise Undivided  # what runs the server is told once, and true of all parts
        end = stream.end
        self.joint = Joint(
            *first, *end, window_open, bool(stream.slot_files), stream.slot_files_read, len(extractor.book.index),
            bool(self.analyzer.left_out.counts or tracker.clock_falls or tracker.torn),
        )  # fmt: skip

    @property
    def turns(self) -> int:
        """How many turns the part has."""
        return len(self.analyzer.turns)

    def result(self) -> Result:
        analyzer = self.analyzer
        return Result(
            analyzer.turns, analyzer.run_records(), analyzer.checkpoint_records(),
            analyzer.sources[0].facts, analyzer.extractor.tally, self.joint,
        )  # fmt: skip

    def number(self, chosen: Sequence[int]) -> dict[int, list[Fix]]:
        """Fixes with numbers for these runs, by the turn's place in ``Result.turns``."""
        turns = self.analyzer.turns
        before = {i: turn.fixes for i, turn in enumerate(turns) if turn.run in chosen}
        number_runs(self.analyzer.runs, turns, chosen)
        return {i: turns[i].fixes for i, fixes in before.items() if turns[i].fixes is not fixes}


def _chunks(source: Source, span: Span) -> Iterator[Chunk]:
    """The part's chunks, with the file's line numbers and offsets."""
    feeder = Feeder(source)
    with open_raw(source) as raw:
        lines = _lines_before(raw, span.start)
        while data := raw.read(CHUNK_BYTES if span.end is None else min(CHUNK_BYTES, span.end - raw.tell())):
            for chunk in feeder.stream(data):
                yield _moved(chunk, lines, span.start)
            if source.facts.binary and not span.start:
                raise Undivided
        for chunk in feeder.finish():
            yield _moved(chunk, lines, span.start)
    source.facts.binary = False
    if span.start and lines < SAMPLE_LINES:
        raise Undivided


def _moved(chunk: Chunk, lines: int, offset: int) -> Chunk:
    return chunk._replace(first_line=chunk.first_line + lines, offset=chunk.offset + offset)


def _lines_before(raw: IO[bytes], end: int) -> int:
    """How many lines stand in front of a position; the file is at that position then."""
    lines = 0
    while raw.tell() < end:
        lines += raw.read(min(1 << 20, end - raw.tell())).count(b"\n")
    return lines


class Joined:
    """The results of all parts as one: what an analysis asks of an ``Analyzer``, but for the timeline.

    Raises Undivided if they may not be what one reading of the whole file would have given.
    """

    def __init__(self, path: str, results: Sequence[Result]) -> None:
        _prove(results)
        self.sources = [Source(path, results[0].facts)]
        self.turns: list[TurnRecord] = []
        self._runs: list[RunRecord] = []
        self._checkpoints: list[CheckpointRecord] = []
        self._first_runs: list[int] = []
        self._tally = results[0].tally
        for result in results:
            first = len(self._runs)
            self._first_runs.append(first)
            _renumber(result, first)
            self.turns += result.turns
            self._runs += result.runs
            self._checkpoints += result.checkpoints
            if result is not results[0]:
                _add(self.sources[0].facts, result.facts)
                self._tally.add(result.tally)

    @property
    def warnings(self) -> list[str]:
        """None: a log with something to be warned of is read in one go."""
        return []

    @property
    def left_out(self) -> LeftOut:
        """Nothing, likewise."""
        return LeftOut()

    @property
    def drift(self) -> list[tuple[int, Drift]]:
        return [(0, drift) for drift in self._tally.drift.values()]

    def run_records(self) -> list[RunRecord]:
        return self._runs

    def checkpoint_records(self) -> list[CheckpointRecord]:
        return self._checkpoints

    def source_records(self) -> list[SourceRecord]:
        return [source_record(self.sources[0], self._tally)]

    def chosen(self) -> list[list[int]]:
        """The runs whose fixes get numbers, by part, as the part numbers them."""
        chosen = runs_to_number(self.turns)
        ends = [*self._first_runs[1:], len(self._runs)]
        return [[no - a for no in chosen if a <= no < b] for a, b in zip(self._first_runs, ends, strict=True)]


def _renumber(result: Result, first: int) -> None:
    """The numbers of its runs in the whole file, of which ``first`` came before."""
    for turn in result.turns:
        turn.run += first
    for run in result.runs:
        run.run += first
    for checkpoint in result.checkpoints:
        checkpoint.run += first


def _prove(results: Sequence[Result]) -> None:
    """Each part must begin with what begins a run for a tracker that has seen the one before."""
    joints = [result.joint for result in results]
    for before, after in pairwise(joints):
        end = StreamEnd(before.last_t, before.seen_turn, before.waking)
        if before.window_open or after.port != before.port or after.kind not in STARTUP:
            raise Undivided
        if not restarted(end, after.kind, after.t):
            raise Undivided
    written = False
    for joint in joints:
        if written and joint.slot_files_read:
            raise Undivided
        written = written or joint.slot_files_written
    # shapes beyond the limit, and warnings that give counts, depend on all that was read before
    if sum(joint.shapes for joint in joints) > MAX_SHAPES or any(result.facts.warnings for result in results):
        raise Undivided
    if any(joint.left_out for joint in joints) or not _within_limits(results):
        raise Undivided


def _within_limits(results: Sequence[Result]) -> bool:
    """Would one reading have kept all of that?"""
    return (
        sum(weight(turn) for result in results for turn in result.turns) < MAX_TURNS
        and sum(is_empty(turn) for result in results for turn in result.turns) < MAX_EMPTY
        and sum(len(result.runs) for result in results) < MAX_RUNS
        and sum(len(result.checkpoints) for result in results) < MAX_CHECKPOINTS
    )


def _add(facts: SourceFacts, later: SourceFacts) -> None:
    facts.bytes += later.bytes
    facts.raw_bytes += later.raw_bytes
    facts.lines += later.lines
    facts.broken += later.broken
    facts.ends_in_mid_line = later.ends_in_mid_line
