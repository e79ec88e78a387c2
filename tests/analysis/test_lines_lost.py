"""Lines that are missing from a log's middle, or that only warnings are left of it, make a verdict unknown, never another."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.records import TurnRecord

#: builds, memories, and what a lost line would turn into something else: evictions, slot files, limit stops, errors,
#: refusals, cancels, children, the RAM cache, a rewritten head
MATERIAL = [
    "b8672/hybrid/reject",
    "b8672/swa/every_nt_64",
    "b8672/swa/head_timestamp",
    "b10068/hybrid/fifo",
    "b10068/hybrid/pcache_tiny",
    "b10068/plain/limit_stop",
    "b10068/swa/newconv_ck2",
    "b11549/hybrid/disconnect",
    "b11549/hybrid/lv3",
    "b11549/hybrid/pcache_on",
    "b11549/hybrid/raw_vs_chat",
    "b11549/hybrid/think_strip",
    "b11549/plain/kv_full",
    "b11549/plain/shift_keep_32",
    "b11549/swa/embed",
    "b11549/swa/ncmpl_shift",
    "b11549/swa/same_twice",
]
#: damaged copies of each log
COPIES = 10

SURE = ("observed", "derived")
#: outcomes whose cause is told; "unknown" says that it is not known
OPEN = (None, "unknown")


def another(whole: TurnRecord, cut: TurnRecord) -> list[str]:
    """What the damaged log says, and claims to know, otherwise than the whole one."""
    told = []
    if cut.confidence in SURE:
        if cut.outcome not in ("unknown", whole.outcome):
            told.append(f"{whole.outcome} -> {cut.outcome}")
        if cut.trigger not in (None, whole.trigger):
            told.append(f"{whole.trigger} -> {cut.trigger}")
    if cut.cause not in (*OPEN, whole.cause):
        told.append(f"{whole.cause} -> {cut.cause}")
    return told


def turns(analysis: Any) -> dict[tuple[int | None, int | None], TurnRecord]:
    return {(turn.task, turn.slot): turn for turn in analysis.report.turns}


def of_server(line: str) -> bool:
    return re.search(r"(^| )(slot|srv) |eval time", line) is not None


@pytest.mark.parametrize("name", MATERIAL)
def test_a_few_lines_lost(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str) -> None:
    log = recorded(name)
    whole = turns(log.analysis)
    places = [i for i, line in enumerate(log.lines) if of_server(line)]
    random_ = random.Random(name)
    for first in random_.sample(places, COPIES):
        n = random_.choice([1, 1, 2])
        for key, turn in turns(analyse(log.lines[:first] + log.lines[first + n :])).items():
            if key in whole:
                assert another(whole[key], turn) == [], f"task {turn.task} without lines {first + 1} to {first + n}"


#: recording, the text of the line that is left out (its first occurrence is), the turn, and what is said of it then
LOST = [
    # without the release before it, what the slot held is known from prompt and answer; no slot file is suspected
    ("b10068/hybrid/fifo", "task 23 | stop processing", 163, "checkpoint-reprefill", "checkpoint-evicted"),
    ("b11549/hybrid/raw_vs_chat", "task 110 | stop processing", 136, "checkpoint-reprefill", "no-user-boundary"),
    # the release tells a full context from an answer that ended by itself
    ("b10068/swa/limit_stop", "task 605 | stop processing", 605, "unknown", None),
    # behind an error the server cancels its own task: the client had not left
    ("b10068/swa/reject", "send_error: task id = 46", 46, "unknown", None),
    ("b11549/plain/kv_full", "send_error: task id = 37", 37, "unknown", None),
]


@pytest.mark.parametrize(("name", "line", "task", "outcome", "cause"), LOST)
def test_a_line_lost(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, line: str, task: int, outcome: str, cause: str | None
) -> None:
    lines = list(recorded(name).lines)
    lines.remove(next(text for text in lines if line in text))
    (turn,) = (turn for turn in analyse(lines).report.turns if turn.task == task and turn.child_of is None)
    assert (turn.outcome, turn.cause) == (outcome, cause)


@pytest.mark.parametrize("kind", ["hybrid", "swa"])
def test_a_refusal_whose_error_line_is_lost(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], kind: str
) -> None:
    """It left the slot as it was: what comes next is no beginning of what the refused one would have been."""
    log = recorded(f"b11549/{kind}/reject")
    whole = turns(log.analysis)
    kept = [line for line in log.lines if "send_error" not in line and "request (" not in line]
    assert len(kept) < len(log.lines)
    told = {turn.trigger for turn in whole.values()}
    assert "repeated" in told
    for key, turn in turns(analyse(kept)).items():
        assert turn.trigger in (None, whole[key].trigger), f"task {turn.task}"
