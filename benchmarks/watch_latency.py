"""How long after a turn's last line is written ``ckptlog watch`` shows it.

    python benchmarks/watch_latency.py

A real log is written turn by turn, with a pause between; the clock runs from the write of a turn's last
line to the moment at which its JSON line can be read from ``watch --json``. A pipe, a growing file, and
a file that is rotated in between (by rename, and by truncation) are told apart.
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
LOGS = HERE.parent / "tests" / "data" / "logs"
#: a log that tells when a turn's last line has come, and one of which only a pause tells it: it has no times
KINDS = {"with times": "b11549/hybrid/lv4", "without times": "b8672/hybrid/lv4"}
#: what is waited for at most; and between two turns
PATIENCE_S = 10.0
PAUSE_S = 0.15


@dataclass
class Way:
    """One way in which a log grows: ``write`` appends, ``between`` is done before each fifth turn."""

    name: str
    log: str
    write: Callable[[bytes], None]
    between: Callable[[], None]


def turns_of(log: bytes) -> list[bytes]:
    """The log in pieces, each ending with the last line of one more turn; turns side by side go together."""
    from ckptlog import analyze

    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(log)
        file.flush()
        turns = analyze(file.name).report.turns
    lines = log.splitlines(keepends=True)
    ends = sorted({turn.lines[1] for turn in turns if turn.ended == "release"})
    pieces, start = [], 0
    for end in ends:
        pieces.append(b"".join(lines[start:end]))
        start = end
    return pieces


def grown(folder: Path) -> list[Way]:
    """The ways of a file to grow."""
    files: dict[Path, IO[bytes]] = {}

    def append_to(path: Path) -> Callable[[bytes], None]:
        files[path] = path.open("ab", buffering=0)
        return lambda data: (files[path].write(data), None)[1]

    def renamed(path: Path) -> Callable[[], None]:
        def rotate() -> None:
            path.rename(path.with_suffix(".1"))
            files[path] = path.open("ab", buffering=0)

        return rotate

    def truncated(path: Path) -> Callable[[], None]:
        return lambda: os.truncate(path, 0)

    a, b, c = folder / "grows.log", folder / "renamed.log", folder / "truncated.log"
    return [
        Way("file", str(a), append_to(a), lambda: None),
        Way("file, rotated by rename", str(b), append_to(b), renamed(b)),
        Way("file, truncated", str(c), append_to(c), truncated(c)),
    ]


def measure(way: Way | None, pieces: list[bytes]) -> list[float]:
    """Seconds from a turn's last line to its being shown; ``way`` null is a pipe."""
    watcher = subprocess.Popen(
        [sys.executable, "-m", "ckptlog", "watch", "-" if way is None else way.log, "--json"],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert watcher.stdin is not None
    assert watcher.stdout is not None
    shown: Queue[float] = Queue()

    def read(stream: IO[bytes]) -> None:
        for _ in stream:
            shown.put(time.monotonic())

    Thread(target=read, args=(watcher.stdout,), daemon=True).start()
    found = []
    try:
        for number, piece in enumerate(pieces):
            if way is not None and number and number % 5 == 0:
                way.between()
            written = time.monotonic()
            if way is None:
                watcher.stdin.write(piece)
                watcher.stdin.flush()
            else:
                way.write(piece)
            try:
                took = shown.get(timeout=PATIENCE_S) - written
            except Empty:
                raise SystemExit(f"a turn was not shown within {PATIENCE_S:.0f} s") from None
            if number:  # the first one waits for the command's imports
                found.append(took)
            time.sleep(PAUSE_S)
            while not shown.empty():  # turns that ended together
                shown.get()
    finally:
        watcher.kill()
        watcher.wait()
    return found


def table() -> list[str]:
    """The figures as a Markdown table."""
    out = ["| log | way | turns | median ms | worst ms |", "|---|---|---|---|---|"]
    for kind, name in KINDS.items():
        pieces = turns_of(gzip.decompress((LOGS / f"{name}.log.gz").read_bytes()))
        with tempfile.TemporaryDirectory(prefix="ckptlog-latency-") as folder:
            for way in (None, *grown(Path(folder))):
                found = [seconds * 1000 for seconds in measure(way, pieces)]
                title = "pipe" if way is None else way.name
                out.append(
                    f"| {kind} | {title} | {len(found)} | {statistics.median(found):.0f} | {max(found):.0f} |"
                )
    return [*out, ""]


if __name__ == "__main__":
    print("\n".join(table()))
