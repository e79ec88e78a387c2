"""What an analysis gives: records, Polars frames, and a way back to the raw lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ckptlog.analysis.collector import no_collector
from ckptlog.analysis.to_records import summarize
from ckptlog.errors import InputError
from ckptlog.intake.sources import Source
from ckptlog.records import SCHEMA, Report, Tool
from ckptlog.timeline.limits import MAX_TURNS

if TYPE_CHECKING:
    import polars as pl

    from ckptlog.analysis.analyzer import Analyzer
    from ckptlog.analysis.parts import Joined
    from ckptlog.intake.lines import LineStore
    from ckptlog.timeline.model import Run


@dataclass(frozen=True)
class DriftItem:
    """Lines that the grammar does not understand, one item a shape.

    ``status`` is ``drifted`` (a known message in an unknown form: ``column`` is where Lark stopped,
    0-based in ``message``, ``expected`` what could have stood there) or ``unknown``.
    """

    source: int
    line: int
    text: str
    message: str
    status: str
    column: int | None
    expected: tuple[str, ...]
    literal: str
    count: int


@dataclass
class Analysis:
    """Everything read out of one or more logs.

    ``turns``, ``runs``, ``checkpoints`` are Polars frames (docs/python.md lists the columns),
    ``events`` a frame for each kind of message; ``report`` is the JSON report as records;
    ``line(source, n)`` is the raw line ``n`` (1-based) of a source.
    """

    analyzer: Analyzer | Joined
    #: the reading was stopped before the end: the report is of what had been read
    interrupted: bool = False

    @cached_property
    def warnings(self) -> list[str]:
        """What could not be read or was not kept, in sentences."""
        return self.analyzer.warnings

    @cached_property
    def report(self) -> Report:
        from ckptlog import __version__

        with no_collector():
            turns = sorted(self.analyzer.turns, key=lambda t: (t.source, t.lines[0], t.lines[1]))
            return Report(
                schema=SCHEMA,
                tool=Tool("ckptlog", __version__),
                sources=self.analyzer.source_records(),
                runs=self.analyzer.run_records(),
                turns=turns,
                checkpoints=self.analyzer.checkpoint_records(),
                summary=summarize(turns),
                warnings=self.warnings,
                left_out=dict(self.analyzer.left_out.counts),
            )

    @cached_property
    def timeline(self) -> list[Run]:
        """The runs with their turns as the timeline keeps them (for a replay).

        Of a big log they were not kept, or are in no process any more: it is read again then.
        """
        from ckptlog.analysis.analyzer import Analyzer
        from ckptlog.analysis.parts import Joined
        from ckptlog.intake.reader import read_chunks

        if not isinstance(self.analyzer, Joined) and self.analyzer.whole_timeline:
            return self.analyzer.runs
        again = Analyzer(most_whole=MAX_TURNS)
        with no_collector():
            for source in self.analyzer.sources:
                if source.is_stdin:
                    raise InputError("standard input can't be read a second time: ask analyze() for the timeline")
                copy = Source(source.path)
                again.begin(copy)
                for chunk in read_chunks(copy):
                    again.feed(chunk)
            again.finish()
        return again.runs

    @cached_property
    def turns(self) -> pl.DataFrame:
        """One row a turn."""
        from ckptlog.query.frames import turns_frame

        return turns_frame(self.report)

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row a server process."""
        from ckptlog.query.frames import runs_frame

        return runs_frame(self.report)

    @cached_property
    def checkpoints(self) -> pl.DataFrame:
        """One row a context checkpoint."""
        from ckptlog.query.frames import checkpoints_frame

        return checkpoints_frame(self.report)

    @cached_property
    def events(self) -> dict[str, pl.DataFrame]:
        """One frame a kind of message; the sources are read once more for it."""
        from ckptlog.analysis.event_frames import event_frames

        return event_frames(self.analyzer.sources)

    @cached_property
    def drift(self) -> list[DriftItem]:
        """What was not understood, the commonest first."""
        items = [
            DriftItem(source, d.line, d.text, d.message, d.status, d.column, d.expected, d.literal, d.count)
            for source, d in self.analyzer.drift
        ]
        return sorted(items, key=lambda item: (-item.count, item.source, item.line))

    @cached_property
    def _stores(self) -> list[LineStore]:
        from ckptlog.intake.lines import LineStore

        return [LineStore(source) for source in self.analyzer.sources]

    def line(self, source: int, n: int) -> str | None:
        """The raw line ``n`` of a source; null beyond its end."""
        return self._stores[source].line(n)

    def lines(self, source: int, first: int, last: int) -> list[str]:
        """The raw lines ``first`` to ``last`` (both included) of a source, as far as there are any."""
        return self._stores[source].lines(first, last)
