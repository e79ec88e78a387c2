"""The JSON report keeps its contract."""

from __future__ import annotations

import json
from collections.abc import Callable

import jsonschema
import msgspec
import pytest

from ckptlog.records import Report
from ckptlog.report.as_json import render_json
from ckptlog.report.json_schema import report_schema

from . import build

CASES: dict[str, Callable[[], Report]] = {"nasty": build.nasty, "low_level": build.low_level}


def cut(report: Report) -> Report:
    """Without the megabytes: a golden file is to be read."""
    for turn in report.turns:
        for evidence in turn.evidence:
            evidence.text = evidence.text[-300:]
    return report


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, golden: Callable[[str, bytes], None]) -> None:
    golden(f"{case}.json", render_json(cut(CASES[case]())))


@pytest.mark.parametrize("case", ["evicted", "healthy", "low_level", "everything", "nasty"])
def test_it_follows_its_published_schema(case: str) -> None:
    report = json.loads(render_json(getattr(build, case)()))
    validator = jsonschema.Draft202012Validator(report_schema())
    validator.check_schema(report_schema())
    validator.validate(report)


def test_the_schema_refuses_what_is_no_report() -> None:
    report = json.loads(render_json(build.evicted()))
    report["turns"][0]["outcome"] = "splendid"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, report_schema())


def test_it_reads_back_as_the_same_report() -> None:
    report = build.nasty()
    assert msgspec.json.decode(render_json(report), type=Report) == report


def test_its_keys_are_in_the_contracts_order() -> None:
    report = json.loads(render_json(build.evicted()))
    assert list(report) == ["schema", "tool", "sources", "runs", "turns", "checkpoints", "summary", "warnings", "left_out"]
    assert list(report["turns"][0])[:12] == [
        "source", "run", "slot", "task", "child_of", "lines",
        "t_start", "t_end", "ended", "outcome", "severity", "failed",
    ]  # fmt: skip


def test_unknown_is_null() -> None:
    turn = json.loads(render_json(build.everything()))["turns"][6]
    assert turn["n_prompt"] is None
    assert turn["checkpoints"] is None


def test_a_file_name_that_is_not_text_is_printable() -> None:
    report = build.healthy()
    report.sources[0].path = "caf\udce9.log"
    assert json.loads(render_json(report))["sources"][0]["path"] == r"caf\xe9.log"


def test_no_steering_byte_is_in_it() -> None:
    text = render_json(build.nasty()).decode()
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
