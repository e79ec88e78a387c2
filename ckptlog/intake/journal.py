"""``journalctl -o json`` writes a message that is no plain text (colours are enough) as an array of bytes."""

from __future__ import annotations

import json
import re

import polars as pl

_BYTES = re.compile(r'"MESSAGE"\s*:\s*\[([\d,\s]*)\]')
#: what shows that a piece of text has such lines at all
MARK = re.compile(rb'"MESSAGE"\s*:\s*\[')


def with_text_messages(lines: pl.Series) -> pl.Series:
    """``lines`` with the messages given as bytes turned into JSON strings, as journald writes others."""
    found = lines.str.contains(_BYTES.pattern)
    if not found.any():
        return lines
    return pl.Series(
        lines.name,
        [
            _BYTES.sub(_text, line, count=1) if is_bytes else line
            for line, is_bytes in zip(lines.to_list(), found.to_list(), strict=True)
        ],
        dtype=pl.String,
    )


def _text(match: re.Match[str]) -> str:
    try:
        message = bytes(int(byte) for byte in match[1].split(",") if byte.strip())
    except ValueError:
        return match[0]
    return '"MESSAGE":' + json.dumps(message.decode("utf-8", "replace"), ensure_ascii=False)
