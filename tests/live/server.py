"""Starts and stops llama.cpp's server in a child process; its stderr is the log under test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.live.client import Client

_CHILD = Path(__file__).with_name("child.py")
_START_SECONDS = 60.0


class ServerFailed(RuntimeError):
    """The server did not start, or died; the message holds the end of what it wrote."""


class ServerProcess:
    """One server process. ``folder`` is its working directory (model paths are relative to it)."""

    def __init__(
        self,
        model: str,
        flags: dict[str, Any],
        *,
        folder: Path,
        log: Path,
        env: dict[str, str] | None = None,
        logger: dict[str, bool] | None = None,
        python: str = sys.executable,
        threads: int = 1,
    ) -> None:
        self.log = log
        #: with ``jsonl`` the server writes its log to stdout, so stdout is then kept instead
        self._to_stdout = bool((logger or {}).get("jsonl"))
        ready = log.with_suffix(".ready")
        ready.unlink(missing_ok=True)
        config = log.with_suffix(".config.json")
        config.write_text(
            json.dumps(
                {
                    "model": model,
                    "flags": flags,
                    "logger": logger or {},
                    "ready": str(ready),
                    "threads": threads,
                }
            )
        )
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith("LLAMA_") and "proxy" not in k.lower()
        }
        other = log.with_suffix(".other")
        with log.open("ab") as kept, other.open("ab") as rest:
            self._process = subprocess.Popen(
                [python, str(_CHILD), str(config)],
                cwd=folder,
                env={**clean, **(env or {}), "PYTHONPATH": ""},
                stdin=subprocess.PIPE,
                stdout=kept if self._to_stdout else rest,
                stderr=rest if self._to_stdout else kept,
            )
        info = self._wait_until_ready(ready)
        #: flags that this release does not know
        self.missing: list[str] = info["missing"]
        #: the parameters in effect, by the library's names
        self.params: dict[str, Any] = info["params"]
        #: that this release has no HTTP of its own, and so neither slot actions nor a tokenizer
        self.bridged: bool = info["bridged"]
        self.client = Client(info["address"])
        config.unlink()
        ready.unlink()

    def _wait_until_ready(self, ready: Path) -> dict[str, Any]:
        deadline = time.monotonic() + _START_SECONDS
        while not ready.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._process.kill()
                tail = self.log.read_bytes()[-1500:] + self.log.with_suffix(".other").read_bytes()[-1500:]
                raise ServerFailed(tail.decode(errors="replace"))
            time.sleep(0.01)
        info: dict[str, Any] = json.loads(ready.read_text())
        return info

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> int:
        """Close its stdin and wait; returns its exit code (negative if it had to be killed)."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self.log.with_suffix(".other").unlink(missing_ok=True)
        return code

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()
