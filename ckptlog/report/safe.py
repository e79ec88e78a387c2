"""Text from a log is hostile: what makes it harmless on a terminal, in Markdown and in JSON.

A log line holds whatever a model or a client wrote: terminal escapes, Rich or HTML markup,
text that runs right to left, megabytes without a newline. Everything that ckptlog shows of a
log, of a file name or of an error goes through :func:`safe_text` first; markup is never
interpreted because the reports are built from ``rich.text.Text``, not from markup strings.
"""

from __future__ import annotations

import re

#: characters that steer a terminal or hide text instead of showing something
_STEERING = (
    r"\x00-\x1f\x7f-\x9f"  # C0 (ESC, CR, BEL...), DEL, C1 (CSI as one character)
    r"\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    r"\u200b-\u200f"  # zero-width characters and direction marks
    r"\u2028-\u202e"  # line and paragraph separator, bidi embeddings and overrides
    r"\u2060-\u206f"  # invisible operators, bidi isolates, deprecated format characters
    r"\ufeff\ufff9-\ufffb"  # byte order mark, interlinear annotation
    r"\ud800-\udfff"  # lone surrogates: what Python makes of a file name that is not UTF-8
    r"\U000e0000-\U000e007f"  # tag characters
)
_UNSAFE = re.compile(f"[{_STEERING}]")

#: the same set as UTF-8 bytes, as far as a JSON encoder leaves it unescaped
_UNSAFE_UTF8 = re.compile(
    rb"\x7f|\xc2[\x80-\x9f\xad]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b-\x8f\xa8-\xae]"
    rb"|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81][\x80-\xbf]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\x1b": r"\e"}


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a raw byte of a file name (surrogateescape)
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe_text(text: str) -> str:
    """``text`` on one line, every control, bidi or invisible character as a visible escape.

    ESC becomes ``\\e``, a newline ``\\n``, other controls ``\\x07``, a right-to-left override
    ``\\u202e``. Wide characters and emoji stay as they are.
    """
    return _UNSAFE.sub(_escape, text)


def shorten(text: str, width: int, around: int | None = None) -> str:
    """``text`` cut to ``width`` characters, with ``...`` where something was left out.

    ``around`` is the index of the character that must stay visible (a mismatch's bar, the
    column of a drifted line); without it the head of the text stays.
    """
    if len(text) <= width:
        return text
    if width <= 3:
        return text[:width]
    if around is None or around < width - 3:
        return text[: width - 3] + "..."
    room = width - 6
    if room <= 0:
        return text[around : around + width]
    start = max(0, min(around - room // 2, len(text) - (width - 3)))
    if start + width - 3 >= len(text):
        return "..." + text[start:]
    return "..." + text[start : start + room] + "..."


def quote(text: str, width: int, around: int | None = None) -> str:
    """A quoted log line in at most ``width`` characters: made safe, then cut around what matters.

    Only the neighbourhood is looked at, since a line may be megabytes; ``around`` is an index
    into ``text`` as it is.
    """
    middle = around or 0
    start, end = max(0, middle - width), middle + width + 1
    before = safe_text(text[start:middle])
    shown = before + safe_text(text[middle:end])
    cut = shorten(shown, width, None if around is None else len(before))
    if start and not cut.startswith("..."):
        cut = "..." + cut[min(3, len(before)) :]
    if end < len(text) and not cut.endswith("..."):
        cut = cut[: max(0, width - 3)] + "..."
    return cut


def _escape_utf8(match: re.Match[bytes]) -> bytes:
    code = ord(match.group().decode())
    if code > 0xFFFF:  # JSON knows only UTF-16 units
        code -= 0x10000
        return b"\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return b"\\u%04x" % code


def safe_json(encoded: bytes) -> bytes:
    """JSON that a terminal can be shown: the same document, with C1 controls, DEL, bidi
    overrides and invisible characters as ``\\uXXXX`` (a JSON encoder escapes only C0)."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _UNSAFE_UTF8.sub(_escape_utf8, encoded)
