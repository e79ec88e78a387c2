"""``ckptlog diagnose``: formats, selection, exit codes, bad input."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from .conftest import ROOT, Run

Sample = Callable[[str], str]


def test_the_text_report_of_a_sample(ckptlog: Run, sample_log: Sample) -> None:
    done = ckptlog("diagnose", sample_log("evicted-system-prompt"))
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "A PROMPT WAS PROCESSED AGAIN FROM THE START" in text
    assert "--ctx-checkpoints" in text
    assert "checkpoint-evicted" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_standard_input_is_a_log(ckptlog_process: Run, sample_log: Sample) -> None:
    log = Path(sample_log("rejected")).read_bytes()
    done = ckptlog_process("diagnose", "-", stdin=log)
    assert done.returncode == 0
    assert b"WAS REFUSED" in done.stdout
    assert done.stdout.startswith(b"standard input\n")
    assert ckptlog_process("diagnose", "-", stdin=gzip.compress(log)).stdout == done.stdout


def test_json_follows_the_schema_and_is_the_same_twice(ckptlog: Run, sample_log: Sample) -> None:
    done = ckptlog("diagnose", sample_log("evicted-system-prompt"), "--format", "json")
    schema = json.loads(ckptlog("schema").stdout)
    report = json.loads(done.stdout)
    jsonschema.validate(report, schema)
    assert report["summary"]["by_cause"]["checkpoint-evicted"] == 1
    assert ckptlog("diagnose", sample_log("evicted-system-prompt"), "-f", "json").stdout == done.stdout


def test_markdown(ckptlog: Run, sample_log: Sample) -> None:
    text = ckptlog("diagnose", sample_log("limit-stop"), "--format", "markdown").stdout.decode()
    assert text.startswith("# ckptlog report\n")
    assert "| turn | line | prompt |" in text


def test_o_writes_what_stdout_would_have_shown(ckptlog: Run, sample_log: Sample, tmp_path: Path) -> None:
    done = ckptlog("diagnose", sample_log("limit-stop"), "-o", "out/report.txt")
    assert (done.returncode, done.stdout) == (0, b"")
    assert (tmp_path / "out" / "report.txt").read_bytes() == ckptlog(
        "diagnose", sample_log("limit-stop")
    ).stdout


def test_where_selects_turns_and_keeps_their_numbers(ckptlog: Run, sample_log: Sample) -> None:
    text = ckptlog("diagnose", sample_log("evicted-system-prompt"), "--where", "failed").stdout.decode()
    assert "1 of 8 turns selected" in text
    assert "\n   7 " in text
    report = json.loads(
        ckptlog("diagnose", sample_log("evicted-system-prompt"), "--where", "not failed", "-f", "json").stdout
    )
    assert report["summary"]["turns"] == len(report["turns"]) == 7
    assert report["summary"]["failed"] == 0


def test_a_selection_of_nothing_is_no_error(ckptlog: Run, sample_log: Sample) -> None:
    done = ckptlog("diagnose", sample_log("healthy"), "--where", "failed")
    assert done.returncode == 0
    assert b"No turn to show." in done.stdout


def test_a_wrong_expression_is_told_with_its_place(ckptlog: Run, sample_log: Sample) -> None:
    done = ckptlog("diagnose", sample_log("healthy"), "--where", "n_promt > 3")
    assert done.returncode == 2
    told = done.stderr.decode().splitlines()
    assert "n_prompt" in told[0]
    assert told[1:] == ["  n_promt > 3", "  ^"]


def test_redact_hides_the_path_and_the_prompt(ckptlog: Run, sample_log: Sample) -> None:
    path = sample_log("evicted-system-prompt")
    plain, hidden = (
        ckptlog("diagnose", path, "-f", "json", *extra).stdout.decode() for extra in ([], ["--redact"])
    )
    turn = next(turn for turn in json.loads(plain)["turns"] if turn["failed"])
    assert turn["mismatch"]["old"] in plain
    assert turn["mismatch"]["old"] not in hidden
    assert path in plain
    assert path not in hidden
    assert json.loads(plain)["summary"] == json.loads(hidden)["summary"]


def test_several_logs_are_one_report(ckptlog: Run, sample_log: Sample) -> None:
    done = ckptlog("diagnose", sample_log("healthy"), sample_log("rejected"), "-f", "json")
    report = json.loads(done.stdout)
    assert [Path(source["path"]).name for source in report["sources"]] == ["healthy.log", "rejected.log"]
    assert {turn["source"] for turn in report["turns"]} == {0, 1}


BAD = {
    "empty.log": (b"", "is empty"),
    "other.log": (b"GET / HTTP/1.1 200\nnginx: started\n" * 20, "holds no line of a llama-server"),
    "binary.log": (bytes(range(256)) * 64, "is binary data"),
    "request.json": (b'{"model": "x", "messages": [{"role": "user", "content": "hi"}]}\n', "is JSON"),
    "prefix.log": (b"llama> prompt eval time =  12.00 ms /  3 tokens\n" * 2, "look like a llama-server's (line 1)"),
    "blank.log": (b"\n\n\n", "holds no line"),
    "nul.log": (b"\0" * 100_000, "is binary data"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_nothing_to_judge_is_one_sentence_and_3(name: str, form: str, ckptlog: Run, tmp_path: Path) -> None:
    content, told = BAD[name]
    (tmp_path / name).write_bytes(content)
    done = ckptlog("diagnose", name, "--format", form)
    assert done.returncode == 3
    assert told in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    if form == "text":
        assert done.stdout == b""
    if form == "json":
        assert json.loads(done.stdout)["turns"] == []


def test_one_empty_log_among_good_ones_counts(ckptlog: Run, sample_log: Sample, tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    done = ckptlog("diagnose", "empty.log", sample_log("healthy"))
    assert done.returncode == 3
    assert b"Nothing went wrong in 8 turns" in done.stdout
    assert b"empty.log is empty" in done.stderr


@pytest.mark.parametrize("name", ["missing.log", "*.log", "folder"])
def test_missing_input_is_one_sentence_and_2(name: str, ckptlog: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = ckptlog("diagnose", name)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().count("\n") == 1
    assert name in done.stderr.decode()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_input_is_2(ckptlog: Run, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_bytes(b"x")
    (tmp_path / "secret.log").chmod(0)
    assert ckptlog("diagnose", "secret.log").returncode == 2


def test_hostile_text_in_a_log_stays_text(ckptlog: Run, sample_log: Sample, tmp_path: Path) -> None:
    log = Path(sample_log("evicted-system-prompt")).read_bytes()
    steering_text = "\x1b]0;x\x07[bold]\u202e\x9b2J".encode() + b"\xff\xfe"
    # behind the bar of a mismatch dump stands what a client wrote
    evil = re.sub(rb"(?m)^ \| ", lambda bar: bar[0] + steering_text, log)
    assert evil != log
    (tmp_path / "evil.log").write_bytes(evil)
    for form in ("text", "json", "markdown"):
        done = ckptlog("diagnose", "evil.log", "--format", form)
        assert done.returncode == 0
        for steering in (b"\x1b", b"\x07", "\u202e".encode(), "\x9b".encode()):
            assert steering not in done.stdout
    assert b"[bold]" in ckptlog("diagnose", "evil.log").stdout


def on_a_terminal(*args: str, **environment: str) -> bytes:
    """What ``ckptlog`` writes when its stdout is a terminal."""
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "ckptlog", *args],
            stdout=slave,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment},
        ):
            os.close(slave)
            shown = b""
            while True:
                try:
                    part = os.read(master, 65536)
                except OSError:
                    break
                if not part:
                    break
                shown += part
        return shown
    finally:
        os.close(master)


def test_colour_only_on_a_terminal_and_not_with_no_color(sample_log: Sample) -> None:
    log = sample_log("rejected")
    assert b"\x1b[" in on_a_terminal("diagnose", log)
    assert b"\x1b[" not in on_a_terminal("diagnose", log, NO_COLOR="1")
    assert b"\x1b[" not in on_a_terminal("diagnose", log, "--format", "json")


def test_a_terminal_that_is_not_utf8_still_gets_a_report(ckptlog_process: Run, sample_log: Sample) -> None:
    done = ckptlog_process(
        "diagnose", sample_log("evicted-system-prompt"), PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert done.returncode == 0
