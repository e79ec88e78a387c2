"""Encodings a llama-server log is met in: UTF-8, with a BOM or broken; UTF-16 from PowerShell."""

from __future__ import annotations

import codecs

from ckptlog.intake.sources import SourceFacts

#: bytes looked at to tell the encoding, if no newline ends the look-out before
SNIFF_BYTES = 4096
#: a newline ends the look-out only after this many bytes: fewer do not show UTF-16 without a BOM
SNIFF_LEAST = 64
#: bytes looked at to tell a log from a binary file
BINARY_WINDOW = 64 << 10
#: the share of control characters and malformed sequences above which a file is no text
BINARY_SHARE = 0.1

# tab, newline, CR and escape are what logs hold; NUL and others come with token text, sparsely
_CONTROL = bytes(set(range(32)) - {0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B}) + b"\x7f"


def enough_to_sniff(head: bytes) -> bool:
    """True when more bytes would not change what ``encoding_of`` says: it looks no further."""
    return len(head) >= SNIFF_BYTES or head.find(b"\n", SNIFF_LEAST, len(head) - 1) >= 0


def encoding_of(head: bytes) -> str:
    """``utf-8``, ``utf-8-sig``, ``utf-16-le`` or ``utf-16-be``, by BOM or by where the NULs stand."""
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    end = head.find(b"\n", SNIFF_LEAST, len(head) - 1)
    # the byte after a newline belongs to it in UTF-16 LE
    sample = head[: min(end + 2 if end >= 0 else len(head), SNIFF_BYTES)]
    pairs = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    # a log is mostly ASCII: every second byte is NUL, the others are not
    if pairs and odd >= 0.6 * pairs and even <= 0.1 * pairs:
        return "utf-16-le"
    if pairs and even >= 0.6 * pairs and odd <= 0.1 * pairs:
        return "utf-16-be"
    return "utf-8"


class Recoder:
    """Bytes of the file in, UTF-8 out; for UTF-8 the bytes as they are, broken ones included."""

    def __init__(self, encoding: str, facts: SourceFacts) -> None:
        self._facts = facts
        self._bom: bytes = codecs.BOM_UTF8 if encoding == "utf-8-sig" else b""
        self._first = True
        facts.encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        self._decoder = (
            codecs.getincrementaldecoder(encoding)("replace") if encoding.startswith("utf-16") else None
        )

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        if self._decoder is None:
            if self._first and data:
                self._first = False
                return data.removeprefix(self._bom) if self._bom else data
            return data
        text = self._decoder.decode(data, final)
        if self._first and text:
            self._first = False
            text = text.removeprefix("\ufeff")
        self._facts.broken += text.count("\ufffd")
        return text.encode("utf-8")


class BinaryCheck:
    """Looks at the first BINARY_WINDOW bytes of text and sets ``facts.binary``."""

    def __init__(self, facts: SourceFacts) -> None:
        self._facts = facts
        self._head = bytearray()
        self._done = False

    def feed(self, data: bytes) -> None:
        if self._done:
            return
        self._head += data[: BINARY_WINDOW - len(self._head)]
        if len(self._head) >= BINARY_WINDOW:
            self.finish()

    def finish(self) -> None:
        if self._done:
            return
        self._done = True
        head = bytes(self._head)
        self._head.clear()
        if head:
            control = len(head) - len(head.translate(None, _CONTROL))
            broken = head.decode("utf-8", "replace").count("\ufffd")
            self._facts.binary = control + broken > BINARY_SHARE * len(head)
