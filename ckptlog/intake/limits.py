"""Sizes that bound what a hostile log can cost."""

from __future__ import annotations

#: bytes of a line that are kept; what is longer is no line of a llama-server worth more
MAX_LINE_BYTES = 1 << 20
#: what a compressed source may unpack to if no limit is given
MAX_UNPACKED = 64 << 30
#: lines of one chunk, three times what a log's have: a string view is 16 bytes, so a chunk of newlines only
#: would need 16x its size
MAX_CHUNK_LINES = 1_000_000


def cut_text(line: str, limit: int) -> str:
    """``line`` cut to ``limit`` bytes of UTF-8, on a character."""
    if len(line) * 4 <= limit:
        return line
    data = line.encode("utf-8")
    return line if len(data) <= limit else data[:limit].decode("utf-8", "ignore")
