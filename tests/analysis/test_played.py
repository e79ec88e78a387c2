"""Servers played by hand, with what each answered: whatever ckptlog says of a request is what the client was told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ckptlog
from ckptlog.records import TurnRecord

FOLDER = Path(__file__).parents[1] / "data" / "played"
LOGS = sorted(FOLDER.rglob("*.log.gz"))

#: the answer's figure, and ckptlog's
FIGURES = {
    "cache_n": "n_cached",
    "prompt_n": "n_processed",
    "predicted_n": "n_generated",
    "truncated": "truncated",
    "id_slot": "slot",
}


def name_of(log: Path) -> str:
    return str(log.relative_to(FOLDER)).removesuffix(".log.gz").replace("\\", "/")


def answers(log: Path) -> Iterator[dict[str, Any]]:
    """The answers with figures. To an empty prompt builds up to b9713 repeat those of the answer before."""
    told = json.loads(log.with_name(log.name.replace(".log.gz", ".answers.json")).read_text())
    return (answer for answer in told if "cache_n" in answer and answer["note"] != "empty prompt")


def agrees(turn: TurnRecord, answer: dict[str, Any]) -> bool:
    """Is every figure that ckptlog gives the answer's?"""
    return all(
        getattr(turn, ours) in (None, answer[theirs]) for theirs, ours in FIGURES.items() if theirs in answer
    )


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_figures_are_what_the_server_answered(log: Path) -> None:
    analysis = ckptlog.analyze(log)
    assert analysis.drift == []
    report = analysis.report
    turns = [turn for turn in report.turns if turn.child_of is None]
    nulls = 0
    for answer in answers(log):
        found = next((turn for turn in turns if agrees(turn, answer)), None)
        assert found is not None, answer
        turns.remove(found)
        nulls += any(getattr(found, ours) is None for theirs, ours in FIGURES.items() if theirs in answer)
    level = report.runs[0].verbosity or 5
    assert nulls == 0 or level < 4, nulls


def test_there_are_logs() -> None:
    assert len(LOGS) >= 20
