"""What the app shows, made from one picture of the log: turns, lanes, findings, raw lines."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ckptlog.records import Report, RunRecord, TurnRecord
from ckptlog.report.digest import Digest, Finding, Numbered, digest
from ckptlog.tui.lanes import Lane, LaneKey, make_lanes

if TYPE_CHECKING:
    import polars as pl

    from ckptlog.query.compile import CompiledFilter


class TurnId(NamedTuple):
    """A turn, whatever number it has: in a growing log numbers move."""

    source: int
    line: int
    slot: int | None
    task: int | None


def id_of(turn: TurnRecord) -> TurnId:
    return TurnId(turn.source, turn.lines[0], turn.slot, turn.task)


@dataclass
class Book:
    """A report with what is looked up in it again and again."""

    report: Report
    #: outcome filter, slot filter and the numbers that a filter expression lets through (null: all)
    outcomes: frozenset[str] = frozenset()
    lane_filter: LaneKey | None = None
    numbers: frozenset[int] | None = None
    _shown: tuple[object, list[Numbered]] | None = field(default=None, repr=False)

    def prepare(self) -> None:
        """Make now what the next key press would have to wait for: with a long log that takes seconds.

        For the thread that reads the log; the app's thread only looks up.
        """
        for finding in self.digest.findings:
            _ = finding.worst
        _ = self.digest.lost, self.failed, self._lane_of, self._finding_of, self.shown
        for lane in self.lanes.values():
            lane.prepare()

    @cached_property
    def digest(self) -> Digest:
        return digest(self.report)

    @property
    def turns(self) -> list[Numbered]:
        """All turns, in the order of sources and lines."""
        return self.digest.turns

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The turns as the filter language sees them."""
        from ckptlog.query.frames import turns_frame

        return turns_frame(self.report)

    @cached_property
    def failed(self) -> list[Numbered]:
        """The turns that failed or ended in an error."""
        return [item for item in self.turns if item.turn.failed or item.turn.outcome == "error"]

    @cached_property
    def lanes(self) -> dict[LaneKey, Lane]:
        return make_lanes(self.report, self.turns)

    @cached_property
    def _lane_of(self) -> list[Lane]:
        lane_of: list[Lane] = [*self.lanes.values()][:1] * len(self.turns)
        for lane in self.lanes.values():
            for item in lane.turns:
                lane_of[item.number - 1] = lane
        return lane_of

    @cached_property
    def _runs(self) -> dict[int, RunRecord]:
        return {run.run: run for run in self.report.runs}

    @cached_property
    def _finding_of(self) -> dict[int, Finding]:
        return {item.number: finding for finding in self.digest.findings for item in finding.turns}

    def lane_of(self, item: Numbered) -> Lane:
        return self._lane_of[item.number - 1]

    def find(self, wanted: TurnId) -> Numbered | None:
        """The turn that was selected before, in this book."""
        place = (wanted.source, wanted.line)
        at = bisect_left(self.turns, place, key=lambda item: (item.turn.source, item.turn.lines[0]))
        while at < len(self.turns) and (turn := self.turns[at].turn).source == wanted.source:
            if id_of(turn) == wanted:
                return self.turns[at]
            if turn.lines[0] != wanted.line:
                break
            at += 1
        return None

    def run_of(self, turn: TurnRecord) -> RunRecord | None:
        return self._runs.get(turn.run)

    def finding_of(self, item: Numbered) -> Finding | None:
        """The finding that a failed turn belongs to."""
        return self._finding_of.get(item.number)

    @property
    def worst(self) -> Numbered | None:
        """The turn to begin with: the worst finding's, or the last one when nothing is wrong."""
        if self.digest.findings:
            return self.digest.findings[0].worst
        return self.turns[-1] if self.turns else None

    def let_through(self, wanted: CompiledFilter | None) -> None:
        """Show only the turns for which an expression holds; null: all."""
        if wanted is None:
            self.numbers = None
        else:
            self.numbers = frozenset(self.frame.filter(wanted.expr)["turn"].to_list())

    @property
    def shown(self) -> list[Numbered]:
        """The turns that all filters let through, in the log's order."""
        filters = (self.outcomes, self.lane_filter, self.numbers)
        if not self.outcomes and self.lane_filter is None and self.numbers is None:
            return self.turns
        if self._shown is None or self._shown[0] != filters:
            self._shown = (filters, [item for item in self.turns if self._passes(item)])
        return self._shown[1]

    def _passes(self, item: Numbered) -> bool:
        if self.outcomes and item.turn.outcome not in self.outcomes:
            return False
        if self.numbers is not None and item.number not in self.numbers:
            return False
        return self.lane_filter is None or self.lane_of(item).key == self.lane_filter

    def source_name(self, source: int) -> str:
        """A source's file name, without its folder."""
        if 0 <= source < len(self.report.sources):
            path = self.report.sources[source].path
            return os.path.basename(path.replace("\\", "/")) or path
        return "?"

    def next_failed(self, after: int, step: int, among: Sequence[Numbered]) -> Numbered | None:
        """The next failed turn behind (or before) turn number ``after``; round the end to the other."""
        failed = [item for item in among if item.turn.failed or item.turn.outcome == "error"]
        if not failed:
            return None
        if step > 0:
            return next((item for item in failed if item.number > after), failed[0])
        return next((item for item in reversed(failed) if item.number < after), failed[-1])
