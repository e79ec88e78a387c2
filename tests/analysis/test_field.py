"""Logs in the forms that people post, with what a good report says of them (data/field/expected.jsonl)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ckptlog
from ckptlog.records import Report

from .consistency import contradictions

FIELD = Path(__file__).parents[1] / "data" / "field"
SAMPLES = Path(__file__).parents[1] / "data" / "samples"
EXPECTED: list[dict[str, Any]] = [
    json.loads(line) for line in (FIELD / "expected.jsonl").read_text(encoding="utf-8").splitlines()
]


@cache
def report(name: str) -> Report:
    return ckptlog.analyze(FIELD / name).report


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: e["file"])
def test_outcomes_and_figures(expected: dict[str, Any]) -> None:
    turns = report(expected["file"]).turns
    assert len(turns) == len(expected["turns"])
    for wanted in expected["turns"]:
        (turn,) = (t for t in turns if (t.slot, t.task) == (wanted["slot"], wanted["task"]))
        assert turn.outcome == (wanted["outcome"] or "unknown")
        if wanted["variant"] is not None:
            assert turn.variant == wanted["variant"]
        for figure in ("n_prompt", "n_cached", "n_processed"):
            if wanted[figure] is not None:
                assert getattr(turn, figure) == wanted[figure], figure


@pytest.mark.parametrize("name", [e["file"] for e in EXPECTED])
def test_every_line_is_understood(name: str) -> None:
    found = report(name)
    (source,) = found.sources
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)
    assert contradictions(found) == []


@pytest.mark.parametrize(
    ("name", "wrapper", "form"),
    [
        ("07-lmstudio-message-on-next-line.log", "lm-studio", "prefixed"),
        ("18-docker-compose-prefix.log", "docker-compose", "prefixed"),
        ("31-journald-blob-data-hides-timings.log", "journald", "legacy"),
        ("33-docker-t-debug-flood.log", "docker", "legacy"),
        ("49-powershell-native-command-error.log", "powershell", "prefixed"),
        ("03-router-np4-n-ctx-slot.log", None, "legacy"),
        ("42-terminal-padded-trailing-spaces.log", None, "mixed"),
    ],
)
def test_how_it_was_captured(name: str, wrapper: str | None, form: str) -> None:
    (source,) = report(name).sources
    assert (source.wrapper, source.format) == (wrapper, form)


def test_facts_that_a_good_report_gets_right() -> None:
    """Some of the facts in expected.jsonl that can be looked at by a machine."""
    (turn,) = report("03-router-np4-n-ctx-slot.log").turns
    assert (turn.n_common, turn.variant, turn.severity) == (6890, "full", "costly")
    (turn,) = report("08-windows-crlf-bare-pointers.log").turns
    assert (turn.n_common, turn.n_lost, turn.severity, turn.failed) == (76, 76, "harmless", False)
    (turn,) = report("18-docker-compose-prefix.log").turns
    assert (turn.n_common, turn.n_cached, turn.n_lost) == (2812, 2388, 424)
    assert turn.checkpoints is not None
    assert turn.checkpoints.invalidated == [2900]
    (turn,) = report("26-context-shift-generated-part.log").turns
    assert [shift.variant for shift in turn.shifts] == ["generated"] * 5
    (turn,) = report("27-old-shift-head-removed-bos-kept.log").turns
    assert (turn.variant, turn.shifts[0].n_keep) == ("head", 1)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.gz")), ids=lambda path: path.name)
def test_other_builds(path: Path) -> None:
    """Short recordings of builds that have no truth file: the bracket holds the build, nothing drifts."""
    found = ckptlog.analyze(path).report
    (source,) = found.sources
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)
    assert contradictions(found) == []
    assert found.turns
    build = int(path.name.split(".")[0][1:])
    for run in found.runs:
        assert (run.build_min or 0) <= build <= (run.build_max or build)
        assert run.build in (None, f"b{build}")
    if ".shift." in path.name:
        assert "context-shift" in {turn.outcome for turn in found.turns}
