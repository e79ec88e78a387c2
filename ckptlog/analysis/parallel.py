"""Several processes for one big log, each with a part of it (see parts.py).

The helpers are processes of their own that run this module: forking one that has used Polars is not safe,
and ``multiprocessing`` would run the caller's main module again. They talk in messages of MessagePack on
their pipes. If anything goes wrong with them, the log is read in one go.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import IO

import msgspec

from ckptlog.analysis.collector import no_collector
from ckptlog.analysis.parts import Joined, Part, Result, Span, Undivided, divided
from ckptlog.records import Fix

#: from this size on a second process gains more than its imports cost
WORTH_BYTES = 40 << 20
#: what the first process has read when the others have done their imports
LEAD_BYTES = 8 << 20
#: more processes than this would wait for the one that puts their results together
MOST_PROCESSES = 8
_LENGTH_BYTES = 8
#: the program of a helper
SERVE = "from ckptlog.analysis.parallel import serve; serve()"


def how_many(size: int, wanted: int | None = None) -> int:
    """How many processes are worth having for a file of that size; at most ``wanted``, or the processors there are."""
    if size < WORTH_BYTES or not sys.executable:
        return 1
    if wanted is None:
        wanted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(wanted, MOST_PROCESSES, 2 * size // WORTH_BYTES)


def analyze_in_parts(path: str, processes: int, progress: Callable[[int], None] | None = None) -> Joined:
    """A file analysed by several processes; the same as one would find.

    ``progress`` is called with about how many bytes are read. Raises Undivided where the log can't be divided.
    """
    spans = divided(path, processes, LEAD_BYTES)
    own, size = spans[0].end or 1, os.path.getsize(path)
    helpers = [Helper(span) for span in spans[1:]]
    try:
        part = Part(spans[0], None if progress is None else lambda n: progress(n * size // own))
        joined = Joined(path, [part.result(), *(helper.result() for helper in helpers)])
        at = 0
        workers: list[Part | Helper] = [part, *helpers]
        for of, chosen in zip(workers, joined.chosen(), strict=True):
            if chosen:
                for i, fixes in of.number(chosen).items():
                    joined.turns[at + i].fixes = fixes
            at += of.turns
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise Undivided from error
    finally:
        for helper in helpers:
            helper.stop()
    return joined


class Helper:
    """A process that analyses one part."""

    def __init__(self, span: Span) -> None:
        path = os.pathsep.join(place for place in sys.path if place)
        self.turns = 0
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        _send(self._to, msgspec.msgpack.encode((os.fsencode(span.path), span.start, span.end)))

    def result(self) -> Result:
        """Waits for the part's result."""
        result = msgspec.msgpack.decode(_receive(self._from), type=Result)
        self.turns = len(result.turns)
        return result

    def number(self, chosen: list[int]) -> dict[int, list[Fix]]:
        _send(self._to, msgspec.msgpack.encode(chosen))
        return msgspec.msgpack.decode(_receive(self._from), type=dict[int, list[Fix]])

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """What a helper does: one part, and then the numbers in its fixes, if they are asked for."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    path, start, end = msgspec.msgpack.decode(_receive(asked), type=tuple[bytes, int, int | None])
    with no_collector():
        try:
            part = Part(Span(os.fsdecode(path), start, end))
        except Undivided:
            return
        _send(told, msgspec.msgpack.encode(part.result()))
        chosen = msgspec.msgpack.decode(_receive(asked), type=list[int])
        _send(told, msgspec.msgpack.encode(part.number(chosen)))


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_LENGTH_BYTES))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """The next message; raises EOFError if the other side is gone."""
    length = int.from_bytes(_read(pipe, _LENGTH_BYTES))
    return _read(pipe, length)


def _read(pipe: IO[bytes], length: int) -> bytes:
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return data
