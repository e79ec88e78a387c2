"""Helper processes for big logs: started early, so that their imports run beside ours.

A helper is a process of its own that runs SERVE: forking one that has used Polars is not safe, and
``multiprocessing`` would run the caller's main module again. Helpers talk in messages on their pipes.
This module imports nothing big.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

#: from this size on a second process gains more than its imports cost
WORTH_BYTES = 40 << 20
#: more processes than this would wait for the one that puts their results together
MOST_PROCESSES = 8
#: the program of a helper
SERVE = "from ckptlog.analysis.parallel import serve; serve()"

#: what is named so is never divided
COMPRESSED = (".gz", ".zst", ".zstd")

#: how many threads Polars uses, told before it is imported: of several processes each has a processor to itself, and
#: threads that wait for work take its time
THREADS = "POLARS_MAX_THREADS"

_LENGTH_BYTES = 8


def how_many(size: int, wanted: int | None = None) -> int:
    """How many processes are worth having for a file of that size; at most ``wanted``, or the processors there are."""
    # the executable of a frozen application is no interpreter
    if size < WORTH_BYTES or not sys.executable or getattr(sys, "frozen", False):
        return 1
    if wanted is None:
        wanted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(wanted, MOST_PROCESSES, 2 * size // WORTH_BYTES)


class Helper:
    """A process that waits for messages, with its pipes."""

    def __init__(self) -> None:
        # an empty place is the current folder (an interactive interpreter in a checkout)
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, THREADS: "1", "PYTHONPATH": path},
        )

    def send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        send(self._process.stdin, message)

    def receive(self) -> bytes:
        """Waits for the helper's next message; raises EOFError if it is gone."""
        assert self._process.stdout is not None
        return receive(self._process.stdout)

    def stop(self) -> None:
        """Ends it, without waiting for the system to take back what it holds."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                # what was never taken by a helper that is gone
                with suppress(OSError):
                    pipe.close()
        threading.Thread(target=self._process.wait, daemon=True).start()


_waiting: list[Helper] = []


def start_early(paths: Sequence[str]) -> None:
    """Starts the helpers that one big file will be worth, before anything is known of what is in it."""
    if len(paths) != 1 or _waiting:
        return
    try:
        status = os.stat(paths[0])
        if stat.S_ISREG(status.st_mode) and not paths[0].endswith(COMPRESSED):
            _waiting.extend(Helper() for _ in range(how_many(status.st_size) - 1))
            if _waiting:
                os.environ.setdefault(THREADS, "1")
    except OSError:
        return  # whoever reads the file says what is wrong


def take(count: int) -> list[Helper]:
    """So many helpers: those that wait, and new ones. Raises OSError if there can't be so many."""
    taken = _waiting[:count]
    del _waiting[:count]
    try:
        while len(taken) < count:
            taken.append(Helper())
    except OSError:
        _waiting.extend(taken)
        raise
    return taken


def dismiss() -> None:
    """Stops the helpers that nobody took."""
    while _waiting:
        _waiting.pop().stop()


def are_waiting() -> bool:
    return bool(_waiting)


def send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_LENGTH_BYTES))
    pipe.write(message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    """The next message; raises EOFError if the other side is gone."""
    return _read(pipe, int.from_bytes(_read(pipe, _LENGTH_BYTES)))


def _read(pipe: IO[bytes], length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data
