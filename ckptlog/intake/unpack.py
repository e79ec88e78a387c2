"""Decompression as a stream: concatenated members, truncated archives, bounded memory."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from ckptlog.intake.sources import SourceFacts

#: the most that one step may unpack to: what bounds memory whatever the archive claims
STEP = 8 << 20
#: bytes given to a decompressor at once: where the archive is damaged, the output of one slice is lost
SLICE = 16 << 10
#: enough of a file's head to tell its compression
MAGIC_BYTES = 6


class _Member(Protocol):
    """One gzip member or zstd frame: the interface of bz2, lzma and compression.zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """zlib's decompressor behind that interface."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self._tail = b""

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._zlib.decompress(self._tail + data if self._tail else data, max(max_length, 0))
        # no tail does not mean that all output is out: zlib may hold more if the step was filled
        self._tail = self._zlib.unconsumed_tail
        return out


def _zstd() -> _Member:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    member: _Member = ZstdDecompressor()
    return member


def _xz() -> _Member:
    import lzma

    return lzma.LZMADecompressor()


def _bzip2() -> _Member:
    import bz2

    return bz2.BZ2Decompressor()


_FORMATS: dict[str, tuple[tuple[bytes, ...], Callable[[], _Member]]] = {
    "gzip": ((b"\x1f\x8b",), _Gzip),
    # a frame, or a skippable frame in front of one (RFC 8878, 3.1.2)
    "zstd": ((b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(0x50, 0x60))), _zstd),
    "xz": ((b"\xfd7zXZ\x00",), _xz),
    "bzip2": ((b"BZh",), _bzip2),
}


def compression_of(head: bytes) -> str | None:
    """The compression that a file's first bytes show (``head``: MAGIC_BYTES or the whole file)."""
    for name, (magics, _) in _FORMATS.items():
        if head.startswith(magics):
            return name
    return None


_DAMAGE = (zlib.error, OSError, EOFError, ValueError)
# lzma.LZMAError and compression.zstd.ZstdError share no base with those; their modules are loaded late
_DAMAGE_NAMES = ("LZMAError", "ZstdError")


class Unpacker:
    """Bytes of an archive in, bytes of its content out, in steps of at most STEP.

    A damaged or truncated archive gives what could be read; ``facts.truncated`` and a warning
    say so. Nothing is raised.
    """

    def __init__(self, compression: str, facts: SourceFacts) -> None:
        self._magics, self._new = _FORMATS[compression]
        self._compression = compression
        self._facts = facts
        self._member: _Member | None = None  # None between two members, and after the end
        self._between = b""
        self._members = 0
        self._stopped = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        ready: list[bytes] = []
        size = 0
        for start in range(0, len(data), SLICE):
            for piece in self._step(data[start : start + SLICE]):
                ready.append(piece)
                size += len(piece)
                if size >= STEP:
                    yield b"".join(ready)
                    ready, size = [], 0
        if ready:
            yield b"".join(ready)

    def _step(self, data: bytes) -> Iterator[bytes]:
        while not self._stopped:
            if self._member is None:
                data = self._next_member(data)
                if self._member is None:
                    return
            try:
                out = self._member.decompress(data, STEP)
            except Exception as error:
                if not isinstance(error, _DAMAGE) and type(error).__name__ not in _DAMAGE_NAMES:
                    raise
                self._stop(f"is damaged ({error})")
                return
            if out:
                yield out
            if self._member.eof:
                data, self._member = self._member.unused_data, None
            elif self._member.needs_input and len(out) < STEP:
                return
            else:
                data = b""

    def finish(self) -> None:
        """No more bytes: the archive is truncated if a member is still open."""
        if self._stopped:
            return
        if self._member is not None or any(
            m.startswith(self._between) for m in self._magics if self._between
        ):
            self._stop("ends in the middle (truncated)")
        elif self._between:
            self._stop_at_other_data()

    def _next_member(self, data: bytes) -> bytes:
        """Open the member that ``data`` begins with, once enough of it is there; returns its bytes."""
        data = self._between + data
        if self._members:
            data = data.lstrip(b"\x00")  # padding, as tape drives and xz leave it
        self._between = b""
        if data.startswith(self._magics):
            self._member = self._new()
            self._members += 1
            return data
        if len(data) < MAGIC_BYTES:
            self._between = data
        else:
            self._stop_at_other_data()
        return b""

    def _stop_at_other_data(self) -> None:
        self._stop("is followed by other data, which was left out", truncated=False)

    def _stop(self, what: str, *, truncated: bool = True) -> None:
        self._member = None
        self._stopped = True
        self._facts.truncated = self._facts.truncated or truncated
        self._facts.warnings.append(f"the {self._compression} archive {what}; what came before was read")
