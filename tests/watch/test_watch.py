"""``ckptlog watch`` as a process: pipes, files, conditions, commands, latency."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ckptlog import analyze
from ckptlog.records import TurnRecord
from ckptlog.watch.advice import Advice
from ckptlog.watch.lines import Totals, explanation, turn_line
from ckptlog.watch.session import Session

from .conftest import ROOT, SAMPLES, Start


def test_a_line_a_turn_and_why_a_failure(start: Start, sample: Path) -> None:
    process = start("watch", "-", stdin=sample.open("rb"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    turns = analyze(sample).report.turns
    text = out.decode()
    assert (process.returncode, err) == (0, b"")
    assert len([line for line in text.splitlines() if line[:8].strip().count(":") == 2]) == len(turns)
    for turn in turns:
        if turn.failed:
            assert turn.headline[:60] in text
            assert turn.fixes[0].text[:30] in text.replace("\n", " ")
    assert "\x1b" not in text


def seen(start: Start, log: bytes, *options: str) -> tuple[str, str]:
    """What ``watch -`` writes to its two streams of a log."""
    process = start(
        "watch", "-", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate(log, timeout=120)
    assert process.returncode == 0
    return out.decode(), err.decode()


def advised(path: Path, advice: Advice) -> list[tuple[TurnRecord, TurnRecord]]:
    """Each turn that failed as it ended, and as it is shown."""
    found: list[tuple[TurnRecord, TurnRecord]] = []
    session = Session(
        str(path),
        lambda turn: found.append((turn, advice.live(turn, session.analyzer))) if turn.failed else None,
    )
    data = path.read_bytes()
    for start in range(0, len(data), 20_000):
        session.take(data[start : start + 20_000])
    session.finish()
    return found


@pytest.mark.parametrize(
    "name", ["evicted-system-prompt", "older-build", "thinned-checkpoint", "sparse-checkpoints", "default-level"]
)
def test_the_advice_is_the_diagnosis_own(name: str) -> None:
    path = ROOT / "sample_logs" / f"{name}.log"
    wanted = [turn.fixes for turn in analyze(path).report.turns if turn.failed]
    assert wanted
    assert [shown.fixes for _, shown in advised(path, Advice("server.log"))] == wanted


def test_what_is_shown_is_no_change_to_the_turn() -> None:
    (pair,) = advised(ROOT / "sample_logs" / "evicted-system-prompt.log", Advice("server.log"))
    turn, shown = pair
    assert turn is not shown
    assert " ".join(shown.fixes[0].flags) == "--ctx-checkpoints 4 --checkpoint-min-step 8192"


def test_no_number_that_only_a_replay_can_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no replay is left, the command that does one is told instead of an estimate."""
    monkeypatch.setattr("ckptlog.watch.advice.MOST_TURNS", 7)  # the turn that fails is the 7th
    advice = Advice("server.log")
    path = ROOT / "sample_logs" / "evicted-system-prompt.log"
    assert [len(shown.fixes[0].flags) for _, shown in advised(path, advice)] == [4]
    (pair,) = advised(path, advice)
    assert pair[1].fixes[0].text.endswith(": ckptlog whatif server.log")
    assert not any("--ctx-checkpoints" in fix.flags for fix in pair[1].fixes)


def test_watch_and_its_json_show_the_number(start: Start) -> None:
    log = (ROOT / "sample_logs" / "evicted-system-prompt.log").read_bytes()
    out, _ = seen(start, log)
    assert "do: --ctx-checkpoints 4 --checkpoint-min-step 8192: With the wide" in out
    assert "be computed" not in out
    out, _ = seen(start, log, "--json")
    (failed,) = [turn for turn in map(json.loads, out.splitlines()) if turn["failed"]]
    assert failed["fixes"][0]["flags"] == ["--ctx-checkpoints", "4", "--checkpoint-min-step", "8192"]


def test_an_error_comes_with_its_reason_and_what_to_do(start: Start) -> None:
    log = ROOT / "sample_logs" / "context-full-for-all.log"
    errors = [turn for turn in analyze(log).report.turns if turn.outcome == "error"]
    assert errors
    out, _ = seen(start, log.read_bytes())
    assert out.count("  do: ") >= len(errors)
    assert errors[0].evidence[0].text.split()[-1][:10] in out or f"line {errors[0].evidence[0].line}: " in out


def test_errors_are_not_called_zero_failed() -> None:
    totals = Totals()
    for turn in analyze(ROOT / "sample_logs" / "context-full-for-all.log").report.turns:
        totals.add(turn)
    assert "with an error" in totals.words()
    assert "0 failed" not in totals.words()
    assert Totals().words() == "0 turns, 0 failed"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_lines_fit_eighty_columns(path: Path) -> None:
    for turn in analyze(path).report.turns:
        turn.prompt_ms = turn.lost_ms = 2_990_000.0
        lines = [turn_line(turn), *explanation(turn)]
        assert all(line.cell_len <= 80 for line in lines)
        assert not lines[0].plain.endswith(("min", ","))


def test_in_a_pipe_too(start: Start, sample: Path) -> None:
    out, _ = seen(start, sample.read_bytes())
    assert max(map(len, out.splitlines())) <= 80


def test_a_pipe_without_a_turn_is_said_to_be_one(start: Start) -> None:
    line = b'127.0.0.1 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 2326\n'
    out, err = seen(start, line * 3)
    assert out == ""
    assert err.startswith("ckptlog: no turn was seen: standard input ")
    assert err.count("\n") == 1


def test_json_is_what_diagnose_says(start: Start, sample: Path) -> None:
    process = start("watch", "-", "--json", stdin=sample.open("rb"), stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=120)
    objects = [json.loads(line) for line in out.splitlines()]
    start_diagnose = start("diagnose", str(sample), "--format", "json", stdout=subprocess.PIPE)
    report, _ = start_diagnose.communicate(timeout=120)
    assert objects == json.loads(report)["turns"]


def test_tee_passes_the_log_on_untouched(start: Start, sample: Path) -> None:
    data = sample.read_bytes() + b"\xff\x00 no newline at the end"
    process = start(
        "watch", "-", "--tee", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate(data, timeout=120)
    assert out == data
    assert b"slot" in err


def test_tee_does_not_wait_for_a_line_to_end(start: Start) -> None:
    process = start(
        "watch", "-", "--tee", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"half a li")
    process.stdin.flush()
    assert os.read(process.stdout.fileno(), 100) == b"half a li"
    process.communicate(b"ne\n", timeout=60)


def test_until_stops_and_exec_runs(start: Start, sample: Path, tmp_path: Path) -> None:
    process = start(
        "watch", str(sample), "--until", "outcome == 'arrival-rejection'",
        "--exec", "cat > turn.json; echo $CKPTLOG_OUTCOME $CKPTLOG_SLOT $CKPTLOG_TASK > env.txt",
        stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    first = next(turn for turn in analyze(sample).report.turns if turn.outcome == "arrival-rejection")
    assert (tmp_path / "env.txt").read_text().split() == [
        "arrival-rejection",
        str(first.slot),
        str(first.task),
    ]
    assert json.loads((tmp_path / "turn.json").read_text())["n_prompt"] == first.n_prompt
    assert out.decode().count("refused, ") == 1


def test_exec_for_each_failure(start: Start, sample: Path, tmp_path: Path) -> None:
    process = start(
        "watch", "-", "--exec", "echo $CKPTLOG_LINE >> lines", stdin=sample.open("rb"), stdout=subprocess.PIPE
    )
    process.communicate(timeout=120)
    failed = [turn for turn in analyze(sample).report.turns if turn.failed]
    assert sorted(map(int, (tmp_path / "lines").read_text().split())) == sorted(
        turn.lines[0] for turn in failed
    )


def test_wrong_use_is_one_sentence(start: Start, tmp_path: Path) -> None:
    for args, words in {
        ("watch", "x.log", "--tee"): b"--tee",
        ("watch", "x.log", "--until", "outcom == 1"): b"outcome",
        ("watch", str(tmp_path)): b"directory",
    }.items():
        process = start(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, b"")
        assert words in err
        assert err.startswith(b"ckptlog: ")
        assert err.count(b"\n") <= 3, "a sentence, and the expression with a caret"


def test_a_file_that_appears_grows_and_is_rotated(start: Start, sample: Path, tmp_path: Path) -> None:
    """A turn is shown soon after its last line; Ctrl-C ends with 130 and the totals."""
    log = tmp_path / "server.log"
    process = start("watch", "server.log", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    data = sample.read_bytes()
    expected = len(analyze(sample).report.turns)
    waits: list[float] = []
    assert process.stderr is not None
    assert process.stderr.readline() == b"ckptlog: waiting for server.log, which is not there yet\n"
    for _ in range(2):
        log.write_bytes(data[: len(data) // 2])
        with log.open("ab") as file:
            file.write(data[len(data) // 2 :])
        written = time.monotonic()
        for _ in range(expected):
            assert process.stdout.readline()
        waits.append(time.monotonic() - written)
        log.rename(tmp_path / "server.log.1")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert f"{2 * expected} turns".encode() in err
    assert min(waits) < 3, waits  # under half a second on an idle machine; the first one pays for imports


def test_a_reader_that_leaves_ends_it_quietly(start: Start, sample: Path) -> None:
    process = start(
        "watch", "-", "--json", stdin=sample.open("rb"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def test_what_happens_outside_of_turns_is_told_once(start: Start) -> None:
    log = b"""\
srv  llama_server: listening on http://127.0.0.1:8080
srv    operator(): got exception: {"error":{"code":400,"message":"'messages' is required","type":"invalid_request_error"}}
srv    operator(): got exception: {"error":{"code":400,"message":"'messages' is required","type":"invalid_request_error"}}
srv    operator(): unauthorized: Invalid API Key
"""
    out, err = seen(start, log)
    told = [line for line in err.splitlines() if "no turn" not in line]
    assert out == ""
    assert told == [
        "ckptlog: A request was answered with an error before it reached a slot (line 2): HTTP 400: 'messages' is required",
        "ckptlog: A request was answered with an error before it reached a slot (line 4): HTTP 401: Invalid API Key",
    ]
