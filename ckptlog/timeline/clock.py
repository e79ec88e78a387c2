"""Signs that the lines are not one server's, one after another: what a reader is told of them."""

from __future__ import annotations


def mixed_words(falls: list[int], torn: list[int], names: list[str], source: int) -> str | None:
    """Where the clock falls and no server starts, or else where the tasks show it, as a warning."""
    lines = falls or torn
    if not lines:
        return None
    of = f" of {names[source]}" if len(names) > 1 else ""
    often = f"{len(lines):,} times, first" if len(lines) > 1 else "once,"
    sign = (
        f"the clock falls back {often} at line {lines[0]:,}{of}, and no server starts there"
        if falls
        else f"a task comes again after it was over {often} at line {lines[0]:,}{of}, which no server does"
    )
    return (
        f"{sign}: pieces of several logs, or several servers that write into one file. Give each server a file of its "
        "own: what stands around such a line may be told wrongly"
    )
