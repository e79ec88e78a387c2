"""What the gate writes, in each of its formats; golden files hold them byte for byte."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml

from ckptlog.errors import ExitCode
from ckptlog.gate.github import summary, workflow_commands
from ckptlog.gate.gitlab import render_gitlab
from ckptlog.gate.junit import render_junit
from ckptlog.gate.sarif import render_sarif, uri
from ckptlog.gate.text import render_text
from ckptlog.gate.verdict import GateVerdict, LogVerdict
from ckptlog.report.as_json import encode_json

from ..report.build import a_report, a_turn, an_evicted_turn, evicted, healthy

POLICY = """
[gate]
fail_on = ["arrival-rejection", "context-shift", "limit-stop"]
[[gate.check]]
name = "re-prefill budget"
expr = "count(outcome == 'checkpoint-reprefill' and severity == 'costly') <= 2"
[[gate.check]]
name = "reuse"
expr = "reuse() >= 0.99"
warn_only = true
[[gate.check]]
expr = "max(n_prompt) < 100k"
where = "slot == 0"
"""

Gated = Callable[..., LogVerdict]
Whole = Callable[..., GateVerdict]
Golden = Callable[[str, bytes], None]


@pytest.fixture
def verdict(gated: Gated, whole: Whole) -> GateVerdict:
    return whole(
        gated(evicted(), POLICY, "logs/server.log"),
        gated(healthy(), POLICY, "logs/healthy one.log"),
        LogVerdict("logs/empty.log", "nothing", "logs/empty.log is empty"),
        LogVerdict("logs/locked.log", "error", "can't read logs/locked.log: permission denied"),
    )


#: what must never reach a terminal, a browser or a workflow command as it is
HOSTILE = "\x1b[2J\r\n::error::forged\n<script>alert(1)</script> [bold]x[/bold] `code` | cell ]]> \u202e \ud800 100%"


@pytest.fixture
def hostile(gated: Gated, whole: Whole) -> GateVerdict:
    turn = an_evicted_turn(1, 50, headline=HOSTILE)
    turn.evidence[0].says = HOSTILE
    turn.fixes[0].text = HOSTILE
    report = a_report([turn])
    toml = '[[gate.check]]\nname = "a | b ::error:: <b>"\nexpr = "count(failed) == 0"'
    return whole(gated(report, toml, "logs/a\x1b[31m,b:c%.log"))


def text(verdict: GateVerdict) -> str:
    return "".join(f"{line.plain}\n" for line in render_text(verdict))


def sarif_schema() -> Any:
    packed = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json.gz"
    return json.loads(gzip.decompress(packed.read_bytes()))


def test_text_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("gate.txt", text(verdict).encode())


def test_json_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("gate.json", encode_json(verdict))


def test_junit_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("junit.xml", render_junit(verdict))


def test_sarif_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("gate.sarif", render_sarif(verdict))


def test_gitlab_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("gitlab.json", render_gitlab(verdict))


def test_github_golden(verdict: GateVerdict, golden: Golden) -> None:
    golden("github-annotations.txt", "".join(f"{line}\n" for line in workflow_commands(verdict)).encode())
    golden("github-summary.md", summary(verdict).encode())


def test_text_fits_and_says_why_first(verdict: GateVerdict) -> None:
    lines = text(verdict).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[:2] == [
        "FAILED  logs/server.log",
        "  1 of 6 checks failed: re-prefill budget (52 turns, 3 failed, 93 % reused)",
    ]
    assert lines[-1] == "FAILED  4 logs: 1 passed, 1 failed, 1 error, 1 nothing to judge"


def test_the_worst_log_gives_the_exit_code(verdict: GateVerdict, whole: Whole) -> None:
    failed, passed, nothing, error = verdict.logs
    assert verdict.exit_code is ExitCode.USAGE
    assert error.exit_code is ExitCode.USAGE
    assert whole(failed, passed, nothing).exit_code is ExitCode.GATE_FAILED
    assert whole(passed, nothing).exit_code is ExitCode.NOTHING_TO_JUDGE
    assert whole(passed).exit_code is ExitCode.OK


def test_junit_is_read_by_a_junit_library(verdict: GateVerdict, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_bytes(render_junit(verdict))
    suites = list(JUnitXml.fromfile(str(file)))
    assert [suite.name for suite in suites] == [log.path for log in verdict.logs]
    counts = [(suite.tests, suite.failures, suite.errors) for suite in suites]
    assert counts == [(6, 1, 0), (6, 0, 0), (1, 0, 1), (1, 0, 1)]
    results = {case.name: case.result for suite in suites for case in suite if case.result}
    assert isinstance(results["re-prefill budget"][0], Failure)
    assert "checkpoint-evicted" in results["re-prefill budget"][0].text
    assert isinstance(results["readable"][0], Error)


def test_sarif_fits_the_published_schema(verdict: GateVerdict) -> None:
    sarif = json.loads(render_sarif(verdict))
    jsonschema.Draft4Validator(sarif_schema()).validate(sarif)
    [run] = sarif["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] if "ruleIndex" in result else True
    lines = {
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in run["results"]
        if result["ruleId"] == "check/re-prefill-budget"
    }
    assert lines == {2092, 2428, 2668}


def test_sarif_marks_differ_between_findings(verdict: GateVerdict) -> None:
    results = json.loads(render_sarif(verdict))["runs"][0]["results"]
    marks = [r["partialFingerprints"]["ckptlog/v1"] for r in results if "partialFingerprints" in r]
    assert len(marks) == len(set(marks)) > 3


URIS = [
    ("server.log", "server.log"),
    ("./logs/a b.log", "logs/a%20b.log"),
    ("logs\\a.log", "logs/a.log"),
    ("/tmp/a.log", "file:///tmp/a.log"),
    ("a:b#c?.log", "a%3Ab%23c%3F.log"),
    ("-", "stdin"),
    ("b\udcff.log", "b%FF.log"),
]


@pytest.mark.parametrize(("path", "expected"), URIS)
def test_paths_as_uris(path: str, expected: str) -> None:
    assert uri(path) == expected


def test_gitlab_has_what_gitlab_needs(verdict: GateVerdict) -> None:
    entries = json.loads(render_gitlab(verdict))
    for entry in entries:
        assert entry.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert entry["location"]["lines"]["begin"] >= 1
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)


def test_github_shows_at_most_ten_of_a_kind(gated: Gated, whole: Whole) -> None:
    logs = [gated(evicted(), "", f"{n}.log") for n in range(14)]
    lines = workflow_commands(whole(*logs))
    assert len(lines) == 10
    assert lines[-1] == "::error title=ckptlog gate::5 more errors in the job summary"


def test_like_turns_are_one_annotation(gated: Gated, whole: Whole) -> None:
    [line] = workflow_commands(whole(gated(evicted())))
    assert line.startswith(
        "::error file=server.log,line=2092,title=no checkpoint-reprefill::3 turns%0Aturn 40, 47, 52:"
    )


# --- hostile text --------------------------------------------------------------------------------------


def test_hostile_text_in_text(hostile: GateVerdict) -> None:
    shown = text(hostile)
    assert all(line.isprintable() for line in shown.splitlines())
    assert "\\e[2J" in shown
    assert "[bold]x[/bold]" in shown.replace("\n", "")


def test_hostile_text_in_annotations(hostile: GateVerdict) -> None:
    lines = workflow_commands(hostile)
    for line in lines:
        assert line.isprintable()
        assert line.startswith("::error file=logs/a\\e[31m%2Cb%3Ac%25.log,")
    assert len(lines) == 2
    assert "100%25" in lines[0]


def test_hostile_text_in_the_summary(hostile: GateVerdict) -> None:
    shown = summary(hostile)
    assert all(line.isprintable() for line in shown.splitlines())
    assert "<script>" not in shown.replace("\\<", "")
    assert "a \\| b" in shown


def test_hostile_text_in_xml_and_json(hostile: GateVerdict, tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_bytes(render_junit(hostile))
    assert len(list(JUnitXml.fromfile(str(file)))) == 1
    jsonschema.Draft4Validator(sarif_schema()).validate(json.loads(render_sarif(hostile)))
    for document in (render_sarif(hostile), render_gitlab(hostile), render_junit(hostile)):
        document.decode()
        assert b"\x1b" not in document


def test_a_healthy_gate_is_short(gated: Gated, whole: Whole) -> None:
    verdict = whole(gated(a_report([a_turn()])))
    assert len(text(verdict).splitlines()) <= 4
    assert workflow_commands(verdict) == []
    assert json.loads(render_gitlab(verdict)) == []
    assert json.loads(render_sarif(verdict))["runs"][0]["results"] == []
