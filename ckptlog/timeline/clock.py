"""A clock that falls although no server starts: what a reader is told of it."""

from __future__ import annotations


def clock_words(lines: list[int], names: list[str], source: int) -> str:
    """Where the clock falls and no server starts, as a warning."""
    of = f" of {names[source]}" if len(names) > 1 else ""
    often = f"{len(lines):,} times, first" if len(lines) > 1 else "once,"
    return (
        f"the clock falls back {often} at line {lines[0]:,}{of}, and no server starts there: pieces of several logs, or "
        "several servers that write into one file. Give each server a file of its own: what stands around such a line "
        "may be told wrongly"
    )
