"""``ckptlog run`` with a stand-in for the server that replays a real log."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ckptlog import analyze
from ckptlog.watch.settings import with_settings

from .conftest import Start

STUB = """
import os, signal, sys, time
out, err = sys.stdout.buffer, sys.stderr.buffer
print("args", *sys.argv[2:], os.environ.get("LLAMA_SERVER_SLOTS_DEBUG"), flush=True)
def told(number, frame):
    err.write(b"signal %d\\n" % number); err.flush()
    if number == signal.SIGTERM: os._exit(9)
for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
    signal.signal(getattr(signal, name), told)
for line in open(sys.argv[1], "rb"):
    err.write(line[:7]); err.flush()
    err.write(line[7:]); err.flush()
print("ready", flush=True)
if "wait" in sys.argv:
    while True: time.sleep(0.05)
if "crash" in sys.argv: os.kill(os.getpid(), signal.SIGSEGV)
sys.exit(3)
"""


DEBUG, N_DIFF = "LLAMA_SERVER_SLOTS_DEBUG=1", "LLAMA_SERVER_SLOTS_N_DIFF=20"


@pytest.fixture
def stub(tmp_path: Path, sample: Path) -> list[str]:
    path = tmp_path / "stub.py"
    path.write_text(STUB)
    return [sys.executable, str(path), str(sample)]


def whole(text: bytes) -> bytes:
    """Without the lines of the command itself."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"ckptlog: "))


def test_passes_on_keeps_reports_and_returns_the_code(
    start: Start, stub: list[str], sample: Path, tmp_path: Path
) -> None:
    process = start("run", "--log", "kept.log", "--", *stub, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert out.startswith(b"args -lv 4 1\nready\n")
    data = sample.read_bytes()
    kept = (tmp_path / "kept.log").read_bytes()
    assert kept.replace(b"args -lv 4 1\n", b"").replace(b"ready\n", b"") == data
    for line in data.splitlines(keepends=True):
        assert line in err
    assert b"added for the diagnosis: -lv 4, LLAMA_SERVER_SLOTS_DEBUG=1, LLAMA_SERVER_SLOTS_N_DIFF=20" in err
    assert b"kept.log" in err
    report = out.split(b"ready\n", 1)[1].decode()
    turns = analyze(sample).report.turns
    assert f"{len(turns)} turns" in report
    assert "REFUSED" in report.upper()
    failed = [turn for turn in turns if turn.failed]
    assert err.count(b"  do: ") == len(failed), "a failure is shown when it happens"


def test_as_is_and_the_default_name(start: Start, stub: list[str], tmp_path: Path) -> None:
    process = start("run", "--as-is", "--", *stub, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    assert out.startswith(b"args None\n")
    assert b"added for the diagnosis" not in err
    (log,) = tmp_path.glob("llama-server-*.log")
    assert re.fullmatch(r"llama-server-\d{8}-\d{6}\.log", log.name)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 9), (signal.SIGUSR1, None), (signal.SIGINT, None)]
)
def test_signals_reach_the_server_once(start: Start, stub: list[str], number: int, code: int | None) -> None:
    process = start(
        "run", "--log", "kept.log", "--", *stub, "wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    while process.stdout.readline() != b"ready\n":
        pass
    process.send_signal(number)
    if code is None:
        time.sleep(0.5)
        assert process.poll() is None, "the server decides whether it ends"
        process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 9
    assert err.count(b"signal %d\n" % number) == 1


def test_a_crash_is_told_as_a_shell_does(start: Start, stub: list[str]) -> None:
    process = start(
        "run", "--log", "kept.log", "--", *stub, "crash", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGSEGV
    assert b"the server was ended by SIGSEGV" in err


def test_the_server_runs_on_when_nobody_reads(
    start: Start, stub: list[str], sample: Path, tmp_path: Path
) -> None:
    process = start("run", "--log", "kept.log", "--", *stub, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=120) == 3
    assert sample.read_bytes()[-200:] in (tmp_path / "kept.log").read_bytes()


def test_what_can_not_be_started(start: Start, tmp_path: Path) -> None:
    for args, words in {
        ("run", "--log", "k.log", "--", "./no-such-server"): b"can't start ./no-such-server",
        ("run", "--log", "no/such/dir/k.log", "--", "true"): b"can't keep the log",
    }.items():
        process = start(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, b"")
        assert words in err
        assert err.count(b"\n") == 1


@pytest.mark.parametrize(
    ("command", "environment", "added"),
    [
        (["llama-server", "-m", "x"], {}, ["-lv 4", DEBUG, N_DIFF]),
        (["llama-server", "-lv", "5"], {}, [DEBUG, N_DIFF]),
        (["llama-server", "--verbosity", "2"], {"LLAMA_SERVER_SLOTS_DEBUG": "0"}, []),
        (["llama-server", "-v"], {}, [DEBUG, N_DIFF]),
        (["llama-server"], {"LLAMA_ARG_LOG_VERBOSITY": "3"}, [DEBUG, N_DIFF]),
        (["llama-server", "-v"], {"LLAMA_SERVER_SLOTS_N_DIFF": "5"}, [DEBUG]),
        (["llama-server", "-v"], {"LLAMA_SERVER_SLOTS_DEBUG": "1"}, [N_DIFF]),
        (["./start.sh", "-m", "-lv"], {"LLAMA_SERVER_SLOTS_DEBUG": ""}, []),
    ],
)
def test_only_what_is_missing_is_added(
    command: list[str], environment: dict[str, str], added: list[str]
) -> None:
    before = list(command), dict(environment)
    args, variables, words = with_settings(command, environment)
    assert words == added
    assert (command, environment) == before
    assert args == command + (["-lv", "4"] if "-lv 4" in added else [])
    for words in added:
        name, _, value = words.partition("=")
        assert not value or variables[name] == value
    assert os.environ.get("LLAMA_SERVER_SLOTS_DEBUG") != "changed"
