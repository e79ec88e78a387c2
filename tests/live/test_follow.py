"""``run`` and ``watch`` on the real server: a turn is told when it ends, and as diagnose tells it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any

import msgspec
import pytest
from rich.console import Console

import ckptlog
from ckptlog.cli.common import rendered
from ckptlog.report.text import render_text
from tests.live.client import Client
from tests.live.models import make_model

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("child.py")
FLAGS = {"ctx-size": 512, "parallel": 1, "verbosity": 4, "ctx-checkpoints": 2, "checkpoint-min-step": 16}
PATIENCE_S = 20.0


class Lines:
    """What a process writes, line by line, while it runs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.lines: list[bytes] = []
        self._thread = Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self.lines.append(line)

    def wait(self, mark: bytes, count: int) -> None:
        """Until so many lines hold the mark."""
        ended_by = time.monotonic() + PATIENCE_S
        while sum(mark in line for line in self.lines) < count:
            assert time.monotonic() < ended_by, f"{mark!r} not seen {count} times:\n" + b"".join(self.lines[-20:]).decode()
            time.sleep(0.02)

    def all(self) -> list[bytes]:
        """To the stream's end."""
        self._thread.join(PATIENCE_S)
        return self.lines


@pytest.fixture
def server(models: Path, tmp_path: Path) -> tuple[list[str], Callable[[], Client]]:
    """The server's command (it ends with its standard input), and what waits for it and gives a client."""
    ready, config = tmp_path / "ready", tmp_path / "config.json"
    model = str(make_model("hybrid", models))
    config.write_text(json.dumps({"model": model, "flags": FLAGS, "logger": {}, "ready": str(ready)}))

    def client() -> Client:
        ended_by = time.monotonic() + 60
        while not ready.exists():
            assert time.monotonic() < ended_by, "the server does not start"
            time.sleep(0.02)
        return Client(json.loads(ready.read_text())["address"])

    return [sys.executable, str(CHILD), str(config)], client


def requests() -> Iterator[tuple[list[int], int]]:
    """Prompts as tokens, and the status that the server answers with: appended twice, parted, too long."""
    base = [300 + i % 50 for i in range(120)]
    yield base, 200
    yield [*base, *range(400, 440)], 200
    yield [*base[:60], *range(440, 520)], 200
    yield [300 + i % 50 for i in range(700)], 400


def ask(client: Client, tokens: list[int]) -> int | None:
    return client.post("/completion", {"prompt": tokens, "n_predict": 4, "temperature": 0}).status


@contextmanager
def started(*args: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LLAMA_") and "proxy" not in k.lower()}
    process = subprocess.Popen(args, env={**environment, "PYTHONPATH": str(ROOT)}, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_run(
    server: tuple[list[str], Callable[[], Client]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, client = server
    pipe = subprocess.PIPE
    run = (sys.executable, "-m", "ckptlog", "run", "--log", "kept.log", "--", *command)
    with started(*run, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        shown, out = Lines(process.stderr), Lines(process.stdout)
        asked = client()
        for tokens, status in requests():
            assert ask(asked, tokens) == status
        shown.wait(b"  do: ", 1)  # the refusal, while the server runs
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        report = b"".join(out.all()).decode()
    monkeypatch.chdir(tmp_path)
    found = ckptlog.analyze("kept.log").report
    assert [turn.outcome for turn in found.turns][-1] == "arrival-rejection"
    assert len(found.turns) == len(list(requests()))
    assert found.runs[0].slots_debug
    page = Console(width=80)
    assert report.endswith(rendered(page, render_text(found, 80)))
    failed = sum(turn.failed or turn.outcome == "error" for turn in found.turns)
    assert sum(line.startswith(b"          do: ") for line in shown.all()) == failed


def test_watch_behind_a_pipe(server: tuple[list[str], Callable[[], Client]], tmp_path: Path) -> None:
    command, client = server
    pipe, log = subprocess.PIPE, tmp_path / "teed.log"
    watch = (sys.executable, "-m", "ckptlog", "watch", "-", "--tee", "--json")
    with (
        started(*command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as process,
        log.open("wb") as teed,
        started(*watch, stdin=process.stdout, stdout=teed, stderr=pipe) as watcher,
    ):
        assert process.stdin is not None
        assert watcher.stderr is not None
        shown = Lines(watcher.stderr)
        asked = client()
        for number, (tokens, status) in enumerate(requests(), 1):
            assert ask(asked, tokens) == status
            shown.wait(b'"outcome"', number)  # before the next one is asked
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        assert watcher.wait(PATIENCE_S) == 0
        said = [json.loads(line) for line in shown.all() if line.startswith(b"{")]
    found = [msgspec.to_builtins(turn) for turn in ckptlog.analyze(log).report.turns]
    for turn in (*said, *found):
        del turn["fixes"]  # numbers in them come from a replay of the whole log
    assert json.loads(json.dumps(found)) == said
