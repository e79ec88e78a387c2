"""What other programs write into a log, or around its lines, makes no server, no crash, and no fault of ckptlog's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

SYSTEMD = "Dec 03 10:00:00 box systemd[1]: {}.service: Main process exited, code=exited, status=1/FAILURE"


def cut_off(recorded: Callable[[str], Any]) -> list[str]:
    """A log that ends in mid-turn."""
    lines = list(recorded("b10068/hybrid/append").lines)
    last = max(i for i, line in enumerate(lines) if "processing task" in line)
    return lines[: last + 3]


@pytest.mark.parametrize(("unit", "crashed"), [("nginx", False), ("llama", True)])
def test_another_unit_that_fails(recorded: Callable[[str], Any], analyse: Callable[..., Any], unit: str, crashed: bool) -> None:
    journal = [f"Dec 03 10:00:00 box llama-server[77]: {line}" for line in cut_off(recorded)]
    turn = analyse([*journal, SYSTEMD.format(unit)]).report.turns[-1]
    assert (turn.outcome == "error") is crashed


@pytest.mark.parametrize(("name", "crashed"), [("postgres-1", False), ("llama-1", True)])
def test_another_container_that_exits(recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, crashed: bool) -> None:
    compose = [f"llama-1  | {line}" for line in cut_off(recorded)]
    turn = analyse([*compose, f"{name} exited with code 139"]).report.turns[-1]
    assert (turn.outcome == "error") is crashed


@pytest.mark.parametrize("form", ["2026-08-14 20:47:11,996 {} llama: {}", "llama[{}]: {}"])
def test_a_level_is_no_name(recorded: Callable[[str], Any], analyse: Callable[..., Any], form: str) -> None:
    lines = recorded("b10068/hybrid/append").lines
    report = analyse([form.format("WARNING" if n % 9 == 8 else "INFO", line) for n, line in enumerate(lines)]).report
    assert [run.server for run in report.runs] == [None]


def test_prefixes_that_no_form_is_made_of(recorded: Callable[[str], Any], analyse: Callable[..., Any]) -> None:
    lines = list(recorded("b10068/hybrid/append").lines)
    long = "1 " * 1500 + "slot launch_slot_: id  0 | task 1 | processing task"
    assert len(analyse([lines[0], long, *lines]).report.turns) >= 6
    escaped = [json.dumps({"data": f"{line} \U0001f600"}) for line in lines]
    assert analyse(escaped).report.sources[0].drifted_lines > 0  # read, and not understood


def test_forms_that_could_be_cut_in_many_ways(analyse: Callable[..., Any]) -> None:
    head = "slot launch_slot_: id  0 | task 1 | processing task"
    numbers = [f"x {' '.join(map(str, range(14)))} > {head}"] * 4
    assert len(analyse([*numbers, f"x {' '.join('1' * 60)} {head}"]).report.turns) == 1
    spaces = [f"x\t1 > {head}"] * 4
    assert len(analyse([*spaces, f"x{' ' * 60_000}{head}"]).report.turns) == 1
    assert analyse([*spaces, "(" * 60_000 + " ggml_abort_"]).report.turns
