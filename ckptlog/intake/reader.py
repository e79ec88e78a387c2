"""Bytes of a log, whatever its form, into Polars series of physical lines, chunk by chunk.

Batch and follow mode are one engine: ``read_chunks`` feeds a ``Feeder`` with what it reads. The
lines are the same however the bytes are cut.
"""

from __future__ import annotations

import io
import os
import select
from collections.abc import Callable, Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, NamedTuple

import polars as pl

from ckptlog.errors import InputError
from ckptlog.intake.encoding import BinaryCheck, Recoder, encoding_of, enough_to_sniff
from ckptlog.intake.journal import MARK, with_text_messages
from ckptlog.intake.limits import MAX_CHUNK_LINES, MAX_LINE_BYTES, MAX_UNPACKED, cut_text
from ckptlog.intake.sources import Source, open_raw
from ckptlog.intake.unpack import MAGIC_BYTES, Unpacker, compression_of

#: bytes a chunk is read by: big enough that the cost of a chunk vanishes, small enough for memory
CHUNK_BYTES = 16 << 20
#: a pipe's copy stays in memory up to this size, then goes to a temporary file
SPOOL_MEMORY = 32 << 20

# a line is cut on a character's edge, so up to three bytes behind the limit must be known
_MARGIN = 4
# how long a pipe without news is waited for before looking whether to stop
_LOOK_SECONDS = 0.2


class Chunk(NamedTuple):
    """Whole physical lines, without ``\\n`` and the ``\\r`` before it; a NUL or lone CR is kept.

    ``lines`` is a String series named ``line``; ``first_line`` is the 1-based number of its first;
    ``offset`` is where that line starts, in bytes after decompression (UTF-16: after recoding). ``raw`` are the lines
    as they stand in the file, where something was taken off.
    """

    lines: pl.Series
    first_line: int
    offset: int
    raw: pl.Series | None = None


class Feeder:
    """Bytes as they come in, chunks of the lines they complete out.

    ``max_bytes`` limits the text after decompression; InputError is raised beyond it.
    """

    def __init__(
        self, source: Source, *, max_bytes: int | None = None, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self.source = source
        self.facts = source.facts
        self._max_bytes = max_bytes
        self._unpacker: Unpacker | None = None
        self._recoder: Recoder | None = None
        self._head = b""  # kept until it shows the compression
        self._text_head = b""  # kept until it shows the encoding
        self._known = False
        self._binary = BinaryCheck(self.facts)
        self._cutter = _LineCutter(source, max_line_bytes)

    def feed(self, data: bytes) -> list[Chunk]:
        """The lines that ``data`` completes; possibly none."""
        return list(self.stream(data))

    def stream(self, data: bytes) -> Iterator[Chunk]:
        """As ``feed``, one chunk at a time: a compressed block can hold many."""
        self.facts.raw_bytes += len(data)
        if not self._known:
            self._head += data
            if len(self._head) < MAGIC_BYTES:
                return
            data = self._identify()
        yield from self._unpacked(data)

    def finish(self) -> list[Chunk]:
        """No more bytes: the last line, if it has no newline, and what was held back."""
        chunks = [] if self._known else list(self._unpacked(self._identify()))
        if self._unpacker is not None:
            self._unpacker.finish()
        if self._recoder is None:
            chunks += self._recoded(self._start_text())
        assert self._recoder is not None
        chunks += self._text(self._recoder.feed(b"", final=True))
        self._binary.finish()
        chunks += self._cutter.finish()
        if self.facts.cut_lines:
            many = self.facts.cut_lines > 1
            what = f"{self.facts.cut_lines:,} lines were" if many else "one line was"
            self.facts.warnings.append(f"{what} longer than {MAX_LINE_BYTES >> 20} MiB and cut there")
        return chunks

    def _identify(self) -> bytes:
        self._known = True
        data, self._head = self._head, b""
        self.facts.compression = compression_of(data)
        if self.facts.compression is not None:
            self._unpacker = Unpacker(self.facts.compression, self.facts)
            if self._max_bytes is None:
                self._max_bytes = MAX_UNPACKED
        return data

    def _unpacked(self, data: bytes) -> Iterator[Chunk]:
        if self._unpacker is None:
            yield from self._decoded(data)
            return
        for piece in self._unpacker.feed(data):
            yield from self._decoded(piece)

    def _decoded(self, data: bytes) -> Iterable[Chunk]:
        if self._recoder is None:
            self._text_head += data
            if not enough_to_sniff(self._text_head):
                return []
            data = self._start_text()
        return self._recoded(data)

    def _start_text(self) -> bytes:
        data, self._text_head = self._text_head, b""
        self._recoder = Recoder(encoding_of(data), self.facts)
        return data

    def _recoded(self, data: bytes) -> Iterable[Chunk]:
        assert self._recoder is not None
        return self._text(self._recoder.feed(data))

    def _text(self, data: bytes) -> Iterable[Chunk]:
        if not data:
            return []
        self.facts.bytes += len(data)
        if self._max_bytes is not None and self.facts.bytes > self._max_bytes:
            what = f"{self.source.name} holds more than {self._max_bytes:,} bytes"
            if self.facts.compression is not None:
                what += f" when unpacked from {self.facts.raw_bytes:,}"
            raise InputError(f"{what}: a higher limit can be given with --max-bytes")
        self._binary.feed(data)
        return self._cutter.feed(data)


class _LineCutter:
    """UTF-8 in, whole lines out; holds at most one unfinished line, of bounded size."""

    def __init__(self, source: Source, max_line_bytes: int) -> None:
        self._facts = source.facts
        self._limit = max_line_bytes
        self._carry = bytearray()
        self._skipping = False  # in a line of which enough is kept
        self._first_line = 1
        self._offset = 0
        self._skipped = 0
        self._json: bool | None = None  # the log is a file of JSON objects

    def feed(self, data: bytes) -> Iterable[Chunk]:
        """The lines that ``data`` completes; one chunk at a time, for very short lines make many."""
        if self._skipping:
            end = data.find(b"\n")
            if end < 0:
                self._skipped += len(data)
                return []
            self._skipped += end
            self._skipping = False
            data = data[end:]
        cut = data.rfind(b"\n") + 1
        if cut == 0:
            self._keep(data)
            return []
        view = memoryview(data)
        whole = b"".join((self._carry, view[:cut])) if self._carry or cut < len(data) else data
        self._carry = bytearray()
        # bytes skipped belong to the first line of ``whole``: it began before any other
        skipped, self._skipped = self._skipped, 0
        self._keep(view[cut:])
        return self._lines(whole, skipped)

    def finish(self) -> Iterable[Chunk]:
        if not self._carry:
            return []
        self._facts.ends_in_mid_line = True
        whole = bytes(self._carry)
        self._carry = bytearray()
        skipped, self._skipped = self._skipped, 0
        return self._lines(whole, skipped)

    def _keep(self, rest: bytes | memoryview) -> None:
        room = self._limit + _MARGIN - len(self._carry)
        self._carry += rest[:room]
        if len(rest) > room:
            self._skipping = True
            self._skipped += len(rest) - room

    def _lines(self, whole: bytes, skipped: int) -> Iterator[Chunk]:
        for piece in _split_dense(whole):
            lines = self._series(piece)
            chunk = Chunk(lines, self._first_line, self._offset)
            self._first_line += len(lines)
            self._facts.lines += len(lines)
            self._offset += len(piece) + skipped
            skipped = 0
            yield chunk

    def _series(self, piece: bytes) -> pl.Series:
        n_broken = 0
        try:
            lines = _read_lines(piece)
        except pl.exceptions.ComputeError:
            mended, n_broken = _mend(piece)
            lines = _read_lines(mended)
        longest = lines.str.len_bytes().max()
        if isinstance(longest, int) and longest > self._limit:
            if n_broken:
                # only the kept part counts, or the count would depend on how the bytes were cut
                kept = b"\n".join(line[: self._limit + _MARGIN] for line in piece.split(b"\n"))
                mended, n_broken = _mend(kept)
                lines = _read_lines(mended)
            self._facts.cut_lines += int((lines.str.len_bytes() > self._limit).sum())
            lines = self._cut(lines)
        self._facts.broken += n_broken
        if self._json is None:
            self._json = piece[:1] == b"{"
        if self._json and MARK.search(piece):
            lines = with_text_messages(lines)
        return lines

    def _cut(self, lines: pl.Series) -> pl.Series:
        limit = self._limit
        return pl.Series(
            lines.name,
            [cut_text(line, limit) for line in lines.to_list()],
            dtype=pl.String,
        )


_REPLACEMENT = "\ufffd".encode()
# first bytes of gzip, zlib and zstd data, which Polars' reader looks for itself
_LIKE_AN_ARCHIVE = (b"\x1f", b"x", b"(")
# pieces without a malformed sequence pass unchanged, so small pieces pay
_MEND_BYTES = 16 << 10


def _read_lines(data: bytes) -> pl.Series:
    """The one place that calls Polars' line reader, which is marked unstable."""
    if data[:1] in _LIKE_AN_ARCHIVE:  # it would be unpacked: text may well begin with "x^"
        return pl.read_lines(b"\n" + data, name="line")["line"].slice(1)
    return pl.read_lines(data, name="line")["line"]


def _mend(data: bytes) -> tuple[bytes, int]:
    """``data`` with U+FFFD for each malformed sequence, and how many there were."""
    pieces: list[bytes] = []
    count = start = 0
    while start < len(data):
        # a newline is never part of a character, so pieces cut there can be looked at alone
        end = data.find(b"\n", start + _MEND_BYTES) + 1 or len(data)
        piece = data[start:end]
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError:
            mended = piece.decode("utf-8", "replace").encode("utf-8")
            count += mended.count(_REPLACEMENT) - piece.count(_REPLACEMENT)
            piece = mended
        pieces.append(piece)
        start = end
    return b"".join(pieces), count


def _split_dense(whole: bytes) -> Iterator[bytes]:
    """``whole`` in pieces of at most about MAX_CHUNK_LINES lines; nearly always one."""
    if len(whole) <= MAX_CHUNK_LINES or _estimated_lines(whole) <= MAX_CHUNK_LINES:
        yield whole
        return
    start = 0
    while start < len(whole):
        end = whole.find(b"\n", min(start + MAX_CHUNK_LINES, len(whole)) - 1) + 1
        yield whole[start : end or len(whole)]
        start = end or len(whole)


def _estimated_lines(whole: bytes) -> int:
    window, windows = 4096, 16
    step = len(whole) // windows
    seen = sum(whole.count(b"\n", at, at + window) for at in range(0, step * windows, step))
    return seen * len(whole) // (window * windows)


def read_chunks(
    source: Source,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    max_bytes: int | None = None,
    spool: bool = True,
    progress: Callable[[int], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Iterator[Chunk]:
    """All of a source, chunk by chunk; ``source.facts`` is complete when the iterator is through.

    ``spool`` keeps a copy of what can't be read twice (a pipe), for LineStore. ``progress`` is
    called with the raw bytes taken so far. When ``stopped`` says so, it ends with what was read, also
    while a pipe gives nothing. A source that is binary is given up after one chunk.

    Raises InputError if it can't be read or holds more than ``max_bytes``.
    """
    feeder = Feeder(source, max_bytes=max_bytes)
    with open_raw(source) as raw:
        # buffered, because a pipe gives 64 KiB at a time
        file: BinaryIO = io.BufferedReader(raw, buffer_size=1 << 20)
        if spool and source.spool is None and not _can_seek(raw):
            source.spool = SpooledTemporaryFile(max_size=SPOOL_MEMORY)  # noqa: SIM115 - lives as long as the source
        # a blocking read of a pipe can't be interrupted: Polars' handler of SIGINT makes it go on
        waits = not _can_seek(raw) and os.name != "nt"
        while data := (
            _read_waiting(raw, source, chunk_bytes, stopped) if waits else _read(file, source, chunk_bytes)
        ):
            if source.spool is not None:
                source.spool.write(data)
            yield from feeder.stream(data)
            if progress is not None:
                progress(source.facts.raw_bytes)
            if source.facts.binary or (stopped is not None and stopped()):
                break
    yield from feeder.finish()


def _can_seek(file: io.RawIOBase) -> bool:
    try:
        return file.seekable()
    except (OSError, ValueError):
        return False


def _read(file: BinaryIO | io.FileIO, source: Source, size: int) -> bytes:
    try:
        return file.read(size) or b""
    except OSError as error:
        raise InputError(f"can't read {source.name}: {(error.strerror or str(error)).lower()}") from None


def _read_waiting(raw: io.FileIO, source: Source, size: int, stopped: Callable[[], bool] | None) -> bytes:
    """As ``_read`` for a pipe that may give nothing for long, and be stopped or interrupted then."""
    pieces: list[bytes] = []
    while size > 0 and not (stopped is not None and stopped()):
        if select.select([raw], [], [], _LOOK_SECONDS)[0]:
            data = _read(raw, source, size)
            if not data:
                break
            pieces.append(data)
            size -= len(data)
    return b"".join(pieces)
