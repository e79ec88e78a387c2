"""The way back to a raw line by its number, without holding the log in memory."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import IO, Protocol

from ckptlog.errors import InputError
from ckptlog.intake.encoding import SNIFF_BYTES, Recoder, encoding_of, enough_to_sniff
from ckptlog.intake.limits import MAX_LINE_BYTES, cut_text
from ckptlog.intake.sources import Source, SourceFacts, open_raw
from ckptlog.intake.unpack import MAGIC_BYTES, Unpacker, compression_of

#: text is found by blocks of this size: a number each, and one read to show a line
BLOCK = 256 << 10
#: blocks kept: a page of a viewer and its neighbourhood
KEPT_BLOCKS = 32

_NEWLINE = re.compile(rb"\n")
_BOM_BYTES = 3


class LineStore:
    """Lines of a source by number, as the reader gave them (1-based, decoded, cut if overlong).

    Works on files (plain, compressed, any encoding) and on the copy that the reader made of a pipe.
    Plain text is read where the line stands; an archive is unpacked again as far as needed. A file that
    grows is followed. Lines that are no more there are None.
    """

    def __init__(self, source: Source) -> None:
        self._text: _Blocks = _blocks_of(source)
        #: newlines in front of each full block
        self._before = array("Q", [0])
        self._newlines: OrderedDict[int, list[int]] = OrderedDict()
        self._lock = Lock()

    def line(self, n: int) -> str | None:
        """Line ``n``, or None if the source has no such line."""
        found = self.lines(n, n)
        return found[0] if found else None

    def lines(self, first: int, last: int) -> list[str]:
        """Lines ``first`` to ``last``, both included, as far as there are any."""
        if first < 1 or last < first:
            return []
        with self._lock:
            place = self._start_of(first)
            if place is None:
                return []
            block, at = place
            found = []
            for _ in range(last - first + 1):
                line, block, at = self._line_at(block, at)
                if line is None:
                    break
                found.append(_shown(line))
            return found

    def _start_of(self, n: int) -> tuple[int, int] | None:
        """Block and offset where line ``n`` begins."""
        wanted = n - 1  # newlines in front of it
        if wanted == 0:
            return 0, 0
        while self._before[-1] < wanted:
            block = len(self._before) - 1
            data = self._text.block(block)
            count = data.count(b"\n")
            if len(data) < BLOCK:  # the last one; it may still grow
                if self._before[-1] + count < wanted:
                    return None
                return block, self._newline(block, data, wanted - self._before[-1] - 1) + 1
            self._before.append(self._before[-1] + count)
        block = bisect_left(self._before, wanted) - 1
        return block, self._newline(block, self._text.block(block), wanted - self._before[block] - 1) + 1

    def _newline(self, block: int, data: bytes, k: int) -> int:
        """Where the ``k``-th newline of a block stands."""
        places = self._newlines.pop(block, None)
        if places is None or len(data) < BLOCK:
            places = [match.start() for match in _NEWLINE.finditer(data)]
        self._newlines[block] = places
        if len(self._newlines) > KEPT_BLOCKS:
            self._newlines.popitem(last=False)
        return places[k]

    def _line_at(self, block: int, at: int) -> tuple[bytes | None, int, int]:
        """The line that begins at a place, and the place behind it."""
        pieces: list[bytes] = []
        size = 0
        while True:
            data = self._text.block(block)
            end = data.find(b"\n", at)
            if size <= MAX_LINE_BYTES:
                piece = data[at : end if end >= 0 else len(data)]
                pieces.append(piece)
                size += len(piece)
            if end >= 0:
                return b"".join(pieces), block, end + 1
            if len(data) < BLOCK:
                return (b"".join(pieces) if size else None), block, len(data)
            block, at = block + 1, 0


def _shown(line: bytes) -> str:
    text = line.removesuffix(b"\r")[: MAX_LINE_BYTES + 4].decode("utf-8", "replace")
    return cut_text(text, MAX_LINE_BYTES)


class _Blocks(Protocol):
    def block(self, index: int) -> bytes:
        """UTF-8 text [index * BLOCK, +BLOCK): shorter at the end, empty beyond it."""
        ...


class _PlainBlocks:
    """UTF-8 in a file (or a pipe's copy): text stands where the file has it."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file = file
        self._start = start
        self._kept: OrderedDict[int, bytes] = OrderedDict()

    def block(self, index: int) -> bytes:
        data = self._kept.get(index)
        if data is None:
            data = _read_at(self._file, self._start + index * BLOCK, BLOCK)
            if len(data) == BLOCK:
                _keep(self._kept, index, data)
        return data


class _DecodedBlocks:
    """Text that must be unpacked or recoded: read from the start, as far as needed, blocks kept."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = -1
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._next = 0
        self._stream: Iterator[bytes] = iter(())

    def block(self, index: int) -> bytes:
        size = self._file.seek(0, 2)
        if size != self._size:  # the last block kept may be longer now
            self._kept.clear()
        data = self._kept.get(index)
        if data is not None:
            return data
        if index < self._next or size != self._size:
            self._size, self._next, self._stream = size, 0, self._decoded()
        while self._next <= index:
            data = next(self._stream, b"")
            _keep(self._kept, self._next, data)
            self._next += 1
        return data or b""

    def _decoded(self) -> Iterator[bytes]:
        facts = SourceFacts()
        text = bytearray()
        for piece in _text_of(self._file, facts):
            text += piece
            whole = len(text) - len(text) % BLOCK
            for at in range(0, whole, BLOCK):
                yield bytes(text[at : at + BLOCK])
            del text[:whole]
        yield bytes(text)


def _text_of(file: IO[bytes], facts: SourceFacts) -> Iterator[bytes]:
    head = _read_at(file, 0, SNIFF_BYTES)
    compression = compression_of(head[:MAGIC_BYTES])
    unpacker = Unpacker(compression, facts) if compression is not None else None
    recoder: Recoder | None = None
    start = b""
    at = 0
    while data := _read_at(file, at, BLOCK):
        at += len(data)
        for piece in unpacker.feed(data) if unpacker is not None else (data,):
            if recoder is None:
                start += piece
                if not enough_to_sniff(start):
                    continue
                recoder, piece, start = Recoder(encoding_of(start), facts), start, b""
            yield recoder.feed(piece)
    recoder = recoder or Recoder(encoding_of(start), facts)
    yield recoder.feed(start) + recoder.feed(b"", final=True)


def _blocks_of(source: Source) -> _Blocks:
    file = source.spool
    if file is None:
        raw = open_raw(source)
        if not raw.seekable():
            raise InputError(f"{source.name} can be read only once")
        file = raw
    head = _read_at(file, 0, SNIFF_BYTES)
    encoding = encoding_of(head)
    if compression_of(head[:MAGIC_BYTES]) is None and encoding.startswith("utf-8"):
        return _PlainBlocks(file, _BOM_BYTES if encoding == "utf-8-sig" else 0)
    return _DecodedBlocks(file)


def _read_at(file: IO[bytes], offset: int, size: int) -> bytes:
    """Up to ``size`` bytes; fewer only at the end. A copy that is still written is left at its end."""
    pieces = []
    try:
        file.seek(offset)
        while size > 0 and (data := file.read(size)):
            pieces.append(data)
            size -= len(data)
        file.seek(0, 2)
    except (OSError, ValueError):  # the file is gone, or closed
        return b""
    return b"".join(pieces)


def _keep(kept: OrderedDict[int, bytes], index: int, data: bytes) -> None:
    kept[index] = data
    if len(kept) > KEPT_BLOCKS:
        kept.popitem(last=False)
