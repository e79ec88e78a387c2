"""A log that begins later, or that was searched for "slot", says less of a turn, never something else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.records import TurnRecord

FIGURES = (
    "n_prompt", "n_common", "n_common_slot", "n_cached", "n_processed", "n_generated", "n_lost", "truncated",
)  # fmt: skip

#: what goes wrong where the log's head is missing is the batch's size, the list's history, the RAM cache's content,
#: shifts, errors and refusals before the first line
MATERIAL = [
    "b8672/plain/shift_restore",
    "b8672/swa/pcache_tiny",
    "b10068/hybrid/ck_off",
    "b10068/hybrid/pcache_tiny",
    "b10068/swa/fifo",
    "b10068/swa/head_timestamp",
    "b11549/hybrid/embed",
    "b11549/hybrid/kv_full",
    "b11549/hybrid/newconv_ck4_step8192",
    "b11549/hybrid/pcache_tiny",
    "b11549/plain/ncmpl_shift",
    "b11549/plain/shift_keep_32",
    "b11549/swa/lv3",
    "b11549/swa/minstep_8192",
    "b11549/swa/raw_vs_chat",
]


def otherwise(whole: TurnRecord, later: TurnRecord) -> list[str]:
    """Where the later log says something else of a turn than the whole one (not: that it does not know)."""
    told = [
        f"{name} {getattr(whole, name)} -> {getattr(later, name)}"
        for name in FIGURES
        if getattr(whole, name) is not None and getattr(later, name) not in (None, getattr(whole, name))
    ]
    if later.outcome not in ("unknown", whole.outcome):
        told.append(f"{whole.outcome} -> {later.outcome}")
    elif later.outcome == whole.outcome and later.severity not in (None, whole.severity):
        told.append(f"{whole.severity} -> {later.severity}")
    if later.cause not in (None, "unknown", whole.cause):
        told.append(f"{whole.cause} -> {later.cause}")
    if later.trigger not in (None, whole.trigger):
        told.append(f"{whole.trigger} -> {later.trigger}")
    between = later.n_common_range
    if between is not None and whole.n_common is not None and not between[0] <= whole.n_common <= between[1]:
        told.append(f"{whole.n_common} is not within {between}")
    return told


@pytest.mark.parametrize("name", MATERIAL)
def test_a_later_beginning(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str) -> None:
    log = recorded(name)
    whole = {(t.task, t.slot): t for t in analyse(log.data).report.turns}
    starts = [i for i, line in enumerate(log.lines) if "task" in line and "id " in line]
    random_ = random.Random(name)
    for first in random_.sample(starts, min(8, len(starts))):
        for turn in analyse(log.lines[first:]).report.turns:
            before = whole.get((turn.task, turn.slot))
            if before is None:
                continue  # a refusal of which only the error is left names no slot
            assert otherwise(before, turn) == [], f"task {turn.task}, from line {first + 1}"


#: whether an error or a refusal ended a turn is not to be seen where no turn shows how it ends
NO_END = {"b11549/plain/ncmpl_shift", "b11549/hybrid/embed"}


@pytest.mark.parametrize("name", sorted({*MATERIAL, "b8672/plain/reject", "b11549/hybrid/disconnect"} - NO_END))
def test_only_slot_lines(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str) -> None:
    """``grep slot``: errors, cancels and the RAM cache's messages are gone."""
    log = recorded(name)
    whole = {(t.task, t.slot): t for t in analyse(log.data).report.turns}
    for turn in analyse([line for line in log.lines if "slot" in line]).report.turns:
        told = otherwise(whole[turn.task, turn.slot], turn)
        # (a refused turn's common prefix behind a swap that is not shown)
        assert [text for text in told if turn.outcome != "unknown" or not text.startswith("n_common")] == [], turn.task
