"""A real log to follow, and commands in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "sample_logs").glob("*.log"))
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def sample() -> Path:
    """A log with turns of several outcomes."""
    return ROOT / "sample_logs" / "rejected.log"


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """``start(*args, **popen)``: the command line in a process; killed at the test's end if need be."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*args: str, **options: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
        process = subprocess.Popen(
            [sys.executable, "-m", "ckptlog", *args], cwd=tmp_path, env=environment, **options
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
