"""The table of what differs by build (builds.toml): options, log levels, known faults.

A log seldom names its build, so every question takes a bracket: the lowest and the highest build
that the log's wording allows (either may be None), and the answer may be "it depends" (None).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

#: stands for "no upper limit" in brackets; build numbers have five digits
NEWEST = 10**9


@dataclass(frozen=True, slots=True)
class Option:
    """A command-line option, environment variable or request field of llama-server.

    ``first``/``after``: first build known to have it, last one known to be without;
    ``last``/``before``: last build known to have it, first one known to be without (None: still there).
    """

    name: str
    about: str
    kind: str = "option"
    aliases: tuple[str, ...] = ()
    first: int = 0
    after: int = 0
    last: int | None = None
    before: int | None = None
    least: int | None = None
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something builds ``first`` to ``last`` get wrong; ``mended`` is the first build known to be right, null where none
    is; ``issue`` and ``pull`` are llama.cpp's numbers of the report and of what would mend it."""

    name: str
    about: str
    memories: tuple[str, ...]
    first: int
    last: int
    mended: int | None = None
    after: int = 0
    issue: int | None = None
    pull: int | None = None


@cache
def table() -> dict[str, Any]:
    """builds.toml as it stands."""
    text = resources.files("ckptlog.server").joinpath("builds.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def options() -> dict[str, Option]:
    """Every option of the table by its main name."""
    rows = table()["option"]
    return {row["name"]: Option(**{**row, "aliases": tuple(row.get("aliases", ()))}) for row in rows}


@cache
def faults() -> tuple[Fault, ...]:
    """Every known fault, in the table's order."""
    return tuple(Fault(**{**row, "memories": tuple(row["memories"])}) for row in table()["fault"])


def bracket(build_min: int | None, build_max: int | None) -> tuple[int, int]:
    """The bracket with open ends closed: 0 and NEWEST."""
    low = 0 if build_min is None else build_min
    return low, NEWEST if build_max is None else max(low, build_max)


def flag_exists(name: str, build_min: int | None, build_max: int | None) -> bool | None:
    """Whether every build of the bracket knows the option: True, False, or None if some may not.

    ``name`` is an option's main name; KeyError for one the table does not hold.
    """
    option = options()[name]
    low, high = bracket(build_min, build_max)
    if high <= option.after and option.after:
        return False
    if option.before is not None and low >= option.before:
        return False
    if low >= option.first and (option.last is None or high <= option.last):
        return True
    return None


def log_level(lines: str, build_min: int | None, build_max: int | None) -> int | None:
    """The least ``-lv`` that shows these lines ("checkpoints", "prompt", "similarity") on every build
    of the bracket that prints them; None if none of them does."""
    rows = next(row["levels"] for row in table()["log_level"] if row["lines"] == lines)
    levels = [row["is"] for row in in_bracket(rows, build_min, build_max)]
    return max(levels) if levels else None


def in_bracket(
    rows: list[dict[str, Any]], build_min: int | None, build_max: int | None
) -> list[dict[str, Any]]:
    """The rows of a choice that may hold for some build of the bracket, oldest first."""
    low, high = bracket(build_min, build_max)
    found = []
    for row, later in zip(rows, [*rows[1:], None], strict=True):
        if later is not None and later["first"] <= low:
            continue
        if row["first"] > high and row.get("after", 0) >= high:
            continue
        found.append(row)
    return found


def known_faults(memory: str, build_min: int | None, build_max: int | None) -> list[tuple[Fault, bool]]:
    """The faults that may show with this memory ("unknown": any), each with True if every build of the
    bracket has it."""
    low, high = bracket(build_min, build_max)
    return [
        (fault, fault.first <= low and high <= fault.last)
        for fault in faults()
        if memory in ("unknown", *fault.memories)
        and (fault.mended is None or fault.mended > low)
        and (not fault.after or fault.after < high)
    ]
