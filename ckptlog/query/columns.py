"""The flat columns of the ``turns`` frame: name, type, words, and where each value comes from.

The one list behind the frame, the filter language, its error messages and docs/filter-language.md.
Imports no Polars, so that a command's help may print it.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ckptlog.query import words
from ckptlog.records import Report, RunRecord, SourceRecord, TurnRecord

Value = int | float | str | bool | None
DataType = Literal["Int64", "Float64", "String", "Boolean"]


class TurnRow(NamedTuple):
    """A turn with what it is joined with; ``number`` counts the report's turns from 1."""

    number: int
    turn: TurnRecord
    run: RunRecord | None
    source: SourceRecord | None


def turn_rows(report: Report) -> list[TurnRow]:
    """The report's turns in its order, each with its run and source."""
    runs = {run.run: run for run in report.runs}
    sources = dict(enumerate(report.sources))
    return [
        TurnRow(number, turn, runs.get(turn.run), sources.get(turn.source))
        for number, turn in enumerate(report.turns, start=1)
    ]


@dataclass(frozen=True, slots=True)
class TurnColumn:
    """One column: Polars type by name, what the value is, and how it is taken from a row."""

    name: str
    type: DataType
    about: str
    value: Callable[[TurnRow], Value]
    #: every value the column can have; empty when it is free text or a number
    words: tuple[str, ...] = ()


def _of_turn(name: str, type_: DataType, about: str, known: tuple[str, ...] = ()) -> TurnColumn:
    return TurnColumn(name, type_, about, lambda row: getattr(row.turn, name), known)


def _of_run(name: str, type_: DataType, about: str, known: tuple[str, ...] = ()) -> TurnColumn:
    def value(row: TurnRow) -> Value:
        return None if row.run is None else getattr(row.run, name)

    return TurnColumn(name, type_, about, value, known)


def _of_settings(name: str, field: str, type_: DataType, about: str) -> TurnColumn:
    def value(row: TurnRow) -> Value:
        settings = None if row.run is None else row.run.checkpoints
        return None if settings is None else getattr(settings, field)

    return TurnColumn(name, type_, about, value)


def _count_of(name: str, field: str, about: str) -> TurnColumn:
    def value(row: TurnRow) -> Value:
        if row.turn.checkpoints is None:
            return None
        listed: Sized = getattr(row.turn.checkpoints, field)
        return len(listed)

    return TurnColumn(name, "Int64", about, value)


def _first_fix(row: TurnRow) -> Value:
    return row.turn.fixes[0].name if row.turn.fixes else None


def _restored(row: TurnRow) -> Value:
    return None if row.turn.checkpoints is None else row.turn.checkpoints.restored


def _common_range(row: TurnRow, end: Literal[0, 1]) -> Value:
    if row.turn.n_common_range is not None:
        return row.turn.n_common_range[end]
    return row.turn.n_common


TURN_COLUMNS: tuple[TurnColumn, ...] = (
    TurnColumn("turn", "Int64", "the turn's number in the report, from 1", lambda row: row.number),
    _of_turn("source", "Int64", "index of the input file, from 0"),
    TurnColumn(
        "path",
        "String",
        "the input file, as given",
        lambda row: None if row.source is None else row.source.path,
    ),
    _of_turn("run", "Int64", "number of the server process, from 0"),
    _of_turn("slot", "Int64", "the slot"),
    _of_turn("task", "Int64", "the task"),
    _of_turn("child_of", "Int64", "the task this one is a child of (n > 1), else null"),
    TurnColumn("line", "Int64", "first line", lambda row: row.turn.lines[0]),
    TurnColumn("line_end", "Int64", "last line", lambda row: row.turn.lines[1]),
    _of_turn("t_start", "Float64", "start, seconds since the run's start"),
    _of_turn("t_end", "Float64", "end, seconds since the run's start"),
    _of_turn("ended", "String", "how it ended", words.ENDS),
    _of_turn("outcome", "String", "what the server did", words.OUTCOMES),
    _of_turn("severity", "String", "of a re-prefill: whether it cost anything", words.SEVERITIES),
    _of_turn("failed", "Boolean", "a failure outcome that is not harmless"),
    TurnColumn(
        "also", "String", "its other failures, with spaces between", lambda row: " ".join(row.turn.also)
    ),
    _of_turn("variant", "String", "which kind of that outcome", words.VARIANTS),
    _of_turn("trigger", "String", "what the request did", words.TRIGGERS),
    _of_turn("cause", "String", "why the server could not resume", words.CAUSES),
    _of_turn("confidence", "String", "how the verdict is known", words.BASES),
    TurnColumn("fix", "String", "name of the first fix", _first_fix),
    _of_turn("n_prompt", "Int64", "tokens of the whole prompt"),
    _of_turn("n_common", "Int64", "tokens in common with the slot when checkpoints were searched"),
    TurnColumn("n_common_min", "Int64", "lower bound of n_common", lambda row: _common_range(row, 0)),
    TurnColumn("n_common_max", "Int64", "upper bound of n_common", lambda row: _common_range(row, 1)),
    _of_turn("n_common_slot", "Int64", "tokens in common with the slot when it was chosen"),
    _of_turn("n_known", "Int64", "best common prefix with anything the server held or had held"),
    _of_turn("n_cached", "Int64", "prompt tokens reused"),
    _of_turn("n_processed", "Int64", "prompt tokens evaluated"),
    _of_turn("n_generated", "Int64", "tokens generated"),
    _of_turn("n_lost", "Int64", "tokens in common that were processed again"),
    _of_turn("truncated", "Boolean", "the server cut the prompt or the answer"),
    _of_turn("prompt_ms", "Float64", "prompt processing, milliseconds"),
    _of_turn("generation_ms", "Float64", "generation, milliseconds"),
    _of_turn("lost_ms", "Float64", "time of n_lost at the turn's own speed, milliseconds"),
    TurnColumn(
        "mismatch_pos",
        "Int64",
        "token at which prompt and slot part",
        lambda row: None if row.turn.mismatch is None else row.turn.mismatch.pos,
    ),
    _count_of("n_checkpoints_before", "before", "checkpoints held when they were searched"),
    _count_of("n_checkpoints", "after", "checkpoints held at the end"),
    TurnColumn("restored", "Int64", "position of the checkpoint resumed from, tokens", _restored),
    _count_of("n_created", "created", "checkpoints created"),
    _count_of("n_evicted", "evicted", "checkpoints pushed out because the slot was full"),
    _count_of("n_thinned", "thinned", "checkpoints dropped as too close to another"),
    _count_of("n_superseded", "superseded", "checkpoints replaced"),
    _count_of("n_invalidated", "invalidated", "checkpoints beyond the divergence, dropped"),
    _count_of("n_cleared", "cleared", "checkpoints lost to a shift, a cleared slot or a swap"),
    TurnColumn("n_shifts", "Int64", "context shifts", lambda row: len(row.turn.shifts)),
    TurnColumn(
        "n_discarded",
        "Int64",
        "tokens deleted by shifts",
        lambda row: sum(s.n_discard for s in row.turn.shifts),
    ),
    _of_run("build", "String", "the server's build, such as 'b11549'"),
    _of_run("build_min", "Int64", "oldest build that fits"),
    _of_run("build_max", "Int64", "newest build that fits"),
    _of_run("model", "String", "the model"),
    _of_run("arch", "String", "the model's architecture"),
    _of_run("memory", "String", "kind of memory", words.MEMORIES),
    _of_run("n_slots", "Int64", "slots of the server"),
    _of_run("n_ctx_slot", "Int64", "context of a slot, tokens"),
    _of_settings("checkpoints_max", "max", "Int64", "most checkpoints a slot may hold"),
    _of_settings("checkpoints_min_step", "min_step", "Int64", "least distance of two checkpoints, tokens"),
    _of_run("port", "Int64", "the server's port"),
    _of_run("server", "String", "the server's name in the log's wrapper, where there are several"),
)

BY_NAME: dict[str, TurnColumn] = {column.name: column for column in TURN_COLUMNS}
