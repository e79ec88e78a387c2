"""Several processes for one big log, each with a part of it (see parts.py and processes.py).

Their messages are MessagePack. If anything goes wrong with them, the log is read in one go.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ckptlog import processes
from ckptlog.analysis.collector import no_collector
from ckptlog.analysis.parts import Joined, Part, Result, Span, Undivided, divided
from ckptlog.records import Fix

#: what the first process has read when one started just now has done its imports
LEAD_BYTES = 8 << 20


def analyze_in_parts(path: str, count: int, progress: Callable[[int], None] | None = None) -> Joined:
    """A file analysed by ``count`` processes; the same as one would find.

    ``progress`` is called with about how many bytes are read. Raises Undivided where the log can't be divided.
    """
    helpers: list[Helper] = []
    try:
        spans = divided(path, count, 0 if processes.are_waiting() else LEAD_BYTES)
        own, size = spans[0].end or 1, os.path.getsize(path)
        taken = processes.take(len(spans) - 1)
        helpers += [Helper(process, span) for process, span in zip(taken, spans[1:], strict=True)]
        part = Part(spans[0], None if progress is None else lambda n: progress(n * size // own))
        joined = Joined(path, [part.result(), *(helper.result() for helper in helpers)])
        own_chosen, *others = joined.chosen()
        for helper, chosen in zip(helpers, others, strict=True):
            helper.ask(chosen)
        at = 0
        for numbered, turns in [
            (part.number(own_chosen), part.turns),
            *((helper.numbered(), helper.turns) for helper in helpers),
        ]:
            for i, fixes in numbered.items():
                joined.turns[at + i].fixes = fixes
            at += turns
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise Undivided from error
    finally:
        for helper in helpers:
            helper.process.stop()
    return joined


class Helper:
    """What a process that has one part is asked."""

    def __init__(self, process: processes.Helper, span: Span) -> None:
        self.turns = 0
        self.process = process
        # one that is gone is noticed when its result is wanted
        with suppress(OSError):
            process.send(msgspec.msgpack.encode((os.fsencode(span.path), span.start, span.end)))

    def result(self) -> Result:
        """Waits for the part's result."""
        result = msgspec.msgpack.decode(self.process.receive(), type=Result)
        self.turns = len(result.turns)
        return result

    def ask(self, chosen: list[int]) -> None:
        """Asks for the numbers in the fixes of these runs."""
        self.process.send(msgspec.msgpack.encode(chosen))

    def numbered(self) -> dict[int, list[Fix]]:
        """Waits for what was asked: as ``Part.number``."""
        return msgspec.msgpack.decode(self.process.receive(), type=dict[int, list[Fix]])


def serve() -> None:
    """What a helper does: one part, and then the numbers in its fixes, if they are asked for."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    with no_collector():
        try:
            path, start, end = msgspec.msgpack.decode(
                processes.receive(asked), type=tuple[bytes, int, int | None]
            )
            part = Part(Span(os.fsdecode(path), start, end))
            processes.send(told, msgspec.msgpack.encode(part.result()))
            chosen = msgspec.msgpack.decode(processes.receive(asked), type=list[int])
            processes.send(told, msgspec.msgpack.encode(part.number(chosen)))
        except (Undivided, EOFError, OSError):
            return  # nothing more is wanted, or nothing can be said: the other side reads the log itself
