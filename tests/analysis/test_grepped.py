"""What somebody's grep took out of a log proves nothing: a verdict becomes unknown, never surely another."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.analysis.test_lines_lost import MATERIAL, another, turns

#: what is kept
GREPS = [
    r"launch_slot|release",
    r"prompt eval|eval time|tokens per second|slot.*released|slot.*processing",
    r"processing task|eval time|stop processing",
    r"new prompt|stop processing",
    r"selected slot|processing task|new prompt|memory_seq_rm|eval time|stop processing",
    r"prompt",
    r"task",
]


@pytest.mark.parametrize("kept", GREPS)
@pytest.mark.parametrize("name", MATERIAL)
def test_a_grepped_log(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, kept: str) -> None:
    log = recorded(name)
    whole = turns(log.analysis)
    lines = [line for line in log.lines if re.search(kept, line)]
    for key, turn in turns(analyse(lines)).items():
        if key not in whole or (turn.outcome == "reused" and turn.n_cached == whole[key].n_cached):
            continue  # (whether a checkpoint was needed for it is told by lines that are gone)
        assert another(whole[key], turn) == [], f"task {turn.task}"


def test_launches_and_releases_alone_are_no_embeddings(recorded: Callable[[str], Any], analyse: Callable[..., Any]) -> None:
    lines = [line for line in recorded("b11549/hybrid/lv3").lines if re.search(GREPS[0], line)]
    assert {turn.outcome for turn in analyse(lines).report.turns} == {"unknown"}
