"""Turns made by hand, in the four shapes that the language has to keep apart."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from ckptlog.query.frames import turns_frame
from ckptlog.records import (
    SCHEMA,
    CheckpointRecord,
    CheckpointSettings,
    Fix,
    Report,
    RunRecord,
    ShiftRecord,
    SourceRecord,
    Summary,
    Tool,
    TurnCheckpoints,
    TurnRecord,
)


def turn(**given: Any) -> TurnRecord:
    """A turn about which nothing is known but what is given."""
    fields: dict[str, Any] = dict.fromkeys(TurnRecord.__struct_fields__)
    fields |= {"source": 0, "run": 0, "lines": (1, 2), "ended": "release", "outcome": "reused"}
    fields |= {"failed": False, "also": [], "confidence": "observed", "basis": {}, "shifts": []}
    fields |= {"evidence": [], "fixes": [], "headline": "", "explanation": "", "not_fixes": [], "missing": []}
    return TurnRecord(**(fields | given))


@pytest.fixture(scope="session")
def report() -> Report:
    turns = [
        turn(slot=0, task=1, lines=(10, 20), outcome="cold", n_prompt=1000, n_cached=0, n_lost=0),
        turn(
            slot=0,
            task=2,
            lines=(21, 40),
            outcome="checkpoint-reprefill",
            severity="costly",
            failed=True,
            cause="checkpoint-evicted",
            n_prompt=2000,
            n_cached=0,
            n_common=900,
            n_lost=900,
            prompt_ms=50.5,
            checkpoints=TurnCheckpoints(before=[950], after=[1990, 1999], created=[1990], evicted=[900]),
            fixes=[Fix("ctx-checkpoints", "keep more")],
        ),
        turn(
            slot=1,
            task=3,
            run=1,
            lines=(41, 50),
            outcome="arrival-rejection",
            failed=True,
            n_prompt=9000,
            n_cached=0,
            variant="near-miss",
        ),
        turn(slot=None, task=4, lines=(51, 52), outcome="unknown", n_common_range=(3, 9)),
        turn(
            slot=0,
            task=5,
            lines=(60, 80),
            outcome="context-shift",
            also=["limit-stop", "checkpoint-reprefill"],
            failed=True,
            n_prompt=3000,
            n_cached=3000,
            n_lost=0,
            truncated=True,
            shifts=[ShiftRecord(61, 0, 10, 5, (0, 5)), ShiftRecord(62, 0, 10, 7, (0, 7))],
        ),
    ]
    runs = [
        RunRecord(0, 0, (1, 100), build="b11549", model="a/model.gguf", n_slots=2, port=8080),
        RunRecord(1, 0, (1, 100), memory="hybrid", checkpoints=CheckpointSettings(True, 32, 64)),
    ]
    checkpoints = [CheckpointRecord(0, 0, 1, 12, "created", 900, 0, 899, 1.5, "evicted", 30, 2, [2, 3])]
    return Report(
        SCHEMA, Tool("ckptlog", "0"), [SourceRecord("logs/a.log")], runs, turns, checkpoints, Summary()
    )


@pytest.fixture(scope="session")
def frame(report: Report) -> pl.DataFrame:
    return turns_frame(report)
