"""The bytes of a log that is still written: a file that grows or is replaced, or a pipe.

Files are polled: that works on network file systems and in containers, too. A file that does not
exist yet is waited for. Rotation by rename shows by another file under the name, truncation by the
size or by other bytes at the beginning.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from threading import Condition, Thread

from ckptlog.errors import InputError
from ckptlog.intake.sources import Source, open_raw, read_raw

#: seconds between two looks at a file; a line is to be shown within half a second, of which a turn that may not
#: be over takes 0.3 (watch/session.py)
POLL_SECONDS = 0.05
#: the first piece is small, so that there is something to see at once; then they grow
_FIRST_BYTES = 256 << 10
_MOST_BYTES = 16 << 20
#: bytes at the beginning that tell whether a file is still the same
_HEAD_BYTES = 256
#: what a pipe's reader may be ahead of the analysis; beyond that the writer has to wait
_AHEAD_BYTES = 64 << 20


class Idle:
    """Nothing new at the moment."""


class Replaced:
    """The file was rotated away or truncated: what comes next is in a new one of the same name."""


Piece = bytes | Idle | Replaced


def follow_file(
    source: Source, *, stopped: Callable[[], bool] = lambda: False, poll: float = POLL_SECONDS
) -> Iterator[Piece]:
    """What a file holds and what is written to it later, on and on until ``stopped()``.

    Raises InputError if it can't be read.
    """
    while not stopped():
        if not os.path.exists(source.path):
            yield Idle()
            time.sleep(poll)
            continue
        yield from _one_file(source, stopped, poll)


def _one_file(source: Source, stopped: Callable[[], bool], poll: float) -> Iterator[Piece]:
    """One file to its end, that is until another one stands under its name."""
    size = _FIRST_BYTES
    with open_raw(source) as file:
        head, taken = b"", 0
        while not stopped():
            data = read_raw(file, size, source)
            if data:
                taken += len(data)
                head = (head + data)[:_HEAD_BYTES] if len(head) < _HEAD_BYTES else head
                yield data
                size = min(2 * size, _MOST_BYTES)
                continue
            size = _FIRST_BYTES
            yield Idle()
            if _is_other(file.fileno(), source.path, head, taken):
                # what was written to the old file between the last read and its rotation
                while os.fstat(file.fileno()).st_size > taken and (data := read_raw(file, _MOST_BYTES, source)):
                    taken += len(data)
                    yield data
                yield Replaced()
                return
            time.sleep(poll)


def _is_other(descriptor: int, path: str, head: bytes, taken: int) -> bool:
    """Whether the name stands for another file now, or the same one was emptied."""
    try:
        own, named = os.fstat(descriptor), os.stat(path)
    except OSError:
        return False  # moved away, and the new file is not there yet
    if (own.st_dev, own.st_ino) != (named.st_dev, named.st_ino):
        return True
    if own.st_size < taken:
        return True
    return own.st_size > taken and os.pread(descriptor, len(head), 0) != head


class Pipe:
    """Reads a pipe in a thread of its own, so that a slow analysis does not hold up its writer.

    ``tee`` is called in that thread with the bytes as they come, before anything else sees them.
    """

    def __init__(self, descriptor: int, tee: Callable[[bytes], None] | None = None) -> None:
        self._descriptor = descriptor
        self._tee = tee
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._error: OSError | None = None
        self._changed = Condition()
        self._thread = Thread(target=self._run, name="ckptlog-pipe", daemon=True)

    def follow(self, poll: float = POLL_SECONDS) -> Iterator[Piece]:
        """All that came since the last look as one piece; ends with the pipe. Raises InputError."""
        self._thread.start()
        while True:
            with self._changed:
                if not self._pieces and not self._ended:
                    self._changed.wait(poll)
                pieces, self._pieces, self._size = self._pieces, [], 0
                ended = self._ended
                self._changed.notify_all()
            if pieces:
                yield b"".join(pieces)
            elif ended:
                if self._error is not None:
                    raise InputError(f"can't read standard input: {(self._error.strerror or '').lower()}")
                return
            else:
                yield Idle()

    def _run(self) -> None:
        try:
            while data := os.read(self._descriptor, 1 << 20):
                if self._tee is not None:
                    self._tee(data)
                with self._changed:
                    while self._size > _AHEAD_BYTES:
                        self._changed.wait()
                    self._pieces.append(data)
                    self._size += len(data)
                    self._changed.notify_all()
        except OSError as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
