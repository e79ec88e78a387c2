"""The llama-server that people start from a shell: what its clients were answered, which signals it got, and what is said of it.

One of the two was built from a copy without history and calls itself build 1.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import ckptlog
from ckptlog.records import IncidentRecord, Report, TurnRecord
from ckptlog.verdict.judge import NOT_ENDED
from ckptlog.watch.session import Session

FOLDER = Path(__file__).parents[1] / "data" / "binary"
LOGS = sorted(FOLDER.rglob("*.log.gz"))

#: the answer's figure, and ckptlog's
FIGURES = {"cache_n": "n_cached", "prompt_n": "n_processed", "predicted_n": "n_generated"}


def name_of(log: Path) -> str:
    return log.relative_to(FOLDER).as_posix().removesuffix(".log.gz")


def answers(log: Path) -> list[dict[str, Any]]:
    with gzip.open(log.with_name(log.name.replace(".log.gz", ".answers.json.gz"))) as file:
        return json.load(file)


def report_of(name: str) -> Report:
    return ckptlog.analyze(FOLDER / f"{name}.log.gz").report


def incidents(name: str, kind: str) -> list[IncidentRecord]:
    return [each for run in report_of(name).runs for each in run.incidents if each.kind == kind]


def agrees(turn: TurnRecord, figures: dict[str, int]) -> bool:
    return all(getattr(turn, ours) in (None, figures[theirs]) for theirs, ours in FIGURES.items() if theirs in figures)


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_figures_are_what_the_server_answered(log: Path) -> None:
    analysis = ckptlog.analyze(log)
    assert analysis.drift == []
    turns = list(analysis.report.turns)
    for answer in answers(log):
        if "predicted_n" not in answer.get("timings", {}):
            continue
        found = next((turn for turn in turns if agrees(turn, answer["timings"])), None)
        assert found is not None, answer
        turns.remove(found)


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_the_build_is_never_a_wrong_one(log: Path) -> None:
    number = int(log.parent.name)
    for run in ckptlog.analyze(log).report.runs:
        assert run.build in (None, f"b{number}" if number == 11434 else None)
        assert (run.build_min or 0) <= number <= (run.build_max or number)


@pytest.mark.parametrize("log", LOGS, ids=name_of)
def test_a_request_said_to_have_failed_did(log: Path) -> None:
    """With the status and the words that the client got (a router's log has those of its children, too)."""
    told = [answer["error"] for answer in answers(log) if "error" in answer]
    words = {" ".join(str(error["message"])[:400].split()): error["code"] for error in told}
    for run in ckptlog.analyze(log).report.runs:
        for each in run.incidents:
            if each.kind == "request-failed":
                if "http client error:" in each.text:  # (the client gets no words)
                    assert 500 in [answer.get("status") for answer in answers(log)]
                    continue
                message = (each.message or "").removesuffix(" ...")
                assert message in words
                assert each.status in (None, words[message])


@pytest.mark.parametrize(
    ("name", "ended", "outcome", "variant"),
    [
        ("10434/sig-int-first-lv4", "cancel", "cancelled", "server-stopped"),  # the client waited on, and then no longer
        ("10434/sig-term-prompt-lv3", "cancel", "cancelled", "server-stopped"),
        ("10434/int2-lv3", "cancel", "cancelled", "server-stopped"),
        ("10434/rint-mid-lv3", "cancel", "cancelled", "server-stopped"),
    ],
)
def test_a_turn_of_a_server_that_was_stopped(name: str, ended: str, outcome: str, variant: str) -> None:
    turn = report_of(name).turns[-1]
    assert (turn.ended, turn.outcome, turn.variant, turn.fixes) == (ended, outcome, variant, [])


def test_a_turn_that_a_router_ended_for_another_model() -> None:
    turn = report_of("10434/revict-mid-lv3").turns[1]
    assert (turn.outcome, turn.variant) == ("cancelled", "server-stopped")
    assert "giving up its slot" in turn.evidence[0].text


def test_a_turn_that_died_with_its_server() -> None:
    turn = next(turn for turn in report_of("10434/rkillmid-segv-lv3").turns if turn.outcome == "error")
    assert turn.variant == "crash"
    # nothing in the log says so
    turn = report_of("10434/sig-kill-gen-lv4").turns[-1]
    assert (turn.ended, turn.missing) == ("cut", [NOT_ENDED])


@pytest.mark.parametrize("build", [10434, 11434])
def test_a_child_that_died_while_idle(build: int) -> None:
    (found,) = incidents(f"{build}/rkill-kill-lv3", "server-ended")
    assert "exited with status 1" in found.text
    assert "ended while no request was at work" in found.says


def test_a_child_that_was_stopped_behind_its_routers_back() -> None:
    """The router goes on to send it requests."""
    (found,) = incidents("10434/rkill-term-lv3", "request-failed")
    assert (found.message, found.status) == ("Could not establish connection", None)
    assert found.says == "The router could not pass a request on to the server of its model."
    assert incidents("10434/rkill-term-lv3", "server-ended") == []


@pytest.mark.parametrize("build", [10434, 11434])
def test_models_that_a_router_let_go(build: int) -> None:
    found = incidents(f"{build}/router-lv3", "model-unloaded")
    assert {each.message: each.count for each in found} == {"tiny-plain": 2, "tiny-hybrid": 1}


@pytest.mark.parametrize(
    ("name", "says", "message"),
    [
        ("10434/fail-port-lv3", "could not listen at its address", "127.0.0.1, port: "),
        ("11434/fail-port-lv3", "could not listen at its address", "127.0.0.1, port: "),
        ("10434/fail-nomodel-lv3", "the model could not be loaded", "No such file or directory"),
        ("10434/fail-cut-lv3", "the model could not be loaded", "model is corrupted or incomplete"),
        ("10434/fail-draft-lv3", "the draft model could not be loaded", "No such file or directory"),
        ("10434/router-lv3", "The router's child", "failed to load model from /models/broken.gguf"),
    ],
)
def test_a_server_that_did_not_start(name: str, says: str, message: str) -> None:
    (found,) = incidents(name, "start-failed")
    assert says in found.says
    assert message in (found.message or "")


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("10434/slotf-lv3", ["failed to open /slots/missing: No such file or directory", "it is no slot's file"]),
        ("10434/slotf-foreign-lv4", ["n_stream mismatch"]),
        ("11434/slotf-lv3", ["failed to open /slots/missing: No such file or directory", "it is no slot's file"]),
    ],
)
def test_a_slot_file_that_could_not_be_loaded(name: str, messages: list[str]) -> None:
    assert [each.message for each in incidents(name, "slot-file-failed")] == messages


def test_a_server_that_was_killed_while_idle() -> None:
    """The first of three was stopped, the second killed, and the third is the last."""
    runs = report_of("10434/again-lv3").runs
    (found,) = [each for run in runs for each in run.incidents]
    assert (runs[1].incidents, found.kind, found.lines) == ([found], "server-ended", (runs[1].lines[1], runs[1].lines[1]))
    assert "was killed, or crashed, while it was idle" in found.says


def test_a_stop_that_was_asked_for_is_no_incident() -> None:
    for name in ("10434/fmt-colors", "10434/sleep-lv4", "11434/sleep-lv3"):
        assert [each for run in report_of(name).runs for each in run.incidents] == []


def test_the_hosts_memory_runs_out_for_a_request_and_then_for_the_server() -> None:
    name = "10434/oommid-lv3"
    turn = report_of(name).turns[-1]
    assert (turn.outcome, turn.variant, [fix.name for fix in turn.fixes]) == ("error", None, ["host-memory"])
    (found,) = incidents(name, "server-ended")
    assert "want of the host's memory" in found.says


@pytest.mark.parametrize("name", ["10434/slotf-foreign-lv4", "11434/slotf-foreign-lv3"])
def test_the_prompt_behind_a_slot_file_that_could_not_be_loaded(name: str) -> None:
    """The slot was emptied for it; at the default level only where there is no other slot that could be meant."""
    turn = report_of(name).turns[-1]
    assert (turn.outcome, turn.n_cached) == ("cold", 0)
    assert "567 tokens were cleared from a slot" in turn.explanation


def test_two_servers_that_write_into_one_file(tmp_path: Path) -> None:
    """The start of the second is not the end of the first, which goes on."""
    first = gzip.decompress((FOLDER / "10434" / "again-lv3.log.gz").read_bytes()).decode().splitlines(keepends=True)
    starts = [i for i, line in enumerate(first) if "verbosity = 3" in line]
    one = [line.replace("0.00.", "0.59.", 1) for line in first[: starts[1] - 1]]
    other = first[starts[2] :]
    log = tmp_path / "server.log"
    log.write_text("".join([*one[:19], *other[:19], *one[19:], *other[19:]]))
    report = ckptlog.analyze(log).report
    assert report.warnings
    assert [each for run in report.runs for each in run.incidents if each.kind == "server-ended"] == []
    follower = Session(str(log), lambda turn: None)
    follower.take(log.read_bytes())
    follower.finish()
    assert follower.news() == []
