"""One build's rules for context checkpoints, as named choices (the meanings stand in builds.toml)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Literal

from ckptlog.server.builds import bracket, table


@dataclass(frozen=True, slots=True)
class Rules:
    """What a build does with checkpoints. ``first`` is the first build known to do all of it so."""

    first: int
    memories: Literal["swa", "swa-recurrent"]
    swa_full_drops_window: bool
    threshold: Literal[
        "tokens", "tokens-window-at-least-1", "position", "position-less-1", "position-less-1-if-whole"
    ]
    checks_whole_slot: bool
    search_at_threshold: bool
    match: Literal["at-most", "below", "below-or-start"]
    match_within_prefix: bool
    resume: Literal["pos-max", "pos-max-or-next", "past-pos-max", "n-tokens"]
    invalidate: Literal["window", "threshold", "beyond"]
    tail_cuts: Literal["none", "64", "512", "ubatch-and-4"]
    user_cuts: Literal["none", "last", "every", "useful"]
    create: Literal["prompt-done", "final-batch", "near-end", "near-end-n0", "last-user", "user-start"]
    near_end_ignores_step: bool
    thin: Literal["never", "always", "nearly-full"]
    supersede: bool
    clear_drops_list: bool
    slot_file: Literal["keep", "clear", "carry"]
    stores_window_only: bool
    embedding_ignores_cache: bool
    prints_checks: bool
    default_max: int
    default_every_nt: int
    default_min_step: int


@cache
def eras() -> tuple[Rules, ...]:
    """All sets of rules there have been, oldest first: one for every build at which a choice changed."""
    choices = table()["choice"]
    firsts = sorted({row["first"] for rows in choices.values() for row in rows})
    names = [field.name for field in fields(Rules) if field.name != "first"]
    return tuple(
        Rules(
            first=first,
            **{name: [row["is"] for row in choices[name] if row["first"] <= first][-1] for name in names},
        )
        for first in firsts
    )


@cache
def edges() -> dict[int, int]:
    """For each era's first build, the last build known to be still of the era before."""
    found: dict[int, int] = {}
    for rows in table()["choice"].values():
        for row in rows:
            after = row.get("after", 0)
            found[row["first"]] = max(found.get(row["first"], 0), after)
    return found


@cache
def rules_for(build_min: int | None, build_max: int | None) -> tuple[Rules, ...]:
    """The sets of rules that may hold for some build of the bracket, oldest first; never empty."""
    low, high = bracket(build_min, build_max)
    every = eras()
    found = []
    for rules, later in zip(every, [*every[1:], None], strict=True):
        if later is not None and later.first <= low:
            continue
        if rules.first > high and edges()[rules.first] >= high:
            continue
        found.append(rules)
    return tuple(found)


def rules_at(build: int) -> Rules:
    """The rules of one build; in the gap between two builds that were read, those of the older one."""
    return [rules for rules in eras() if rules.first <= build][-1]
