"""``--redact`` leaves nothing private and keeps every figure."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import ckptlog
from ckptlog.intake.loggers import LOGGERS
from ckptlog.records import Evidence, Fix, MismatchRecord, Report
from ckptlog.report.as_json import render_json
from ckptlog.report.redact import redacted
from ckptlog.report.text import render_text

from .build import a_report, a_run, a_source, an_evicted_turn, evicted

SECRETS = [
    "my secret plan",
    "another secret",
    "Private-7B",
    "/home/jane",
    "jane doe",
    "janes-box",
    "192.168.1.17",
    "fe80::17",
    "internal.example",
    "jane@mail.example",
    "C:\\Users",
]


def private() -> Report:
    turn = an_evicted_turn(1, 100)
    turn.mismatch = MismatchRecord(pos=17, old="my secret plan", new="another secret")
    turn.headline = 'The prompts part at "my secret plan"; the model is Private-7B-Q4.'
    turn.explanation = "It was read from /home/jane doe/logs/server.log and /home/jane/x.gguf."
    turn.missing = ["what 192.168.1.17 asked"]
    turn.fixes = [Fix("path", "write to /home/jane/slots", ["--slot-save-path", "/home/jane/slots"])]
    turn.evidence = [
        Evidence(0, 1, line, says)
        for line, says in [
            ("May 23 01:44:00 janes-box llama[12]: 0.09.227.302 W slot x: id  0 | task 18 | old: ... a | my secret plan", "my secret plan"),
            ("1.10.100.200 I srv  log_server_r: done request: POST /v1/chat/completions 192.168.1.17 200", ""),
            ("1.10.100.200 I srv  load_model: loading model '/models/Private-7B-Q4.gguf'", "Private-7B-Q4.gguf"),
            ("srv  listening: http://internal.example:8080/x and http://[fe80::17]:8080", "fe80::17"),
            ("srv  proxy: from jane@mail.example, C:\\Users\\jane\\x.gguf", ""),
            ('1.10.100.200 I srv  log_server_r: request: {"prompt": "my secret plan"}', ""),
        ]
    ]  # fmt: skip
    return a_report(
        [turn], [a_run(model="/models/Private-7B-Q4.gguf")], [a_source("/home/jane doe/logs/server.log")]
    )


def test_the_secrets_are_there_without_it() -> None:
    text = render_json(private()).decode().replace("\\\\", "\\")
    assert [secret for secret in SECRETS if secret not in text] == []


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_left(secret: str) -> None:
    report = redacted(private())
    assert secret not in render_json(report).decode().replace("\\\\", "\\")
    assert secret not in "".join(line.plain for line in render_text(report, 100))


def test_the_same_thing_keeps_the_same_placeholder() -> None:
    turn = redacted(private()).turns[0]
    assert turn.mismatch is not None
    assert turn.mismatch.old != turn.mismatch.new
    assert str(turn.mismatch.old) in turn.headline
    assert turn.evidence[0].says == turn.mismatch.old


def test_figures_and_the_servers_own_words_stay() -> None:
    report, before = redacted(evicted()), evicted()
    assert report.summary == before.summary
    for new, old in zip(report.turns, before.turns, strict=True):
        assert msgspec.structs.replace(
            new, mismatch=None, evidence=[], fixes=[], not_fixes=[], headline="", explanation="", missing=[]
        ) == msgspec.structs.replace(
            old, mismatch=None, evidence=[], fixes=[], not_fixes=[], headline="", explanation="", missing=[]
        )
        assert new.evidence == old.evidence
        assert new.headline == old.headline


def test_a_stamp_is_no_address() -> None:
    line = "1.10.100.200 I slot create_check: id  0 | task 1 | x"
    turn = an_evicted_turn(1, 1, evidence=[Evidence(0, 1, line, "")])
    assert redacted(a_report([turn])).turns[0].evidence[0].text == line


def test_the_report_itself_is_left_alone() -> None:
    report = private()
    before = render_json(report)
    redacted(report)
    assert render_json(report) == before


def test_advice_keeps_its_own_quotes() -> None:
    advice = 'Or keep the prompt: "n_keep": -1 in the request (or --keep -1).'
    turn = an_evicted_turn(
        1, 1, fixes=[Fix("keep", advice)], not_fixes=[Fix("x", 'Not "cache_prompt": true.')]
    )
    turn.explanation = 'The client saw only "finish_reason": "length".'
    after = redacted(a_report([turn])).turns[0]
    assert after.fixes[0].text == advice
    assert after.not_fixes[0].text == 'Not "cache_prompt": true.'
    assert after.explanation == turn.explanation


def test_what_the_server_said_is_no_advice(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "slot launch_slot_: id  0 | task 7 | processing task, is_child = 0\n"
        'srv    send_error: task id = 7, error: no field "jane doe"\n'
        "slot      release: id  0 | task 7 | stop processing: n_tokens = 910, truncated = 0\n"
    )
    report = ckptlog.analyze(log).report
    (turn,) = report.turns
    assert (turn.outcome, "jane" in turn.explanation) == ("error", True)
    (turn,) = redacted(report).turns
    assert "jane" not in turn.explanation
    assert not [evidence.text for evidence in turn.evidence if "jane" in evidence.text]


def test_a_json_line_keeps_its_keys_and_loses_its_texts() -> None:
    line = '{"type":"log","time":12,"level":"info","msg":"slot x: id  0 | task 1 | old: ... a | jane doe\\n"}'
    other = '{"type":"log","msg":"srv  x: 1","level":"janes-box"}'
    turn = an_evicted_turn(1, 1, evidence=[Evidence(0, 1, line, ""), Evidence(0, 2, other, "")])
    first, second = (item.text for item in redacted(a_report([turn])).turns[0].evidence)
    assert first.startswith(
        '{"type":"log","time":12,"level":"info","msg":"slot x: id  0 | task 1 | old: ... <text'
    )
    assert "jane" not in first + second


@pytest.mark.parametrize("logger", LOGGERS)
def test_what_stands_before_any_loggers_line_goes(logger: str) -> None:
    turn = an_evicted_turn(1, 1, evidence=[Evidence(0, 1, f"janes-box says {logger}  init: x", "")])
    (evidence,) = redacted(a_report([turn])).turns[0].evidence
    assert evidence.text == f"{logger}  init: x"
