"""The pictures and tables of policy.md, drawn by the model itself.

``python docs/policy_pictures.py`` writes them into policy.md; a test fails if they are not up to date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ckptlog.replay.inputs import Run, Turn
from ckptlog.replay.world import Played, World
from ckptlog.server.builds import table
from ckptlog.server.policy import Settings
from ckptlog.server.rules import rules_at

PAGE = Path(__file__).parent / "policy.md"
WIDTH = 60

HYBRID = Settings("hybrid", 32, min_step=8192, n_batch=2048, n_ubatch=512)


def draw(turns: Sequence[tuple[Turn, tuple[int, ...]]], settings: Settings, build: int = 11549) -> str:
    """One line a turn: = reused, . processed, o a checkpoint in the list when the turn ends,
    X one that was lost in this turn, | where the prompt parts from what the slot held."""
    world = World(Run(settings, (rules_at(build),)), rules_at(build), settings)
    longest = max(turn.n_prompt for turn, _ in turns)
    lines = []
    for number, (turn, starts) in enumerate(turns, 1):
        held = world.slot(0).n_tokens
        before = [c.n_tokens for c in world.slot(0).checkpoints]
        played = world.play(turn, turn.n_common or 0, starts)
        after = [c.n_tokens for c in world.slot(0).checkpoints]
        row = _row(turn, played, held, before, after, longest)
        lines.append(f"turn {number}  {turn.n_prompt:>6,}  {row}  {played.n_cached:>6,} reused")
    return "\n".join(lines)


def _row(
    turn: Turn, played: Played, held: int, before: Sequence[int], after: Sequence[int], longest: int
) -> str:
    def at(n_tokens: int) -> int:
        return min(WIDTH - 1, n_tokens * WIDTH // longest)

    cells = [" "] * WIDTH
    for x in range(at(turn.n_prompt) + 1):
        cells[x] = "=" if x < at(played.n_cached) else "."
    n_common = turn.n_common or 0
    if 0 < n_common < held and n_common < turn.n_prompt:
        cells[at(n_common)] = "|"
    made = {added.made.n_tokens for added in played.added}
    for n_tokens in {*before, *made} - set(after):
        if n_tokens <= turn.n_prompt:
            cells[at(n_tokens)] = "X"
    for n_tokens in after:
        cells[at(n_tokens)] = "o"
    return "".join(cells)


def chat(
    task: int, n_turns: int, n_system: int, n_turn: int, held: int
) -> list[tuple[Turn, tuple[int, ...]]]:
    """A new chat: it shares ``n_system`` tokens (and the header behind them) with what is there."""
    turns, starts = [], [n_system]
    for number in range(n_turns):
        n_common = held if number else min(held, n_system + 3)
        n_prompt = starts[-1] + n_turn
        turns.append((Turn(0, task + number, n_prompt, n_common, n_after=n_prompt + 150), tuple(starts)))
        held = n_prompt + 150
        starts.append(held + 2)
    return turns


def one_chat() -> str:
    """Where checkpoints are made."""
    return draw(chat(0, 4, 3000, 700, 0), HYBRID)


def edit() -> str:
    """A message in the middle is edited."""
    turns = chat(0, 4, 3000, 700, 0)
    last, starts = turns[-1]
    edited = Turn(0, 9, last.n_prompt - 300, starts[1] + 100, n_after=last.n_prompt - 150)
    return draw([*turns, (edited, starts[:2])], HYBRID)


def sessions(count: int) -> Callable[[], str]:
    """Two sessions with the same system prompt, with room for ``count`` checkpoints."""

    def scene() -> str:
        first = chat(0, 4, 3000, 700, 0)
        held = first[-1][0].n_after or 0
        return draw([*first, *chat(10, 2, 3000, 700, held)], replace(HYBRID, max_checkpoints=count))

    return scene


def spacing(step: int) -> Callable[[], str]:
    """A long first prompt of many messages, then an edit early in it."""

    def scene() -> str:
        starts = tuple(range(1000, 12000, 1000))
        first = Turn(0, 0, 12500, 0, n_after=12600)
        edited = Turn(0, 1, 12400, 6300, n_after=12500)
        return draw([(first, starts), (edited, starts)], replace(HYBRID, min_step=step))

    return scene


def near_end(build: int) -> Callable[[], str]:
    """The same short chat on a build."""

    def scene() -> str:
        settings = replace(HYBRID, max_checkpoints=rules_at(build).default_max)
        settings = replace(settings, min_step=rules_at(build).default_min_step)
        return draw(chat(0, 3, 3000, 700, 0), settings, build)

    return scene


def choices() -> str:
    """Every choice by build, from the table the model runs on."""
    lines = ["| choice | since | what |", "|---|---|---|"]
    for name, rows in table()["choice"].items():
        for row in rows:
            since = "the beginning" if not row["first"] else f"b{row['first']} (not b{row['after']})"
            value = (
                {True: "yes", False: "no"}.get(row["is"], row["is"])
                if isinstance(row["is"], bool)
                else row["is"]
            )
            lines.append(f"| {name} | {since} | {value} |")
    return "\n".join(lines)


PICTURES: dict[str, Callable[[], str]] = {
    "one chat": one_chat,
    "edit": edit,
    "two sessions, 2 checkpoints": sessions(2),
    "two sessions, 4 checkpoints": sessions(4),
    "spacing 8192": spacing(8192),
    "spacing 1024": spacing(1024),
    "b8672": near_end(8672),
    "b9873": near_end(9873),
    "b11549": near_end(11549),
}


def drawn(text: str) -> str:
    """The page with its pictures and its table drawn anew."""

    def picture(found: re.Match[str]) -> str:
        return f"{found[1]}{PICTURES[found[2]]()}\n```"

    text = re.sub(r"(<!-- picture: ([^\n]+) -->\n```\n).*?```", picture, text, flags=re.DOTALL)
    return re.sub(
        r"(<!-- table of choices -->\n).*?(\n<!-- end -->)",
        lambda found: found[1] + choices() + found[2],
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
