"""The bytes of a file piece by piece, and, if it is followed, what is written to it later.

Rotation is noticed by the file that the name stands for (another inode), truncation by the size or
by other bytes at the beginning. Files are polled: that works on network file systems and in
containers, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from ckptlog.errors import InputError
from ckptlog.intake.sources import Source, open_raw

#: the first piece is small, so that there is something to see at once; then they grow
_FIRST_BYTES = 256 << 10
_MOST_BYTES = 4 << 20
#: seconds between two looks at a file that is followed
POLL_SECONDS = 0.2
#: bytes at the beginning that tell whether a file is still the same
_HEAD_BYTES = 256


class Waiting:
    """Nothing new at the moment."""


class Restarted:
    """The file was rotated away or truncated: what comes next is in a new one of the same name."""


def pieces(
    source: Source, *, follow: bool, stopped: Callable[[], bool], poll: float = POLL_SECONDS
) -> Iterator[bytes | Waiting | Restarted]:
    """A source's bytes; with ``follow`` it goes on until ``stopped`` or the file is another one.

    Raises InputError if it can't be read.
    """
    size = _FIRST_BYTES
    with open_raw(source) as file:
        head, taken = b"", 0
        while not stopped():
            try:
                data = file.read(size)
            except OSError as error:
                raise InputError(
                    f"can't read {source.name}: {(error.strerror or str(error)).lower()}"
                ) from None
            if data:
                taken += len(data)
                if len(head) < _HEAD_BYTES:
                    head = (head + data)[:_HEAD_BYTES]
                yield data
                size = min(2 * size, _MOST_BYTES)
                continue
            if not follow:
                return
            size = _FIRST_BYTES
            yield Waiting()
            if _is_other(file.fileno(), source.path, head, taken):
                # what was written to the old file between the last read and its rotation
                while data := file.read(_MOST_BYTES):
                    yield data
                yield Restarted()
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
