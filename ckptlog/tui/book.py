"""What the app shows, made from one picture of the log: turns, lanes, findings, raw lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ckptlog.records import Report, RunRecord, TurnRecord
from ckptlog.report.digest import Digest, Finding, Numbered, digest
from ckptlog.tui.lanes import Lane, LaneKey, make_lanes


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

    @cached_property
    def digest(self) -> Digest:
        return digest(self.report)

    @cached_property
    def turns(self) -> list[Numbered]:
        return [Numbered(number, turn) for number, turn in enumerate(self.report.turns, 1)]

    @cached_property
    def failed(self) -> list[Numbered]:
        """The turns that failed or ended in an error."""
        return [item for item in self.turns if item.turn.failed or item.turn.outcome == "error"]

    @cached_property
    def lanes(self) -> dict[LaneKey, Lane]:
        return make_lanes(self.report)

    @cached_property
    def _lane_of(self) -> dict[int, Lane]:
        return {item.number: lane for lane in self.lanes.values() for item in lane.turns}

    @cached_property
    def _by_id(self) -> dict[TurnId, Numbered]:
        return {id_of(item.turn): item for item in self.turns}

    @cached_property
    def _runs(self) -> dict[int, RunRecord]:
        return {run.run: run for run in self.report.runs}

    @cached_property
    def _finding_of(self) -> dict[int, Finding]:
        return {item.number: finding for finding in self.digest.findings for item in finding.turns}

    def lane_of(self, item: Numbered) -> Lane:
        return self._lane_of[item.number]

    def find(self, wanted: TurnId) -> Numbered | None:
        """The turn that was selected before, in this book."""
        return self._by_id.get(wanted)

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

    @property
    def shown(self) -> list[Numbered]:
        """The turns that all filters let through, in the log's order."""
        filters = (self.outcomes, self.lane_filter, self.numbers)
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
