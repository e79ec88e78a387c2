"""The report's records as Polars frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ckptlog.query.columns import TURN_COLUMNS, turn_rows
from ckptlog.records import Report

_TYPES: dict[str, type[pl.DataType]] = {
    "Int64": pl.Int64,
    "Float64": pl.Float64,
    "String": pl.String,
    "Boolean": pl.Boolean,
}

TURNS_SCHEMA: dict[str, type[pl.DataType]] = {c.name: _TYPES[c.type] for c in TURN_COLUMNS}

RUNS_SCHEMA: dict[str, type[pl.DataType]] = {
    "run": pl.Int64,
    "source": pl.Int64,
    "path": pl.String,
    "line": pl.Int64,
    "line_end": pl.Int64,
    "build": pl.String,
    "build_min": pl.Int64,
    "build_max": pl.Int64,
    "model": pl.String,
    "arch": pl.String,
    "memory": pl.String,
    "n_swa": pl.Int64,
    "n_slots": pl.Int64,
    "n_ctx_slot": pl.Int64,
    "checkpoints_enabled": pl.Boolean,
    "checkpoints_max": pl.Int64,
    "checkpoints_min_step": pl.Int64,
    "prompt_cache_mib": pl.Float64,
    "context_shift": pl.Boolean,
    "slots_debug": pl.Boolean,
    "verbosity": pl.Int64,
    "port": pl.Int64,
    "server": pl.String,
}

CHECKPOINTS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.Int64,
    "slot": pl.Int64,
    "task": pl.Int64,
    "line": pl.Int64,
    "origin": pl.String,
    "n_tokens": pl.Int64,
    "pos_min": pl.Int64,
    "pos_max": pl.Int64,
    "size_mib": pl.Float64,
    "fate": pl.String,
    "fate_line": pl.Int64,
    "fate_task": pl.Int64,
    "restored_by": pl.List(pl.Int64),
}


def turns_frame(report: Report) -> pl.DataFrame:
    """One row a turn, in the report's order, with the columns of ``TURN_COLUMNS``."""
    rows = turn_rows(report)
    return _frame(TURNS_SCHEMA, {c.name: [c.value(row) for row in rows] for c in TURN_COLUMNS})


def runs_frame(report: Report) -> pl.DataFrame:
    """One row a server process; the fields of ``RunRecord``, its settings and lines spread out."""
    paths = dict(enumerate(source.path for source in report.sources))
    spread = [
        {
            "path": paths.get(run.source),
            "line": run.lines[0],
            "line_end": run.lines[1],
            "checkpoints_enabled": None if run.checkpoints is None else run.checkpoints.enabled,
            "checkpoints_max": None if run.checkpoints is None else run.checkpoints.max,
            "checkpoints_min_step": None if run.checkpoints is None else run.checkpoints.min_step,
        }
        for run in report.runs
    ]
    columns = {
        name: [
            extra[name] if name in extra else getattr(run, name)
            for run, extra in zip(report.runs, spread, strict=True)
        ]
        for name in RUNS_SCHEMA
    }
    return _frame(RUNS_SCHEMA, columns)


def checkpoints_frame(report: Report) -> pl.DataFrame:
    """One row a checkpoint, with the fields of ``CheckpointRecord``."""
    columns = {name: [getattr(c, name) for c in report.checkpoints] for name in CHECKPOINTS_SCHEMA}
    return _frame(CHECKPOINTS_SCHEMA, columns)


def _frame(
    schema: dict[str, type[pl.DataType]] | dict[str, pl.DataType | type[pl.DataType]],
    columns: dict[str, Sequence[Any]] | dict[str, list[Any]],
) -> pl.DataFrame:
    # a column at a time: with the type given, a column of nulls keeps it
    return pl.DataFrame([pl.Series(name, columns[name], dtype=type_) for name, type_ in schema.items()])
