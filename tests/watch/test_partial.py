"""``diagnose --partial``: Ctrl-C ends the reading, and what was found is reported."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from ckptlog import analyze
from ckptlog.intake.reader import CHUNK_BYTES

from .conftest import Start


class Fifo:
    """A pipe with a name that is neither read to its end nor ever empty for want of a writer."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR)
        with contextlib.suppress(OSError, AttributeError):  # more at a time, where the system can
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)

    def write_and_wait(self, data: bytes) -> None:
        """Until somebody has taken all of it."""
        os.set_blocking(self._descriptor, False)
        deadline = time.monotonic() + 60
        while data or self._waiting():
            if time.monotonic() > deadline:
                pytest.fail("nobody reads the pipe")
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self._descriptor, data) :] if data else data
            time.sleep(0.02)
        time.sleep(0.3)

    def _waiting(self) -> bool:
        return any(fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4)))


def test_ctrl_c_reports_what_was_read(start: Start, sample: Path, tmp_path: Path) -> None:
    pipe = Fifo(tmp_path / "pipe.log")
    process = start(
        "diagnose", str(pipe.path), "--partial", "--format", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    pipe.write_and_wait(sample.read_bytes())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(json.loads(out)["turns"]) == len(analyze(sample).report.turns)
    assert f"interrupted: this is what the first {sample.stat().st_size:,} bytes show".encode() in err


def test_without_it_ctrl_c_just_ends(start: Start, tmp_path: Path) -> None:
    pipe = Fifo(tmp_path / "pipe.log")
    process = start("diagnose", str(pipe.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pipe.write_and_wait(b"x\n")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_nor_does_it_wait_for_a_pipe_that_is_read_ahead(start: Start, tmp_path: Path) -> None:
    """More than one chunk: another thread reads then."""
    pipe = Fifo(tmp_path / "pipe.log")
    process = start("diagnose", str(pipe.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pipe.write_and_wait((b"x" * 99 + b"\n") * (5 * CHUNK_BYTES // 200))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
