"""Run the command line: in this process where that will do, in one of its own where it must."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ckptlog.cli import main

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_logs"


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes


Run = Callable[..., Done]


@pytest.fixture
def ckptlog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """``ckptlog(*args)`` in this process, in an empty folder, without a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CKPTLOG_DEBUG", raising=False)

    def run(*args: str) -> Done:
        capfdbinary.readouterr()
        code = main(args)
        captured = capfdbinary.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def ckptlog_process(tmp_path: Path) -> Run:
    """``ckptlog_process(*args, stdin=b"", **environment)``: a process of its own, in an empty folder."""

    def run(*args: str, stdin: bytes = b"", **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "ckptlog", *args],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            timeout=300,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def sample_log() -> Callable[[str], str]:
    """The path of a bundled sample log by its name."""
    return lambda name: str(SAMPLES / f"{name}.log")
