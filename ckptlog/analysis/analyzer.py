"""The engine: chunks of lines in, judged turns out. Batch and follow mode use the same one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import Literal, cast

from ckptlog.analysis.ahead import ahead
from ckptlog.analysis.kept import KeptTurns
from ckptlog.analysis.to_records import checkpoint_record, run_record, turn_record, writers_told
from ckptlog.events import Drift, Extractor, Reading, Tally
from ckptlog.intake.reader import Chunk
from ckptlog.intake.sources import Source
from ckptlog.records import CheckpointRecord, Ended, RunRecord, SourceRecord, TurnRecord
from ckptlog.timeline.clock import mixed_words
from ckptlog.timeline.kinds import BLOCK_KINDS, EVIDENCE_KINDS, NEEDED_KINDS
from ckptlog.timeline.limits import MAX_EMPTY, MAX_RUNS, MAX_TURNS, LeftOut, is_empty, weight
from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.tracker import Tracker
from ckptlog.verdict.judge import judge
from ckptlog.verdict.replayed import put_numbers

#: turns up to which all of the timeline's own objects are kept: they take twice the memory of the records
MOST_WHOLE = 20_000

Format = Literal["prefixed", "legacy", "jsonl", "tagged", "mixed"]


class Analyzer:
    """Feed the chunks of one source after another; read ``turns`` and ``runs`` at any time.

    ``on_turn`` is called with each turn's record as soon as it is complete. ``keep_timeline`` keeps
    the timeline's own objects too (a replay needs them); without it memory is bounded by the records.
    With ``whole_timeline`` false, or from ``most_whole`` turns on, only those are kept that the numbers in
    fixes may need.
    """

    def __init__(
        self,
        on_turn: Callable[[TurnRecord], None] | None = None,
        *,
        keep_timeline: bool = True,
        whole_timeline: bool = True,
        most_whole: int = MOST_WHOLE,
    ) -> None:
        self.on_turn = on_turn
        self.keep_timeline = keep_timeline
        self.whole_timeline = keep_timeline and whole_timeline
        self._most_whole = most_whole
        self._kept = KeptTurns()
        #: what the limits of timeline/limits.py kept out
        self.left_out = LeftOut()
        self._weight = self._empty = 0
        self.turns: list[TurnRecord] = []
        self.sources: list[Source] = []
        self.drift: list[tuple[int, Drift]] = []
        self._extractors: list[Extractor] = []
        self._trackers: list[Tracker] = []
        #: the sources that may still get lines
        self._open: list[int] = []
        self._run_numbers = count()

    def begin(self, source: Source, *, after: int = -1, beside: bool = False) -> None:
        """The next source; its lines are numbered from 1.

        It may go on where the source number ``after`` (from 0; the last one if not told) has ended. Beside
        others it leaves those open that may still grow.
        """
        before = self._trackers[after] if self._trackers else None
        for index in list(self._open):
            if not beside or (after >= 0 and index == after):
                self._end(index)
        self.sources.append(source)
        self._extractors.append(Extractor(NEEDED_KINDS, EVIDENCE_KINDS, BLOCK_KINDS))
        self._open.append(len(self._trackers))
        self._trackers.append(
            Tracker(
                len(self._trackers),
                self._turn_done,
                before=before,
                run_numbers=self._run_numbers,
                left_out=self.left_out,
            )
        )

    def feed(self, chunk: Chunk, index: int = -1) -> None:
        """Lines of the current source, or of the source number ``index``."""
        extractor = self._extractors[index]
        for ready in extractor.ready(chunk):
            self._take(extractor.read(ready), index)

    def feed_all(self, chunks: Iterator[Chunk], left: threading.Event) -> Iterator[Chunk]:
        """Feeds chunk after chunk, reading one ahead; yields each when it is done. ``left`` as in ``ahead``."""
        extractor = self.extractor
        with closing(ahead(extractor.through(chunks), extractor.read, left)) as coming:
            for reading in coming:
                self._take(reading)
                yield reading.chunk

    def _take(self, reading: Reading, index: int = -1) -> None:
        extractor = self._extractors[index]
        for owner, events in extractor.windows.feed(reading):
            self._trackers[index].feed(events, extractor.writers.found[owner])

    def settle(self) -> None:
        """Hand over the turns that have been released, without waiting for the next line about their slots.

        For a follower: nothing was written for a while, so nothing more will be said of them.
        """
        for index in self._open:
            self._trackers[index].settle()

    def finish(self) -> None:
        """No more lines: what is open is cut."""
        self.end()
        if self._trackers and self.keep_timeline:
            put_numbers(self.runs, self.turns)

    def end(self, why: Ended = "cut") -> None:
        """As ``finish``, but the numbers in fixes stay estimates; ``why`` is what ended the open turns."""
        for index in list(self._open):
            self._end(index)
        for tracker in self._trackers:
            tracker.finish(why)

    @property
    def extractor(self) -> Extractor:
        """Of the current source."""
        return self._extractors[-1]

    @property
    def tracker(self) -> Tracker:
        """Of the current source."""
        return self._trackers[-1]

    def _end(self, index: int) -> None:
        """A source is at its end; a following one may go on with its runs."""
        self._open.remove(index)
        extractor, tracker = self._extractors[index], self._trackers[index]
        for ready in extractor.rest():
            self._take(extractor.read(ready), index)
        self.sources[index].facts.warnings += extractor.rejoiner.words
        for owner, events in extractor.windows.finish():
            tracker.feed(events, extractor.writers.found[owner])
        tracker.feed_waiting()
        self.drift.extend((index, drift) for drift in extractor.tally.drift.values())

    @property
    def runs(self) -> list[Run]:
        runs = [run for tracker in self._trackers for run in tracker.runs]
        # by number, which is their place here also where sources grow beside each other
        return sorted(runs, key=lambda run: run.no)

    @property
    def warnings(self) -> list[str]:
        """What a reader of the report must know of the reading, in sentences."""
        told = [warning for source in self.sources for warning in source.facts.warnings]
        names = [source.name for source in self.sources]
        mixed = [words for t in self._trackers if (words := mixed_words(t.clock_falls, t.torn, names, t.source))]
        return [*told, *mixed, *self.left_out.sentences(names)]

    def run_records(self) -> list[RunRecord]:
        named = writers_told(self.runs)
        return [run_record(run, named, self.mixed) for run in self.runs]

    @property
    def mixed(self) -> set[int]:
        """The sources into which several servers seem to write, by number."""
        return {tracker.source for tracker in self._trackers if tracker.clock_falls or tracker.torn}

    def checkpoint_records(self) -> list[CheckpointRecord]:
        return [checkpoint_record(c) for run in self.runs for c in run.checkpoints]

    def source_records(self) -> list[SourceRecord]:
        return [
            source_record(source, extractor.tally)
            for source, extractor in zip(self.sources, self._extractors, strict=True)
        ]

    def _turn_done(self, run: Run, turn: Turn) -> None:
        empty = is_empty(turn)
        self._empty += empty
        beyond = "turns" if self._weight >= MAX_TURNS else "empty" if empty and self._empty > MAX_EMPTY else None
        if beyond is not None or run.no >= MAX_RUNS:
            if beyond is not None:
                self.left_out.count(beyond, turn.source, turn.first_line)
            if self.on_turn is not None:  # a follower is told of it still
                self.on_turn(turn_record(run, turn, judge(run, turn)))
            return
        record = turn_record(run, turn, judge(run, turn))
        self._weight += weight(record)
        self.turns.append(record)
        if self.whole_timeline:
            run.turns.append(turn)
            if len(self.turns) > self._most_whole:
                self.whole_timeline = False
                self._kept.begin(self.runs, self.turns)
        elif self.keep_timeline:
            self._kept.add(run, turn, record)
        if self.on_turn is not None:
            self.on_turn(record)


def source_record(source: Source, tally: Tally) -> SourceRecord:
    """What reading one source has shown."""
    facts = source.facts
    wrapper = _main(tally.wrappers)
    return SourceRecord(
        path=source.path,
        lines=facts.lines,
        bytes=facts.bytes,
        encoding=facts.encoding,
        compression=facts.compression,
        wrapper=wrapper or None,
        format=_format(tally.formats),
        drifted_lines=tally.drifted_lines,
        unknown_slot_lines=tally.unknown_slot_lines,
    )


def _main(counts: dict[str, int]) -> str | None:
    """The commonest non-empty word, if it stands on a good part of the lines."""
    total = sum(counts.values())
    named = {word: n for word, n in counts.items() if word}
    if not named:
        return None
    word = max(named, key=lambda w: named[w])
    return word if named[word] * 10 >= total or total < 20 else None


def _format(formats: dict[str, int]) -> Format | None:
    counts = {word: n for word, n in formats.items() if word}
    total = sum(counts.values())
    if not total:
        return None
    word = max(counts, key=lambda w: counts[w])
    return cast(Format, word) if counts[word] >= 0.9 * total else "mixed"
