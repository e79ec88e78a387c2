"""Greps of a log, and pieces of one: no outcome that is sure, no cause and no figure is another than the whole log's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.analysis.consistency import FIGURES
from tests.analysis.test_lines_lost import MATERIAL, SURE

Lines = Sequence[str]


def kept(pattern: str) -> Callable[[Lines], list[str]]:
    return lambda lines: [line for line in lines if re.search(pattern, line)]


def without(pattern: str) -> Callable[[Lines], list[str]]:
    return lambda lines: [line for line in lines if not re.search(pattern, line)]


def around(pattern: str, before: int, after: int) -> Callable[[Lines], list[str]]:
    def found(lines: Lines) -> list[str]:
        hits = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        places = {i for hit in hits for i in range(hit - before, hit + after + 1)}
        return [lines[i] for i in sorted(places) if 0 <= i < len(lines)]

    return found


FILTERS: dict[str, Callable[[Lines], list[str]]] = {
    "grep slot": kept("slot"),
    "grep -v checkpoint": without("checkpoint"),
    "grep -v created": without("created context"),
    "grep -v print_timing": without("print_timing"),
    "grep -v release": without("stop processing"),
    "grep -v 'new prompt'": without("new prompt"),
    "grep -v cached": without("memory_seq_rm"),
    "grep -v init": without("init"),
    "grep -i 'error|warn'": kept("(?i)error|warn"),
    "grep checkpoint": kept("(?i)checkpoint|prompt|eval"),
    "grep 'new prompt|...'": kept("new prompt|cached n_tokens|forcing|restored|prompt eval|stop processing"),
    "grep 'id  0'": kept("id  0"),
    "grep 'task 1'": kept(r"task 1\d*"),
    "grep -A3": around("forcing full", 0, 3),
    "grep -A20": around("forcing full", 0, 20),
    "grep -C5": around("forcing full", 5, 5),
    "grep -B30": around("forcing full", 30, 0),
    "head -200": lambda lines: lines[:200],
    "tail -100": lambda lines: lines[-100:],
    "middle": lambda lines: lines[len(lines) // 3 : 2 * len(lines) // 3],
}


@pytest.mark.parametrize("filter_", FILTERS)
@pytest.mark.parametrize("name", MATERIAL)
def test_a_filtered_log(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, filter_: str) -> None:
    log = recorded(name)
    whole = {(turn.task, turn.slot): turn for turn in log.analysis.report.turns}
    for turn in analyse(FILTERS[filter_](log.lines)).report.turns:
        truth = whole.get((turn.task, turn.slot))
        if truth is None:
            continue
        resumed = turn.outcome == "reused" and turn.n_cached == truth.n_cached  # (from a checkpoint? Those lines are gone)
        if turn.confidence in SURE and not resumed:
            assert turn.outcome in ("unknown", truth.outcome), f"task {turn.task}"
        assert turn.cause in (None, "unknown", truth.cause), f"task {turn.task}"
        for figure in FIGURES:
            value, right = getattr(turn, figure), getattr(truth, figure)
            assert value is None or right is None or value == right, f"task {turn.task}: {figure}"


@pytest.mark.parametrize("name", ["b8672/hybrid/pcache_tiny", "b10068/swa/deep_edit", "b11549/hybrid/minstep_64"])
def test_checkpoints_taken_out(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str) -> None:
    """Prompts that are cut where a checkpoint is made, and no line of one: the list is not empty, but unknown."""
    found = analyse(FILTERS["grep -v checkpoint"](recorded(name).lines)).report
    assert {turn.cause for turn in found.turns} <= {None, "unknown", "other-conversation"}
    assert {turn.checkpoints for turn in found.turns if turn.n_prompt is not None and turn.n_prompt > 200} == {None}
    told = [turn.explanation for turn in found.turns if turn.cause == "unknown"]
    assert all("taken out of this log" in text for text in told)


def test_a_log_that_ends_before_its_turn_does(recorded: Callable[[str], Any], analyse: Callable[..., Any]) -> None:
    """The answer may yet be cut off."""
    lines = recorded("b10068/plain/limit_stop").lines
    release = next(i for i, line in enumerate(lines) if "truncated = 1" in line)
    timing = max(i for i, line in enumerate(lines[:release]) if "prompt eval time" in line)
    turn = analyse(lines[:timing]).report.turns[-1]
    assert (turn.ended, turn.outcome, turn.confidence) == ("cut", "cold", "inferred")
