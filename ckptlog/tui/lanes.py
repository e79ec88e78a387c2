"""One slot's history, as the map needs it: its turns from left to right, its checkpoints' lives.

Everything here is plain data made from the report's records; nothing knows of a screen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ckptlog.records import CheckpointRecord, Report, RunRecord, TurnRecord
from ckptlog.report.digest import Numbered
from ckptlog.report.words import server_words

#: turns of which the checkpoints are listed together: a list for each turn would take more than the records
_BLOCK = 64


class LaneKey(NamedTuple):
    """Which slot: of the server that wrote source ``source``, or as ``server``, of several, into it (``port`` tells a
    router's children apart)."""

    source: int
    server: str | None
    port: int | None
    slot: int | None


@dataclass(frozen=True, eq=False)
class Life:
    """A checkpoint from birth to death, as indices into its lane's turns."""

    record: CheckpointRecord
    born: int
    died: int | None
    restored: frozenset[int]

    def at(self, index: int) -> bool:
        """Whether it was there while the turn ran, or was made or died in it."""
        return self.born <= index and (self.died is None or index <= self.died)

    def after(self, index: int) -> bool:
        """Whether it was still there when the turn had ended."""
        return self.born <= index and (self.died is None or index < self.died)


@dataclass(eq=False)
class Lane:
    """The turns of one slot, in the log's order, over all runs of the same server."""

    key: LaneKey
    runs: dict[int, RunRecord]
    turns: list[Numbered] = field(default_factory=list)
    records: list[CheckpointRecord] = field(default_factory=list)

    def prepare(self) -> None:
        """Make now what the map and the tables look up."""
        _ = self.index, self.refused, self.n_ctx, self.used, self._lives_near, self._ended_at

    @property
    def names(self) -> list[str]:
        """Which of several servers it is a slot of."""
        return next((server_words(run) for run in self.runs.values()), [])

    @property
    def name(self) -> str:
        slot = "no slot" if self.key.slot is None else f"slot {self.key.slot}"
        return ", ".join([slot, *self.names])

    @cached_property
    def index(self) -> dict[int, int]:
        """The place in ``turns`` of a turn's number."""
        return {item.number: index for index, item in enumerate(self.turns)}

    @cached_property
    def refused(self) -> bool:
        """Whether a prompt was refused."""
        return any(item.turn.outcome == "arrival-rejection" for item in self.turns)

    @cached_property
    def n_ctx(self) -> int | None:
        """The slot's context in tokens, the largest of its runs; null if the log doesn't tell."""
        sizes = [run.n_ctx_slot for run in self.runs.values() if run.n_ctx_slot]
        used_runs = {item.turn.run for item in self.turns}
        own = [run.n_ctx_slot for run in self.runs.values() if run.n_ctx_slot and run.run in used_runs]
        return max(own or sizes, default=None)

    @cached_property
    def used(self) -> int:
        """The highest position that any turn not refused reached."""
        return max((reach(item.turn, self.context_of(item.turn)) for item in self.turns), default=0)

    def context_of(self, turn: TurnRecord) -> int | None:
        run = self.runs.get(turn.run)
        return None if run is None else run.n_ctx_slot

    @cached_property
    def lives(self) -> list[Life]:
        """The slot's checkpoints in order of birth; those of turns not (yet) complete are left out."""
        by_task = {(item.turn.run, item.turn.task): index for index, item in enumerate(self.turns)}
        starts: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index, item in enumerate(self.turns):
            lines, places = starts[item.turn.run]
            lines.append(item.turn.lines[0])
            places.append(index)

        def at_line(run: int, line: int | None) -> int | None:
            """The turn that a line belongs to: what happens between two turns counts to the later one."""
            lines, places = starts[run]
            if line is None or not lines:
                return None
            before = bisect_right(lines, line)
            if not before:
                return places[0]
            place = places[before - 1]
            return place if line <= self.turns[place].turn.lines[1] else place + 1

        lives = []
        for record in self.records:
            # a copy from the prompt cache or a file names the task that made the original
            own = record.origin in ("created", "copied")
            born = by_task.get((record.run, record.task)) if own else None
            if born is None:
                born = at_line(record.run, record.line)
            if born is None or born >= len(self.turns):
                continue
            died = None
            if record.fate != "live":
                died = by_task.get((record.run, record.fate_task))
                if died is None:
                    died = at_line(record.run, record.fate_line)
            restored = frozenset(
                by_task[record.run, task] for task in record.restored_by if (record.run, task) in by_task
            )
            lives.append(Life(record, born, None if died is None else max(died, born), restored))
        last = self._last_of_runs
        # a server's end is the end of what it held, though no line says so
        ended = [
            life
            if life.died is not None or last[life.record.run] == len(self.turns) - 1
            else Life(life.record, life.born, last[life.record.run] + 1, life.restored)
            for life in lives
        ]
        return sorted(ended, key=lambda life: (life.born, life.record.line or 0))

    @cached_property
    def _last_of_runs(self) -> dict[int, int]:
        return {item.turn.run: index for index, item in enumerate(self.turns)}

    @cached_property
    def _lives_near(self) -> list[list[Life]]:
        """The checkpoints that were there in some of the first ``_BLOCK`` turns, of the next ones, and so on."""
        near: list[list[Life]] = [[] for _ in range(0, len(self.turns), _BLOCK)]
        for life in self.lives:
            last = len(self.turns) - 1 if life.died is None else min(life.died, len(self.turns) - 1)
            for block in range(life.born // _BLOCK, last // _BLOCK + 1):
                near[block].append(life)
        return near

    def lives_at(self, index: int) -> list[Life]:
        """Every checkpoint that was there at some time of a turn."""
        return self.lives_between(index, index)

    def lives_between(self, first: int, last: int) -> list[Life]:
        """Every checkpoint that was there at some time of the turns ``first`` to ``last``, in order of birth."""
        found: dict[Life, None] = {}
        for block in range(max(0, first) // _BLOCK, min(last, len(self.turns) - 1) // _BLOCK + 1):
            for life in self._lives_near[block]:
                if life.born <= last and (life.died is None or life.died >= first):
                    found[life] = None
        return list(found)

    @cached_property
    def _ended_at(self) -> dict[tuple[int, int | None], list[Life]]:
        """The dead checkpoints by run and by the line that tells their end."""
        ended: dict[tuple[int, int | None], list[Life]] = defaultdict(list)
        for life in self.lives:
            if life.record.fate != "live":
                ended[life.record.run, life.record.fate_line].append(life)
        return ended

    def blamed(self, turn: TurnRecord) -> list[Life]:
        """The dead checkpoints whose end is quoted as evidence for a turn."""
        lines = dict.fromkeys(evidence.line for evidence in turn.evidence)
        found = [life for line in lines for life in self._ended_at.get((turn.run, line), ())]
        return sorted(found, key=lambda life: (life.born, life.record.line or 0))

    def is_restart(self, index: int) -> bool:
        """Whether the server was started anew before this turn."""
        return index > 0 and self.turns[index].turn.run != self.turns[index - 1].turn.run


def reach(turn: TurnRecord, n_ctx: int | None) -> int:
    """The highest position (tokens) that a turn filled; 0 for a refused one, at most the context."""
    if turn.outcome == "arrival-rejection":
        return 0
    total = (turn.n_prompt or 0) + (turn.n_generated or 0)
    return min(total, n_ctx) if n_ctx else total


def make_lanes(report: Report, turns: Sequence[Numbered]) -> dict[LaneKey, Lane]:
    """The slots of a report, and of its numbered turns, in order; turns refused before they got a slot have a
    lane of their own, unless their server has only one slot."""
    runs = {run.run: run for run in report.runs}
    lanes: dict[LaneKey, Lane] = {}

    def lane(run_number: int, slot: int | None) -> Lane:
        run = runs.get(run_number)
        if slot is None and run is not None and run.n_slots == 1:
            slot = 0
        key = LaneKey(run.source if run else 0, run.server if run else None, run.port if run else None, slot)
        if key not in lanes:
            lanes[key] = Lane(key, {})
        if run is not None:
            lanes[key].runs[run_number] = run
        return lanes[key]

    for item in turns:
        lane(item.turn.run, item.turn.slot).turns.append(item)
    for record in report.checkpoints:
        lane(record.run, record.slot).records.append(record)
    order = sorted(lanes, key=lambda key: (key.source, key.server or "", key.port or 0, key.slot is None, key.slot or 0))
    return {key: lanes[key] for key in order if lanes[key].turns}
