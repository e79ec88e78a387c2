"""The line of a key in a TOML text.

``tomllib`` keeps no positions. This finds the line by the headers and keys as people write them; where
it can't (an inline table, a dotted key) it gives the nearest header or nothing, never a wrong key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Step = str | int

_HEADER = re.compile(r"^\s*(\[\[|\[)\s*([^\]#]+?)\s*\]")
_KEY = re.compile(r"""^\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_-]+))\s*=""")


def line_of(text: str, path: Sequence[Step]) -> int | None:
    """The 1-based line of the key at ``path`` (names and indices of arrays of tables), or of its table."""
    seen: dict[tuple[Step, ...], int] = {}
    table: tuple[Step, ...] = ()
    found: tuple[int, int] | None = None  # how much of the path matches, and the line
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            name: tuple[Step, ...] = tuple(part.strip().strip("\"'") for part in header[2].split("."))
            if header[1] == "[[":
                seen[name] = seen.get(name, -1) + 1
                name = (*name, seen[name])
            table = name
            found = _better(found, path, table, number)
            continue
        key = _KEY.match(line)
        if key:
            found = _better(found, path, (*table, key[1] or key[2] or key[3]), number)
    return found[1] if found else None


def _better(
    found: tuple[int, int] | None, path: Sequence[Step], here: tuple[Step, ...], line: int
) -> tuple[int, int] | None:
    if tuple(path[: len(here)]) == here and (found is None or len(here) > found[0]):
        return len(here), line
    return found


def spelled(path: Sequence[Step]) -> str:
    """``gate.check[1].expr``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def steps(spelling: str) -> list[Step]:
    """The path in a msgspec message: ``$.gate.check[1].expr``; its leading ``$`` is dropped."""
    return [
        int(index) if index else name
        for name, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", spelling.removeprefix("$"))
    ]
