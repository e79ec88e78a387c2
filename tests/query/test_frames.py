from __future__ import annotations

import polars as pl

from ckptlog.query.columns import BY_NAME, TURN_COLUMNS
from ckptlog.query.frames import TURNS_SCHEMA, checkpoints_frame, runs_frame, turns_frame
from ckptlog.records import SCHEMA, Report, Summary, Tool, TurnRecord


def test_column_names_are_unique_and_described() -> None:
    assert len(BY_NAME) == len(TURN_COLUMNS)
    assert all(column.about for column in TURN_COLUMNS)


def test_every_scalar_of_a_turn_is_a_column() -> None:
    spread = {"lines", "n_common_range", "basis", "mismatch", "checkpoints", "shifts", "evidence", "fixes"}
    prose = {"headline", "explanation", "not_fixes", "missing"}
    assert set(TurnRecord.__struct_fields__) - spread - prose <= set(BY_NAME)


def test_turns_are_flat_and_joined_with_run_and_source(frame: pl.DataFrame) -> None:
    assert frame["turn"].to_list() == [1, 2, 3, 4, 5]
    assert frame["path"].to_list() == ["logs/a.log"] * 5
    assert frame.row(1, named=True) | {
        "line": 21,
        "line_end": 40,
        "n_evicted": 1,
        "n_created": 1,
        "n_checkpoints": 2,
        "n_checkpoints_before": 1,
        "fix": "ctx-checkpoints",
        "model": "a/model.gguf",
        "port": 8080,
        "checkpoints_max": None,
    } == frame.row(1, named=True)
    assert frame.row(2, named=True)["checkpoints_max"] == 32
    assert frame.row(2, named=True)["memory"] == "hybrid"
    assert frame.row(4, named=True)["also"] == "limit-stop checkpoint-reprefill"
    assert frame.row(4, named=True)["n_discarded"] == 12


def test_unknown_lists_are_null_and_not_zero(frame: pl.DataFrame) -> None:
    assert frame["n_evicted"].to_list() == [None, 1, None, None, None]
    assert frame["n_shifts"].to_list() == [0, 0, 0, 0, 2]


def test_bounds_of_the_common_prefix_hold_an_exact_one_too(frame: pl.DataFrame) -> None:
    assert frame["n_common_min"].to_list() == [None, 900, None, 3, None]
    assert frame["n_common_max"].to_list() == [None, 900, None, 9, None]


def test_an_empty_report_has_the_same_columns_and_types() -> None:
    empty = Report(SCHEMA, Tool("ckptlog", "0"), [], [], [], [], Summary())
    assert turns_frame(empty).schema == pl.Schema(TURNS_SCHEMA)
    assert runs_frame(empty).height == checkpoints_frame(empty).height == 0
    assert checkpoints_frame(empty).schema["restored_by"] == pl.List(pl.Int64)


def test_runs_and_checkpoints(report: Report) -> None:
    runs = runs_frame(report)
    assert runs["checkpoints_min_step"].to_list() == [None, 64]
    assert runs["path"].to_list() == ["logs/a.log"] * 2
    checkpoint = checkpoints_frame(report).row(0, named=True)
    assert checkpoint["fate"] == "evicted"
    assert checkpoint["restored_by"] == [2, 3]
