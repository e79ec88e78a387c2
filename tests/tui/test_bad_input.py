"""Bad input: a clear sentence, the right code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ckptlog.errors import CkptlogError, NothingToJudge
from ckptlog.tui.app import TimelineApp
from tests.tui.conftest import EVICTED, ROOT, until


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.log", b"", "is empty"),
        ("other.log", b"nothing of a server\n" * 20, "holds no line of a llama-server"),
        ("request.json", b'{"messages": []}\n', "is JSON"),
        ("binary.log", bytes(range(256)) * 64, "is binary"),
        ("gz.log", b"\x1f\x8b\x08\x00broken", ""),
    ],
)
async def test_a_log_with_nothing_to_judge_ends_the_app(
    name: str, content: bytes, says: str, tmp_path: Path
) -> None:
    log = tmp_path / name
    log.write_bytes(content)
    app = TimelineApp([str(log)])
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.failure is not None or not app.is_running, "the app gives up")
    assert isinstance(app.failure, CkptlogError)
    assert says in str(app.failure)
    assert app.return_code == app.failure.exit_code
    if says:
        assert isinstance(app.failure, NothingToJudge)


async def test_a_log_that_vanishes_before_it_is_read(tmp_path: Path) -> None:
    app = TimelineApp([str(tmp_path / "gone.log")])
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.failure is not None, "the app gives up")
    assert "no such file" in str(app.failure)
    assert app.return_code == 2


def run(*args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "ckptlog.cli", "tui", *args],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env=environment,
        check=False,
    )


def test_without_a_terminal_it_points_to_diagnose() -> None:
    result = run(str(EVICTED))
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "ckptlog: the timeline needs a terminal; ckptlog diagnose writes a report\n"


def test_help_needs_no_terminal() -> None:
    result = run("--help")
    assert result.returncode == 0
    assert "--follow" in result.stdout
    assert "--ascii" in result.stdout
