"""The old:/new: windows: which lines belong to one, what stands in front of them, where the texts are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.intake.unwrap import continuation

HEAD = "0.25.071.000 W slot   operator(): id  0 | task 7 | old: ... a | b"


@pytest.mark.parametrize(
    ("first", "line", "text"),
    [
        (HEAD, "  text ", "  text "),
        (HEAD, "llama-1  | text", "llama-1  | text"),
        (f"llama-1  | {HEAD}", "llama-1  |   text", "  text"),
        (f"llama-1  | {HEAD}", "llama-1  |", ""),
        (f"llama-1  | {HEAD}", "text", "text"),
        (f"2026-02-15T20:11:16.628562945Z {HEAD}", "2026-02-15T20:11:17.000000001Z > quoted", "> quoted"),
        (f"Dec 03 09:41:21 tuba llama-server[24102]: {HEAD}", "Dec 03 09:41:22 tuba llama-server[24102]: text", "text"),
        (f"[51877] {HEAD}", "[51877] [7] text", "[7] text"),
        (f"> {HEAD}", "> > text", "> text"),
        (f"<30>Dec  3 09:41:21 tuba llama-server[24102]: [  807] {HEAD}",
         "<30>Dec  3 09:41:21 tuba llama-server[24102]: [  807] slot x", "slot x"),
        (json.dumps({"log": HEAD + "\n"}), json.dumps({"log": ' "text"\n', "stream": "stderr"}), ' "text"'),
        (json.dumps({"MESSAGE": f"[51877] {HEAD}"}), json.dumps({"_PID": 7, "MESSAGE": "[51877] text"}), "text"),
        (json.dumps({"MESSAGE": HEAD}), "no JSON {", "no JSON {"),
    ],
)  # fmt: skip
def test_what_stands_before_a_continued_line(first: str, line: str, text: str) -> None:
    assert continuation(first)(line) == text


def windows(old: str, new: str, common: int = 200) -> list[str]:
    head = "0.25.071.000 W slot   operator(): id  0 | task 7 | "
    return [
        "0.25.070.000 I slot launch_slot_: id  0 | task 7 | processing task, is_child = 0",
        "0.25.070.500 I slot   operator(): id  0 | task 7 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 300",
        *f"{head}old: ... {old}".split("\n"),
        *f"{head}new: ... {new}".split("\n"),
        f"{head}      10      11",
        f"{head}      10      12",
        f"0.25.072.000 I slot   operator(): id  0 | task 7 | cached n_tokens = {common}, memory_seq_rm [{common}, end)",
        "0.25.073.000 I slot      release: id  0 | task 7 | stop processing: n_tokens = 310, truncated = 0",
    ]


@pytest.mark.parametrize(
    ("old", "new", "old_after", "new_after"),
    [
        ("10:1 | 0:00. You", "10:1 | 7:30. You", "0:00. You", "7:30. You"),
        (" | 17", " | 18", "17", "18"),
        ("a | b | X", "a | b | Y", "X", "Y"),  # bars of its own: the last one in common
        ("a\nb | c\nd", "a\nb | e\nf", "c\nd", "e\nf"),
        ("a | \x1b[31m[red]", "a | <b>", "\x1b[31m[red]", "<b>"),
        ("", "", None, None),
        ("abc", "xyz", None, None),
    ],
)
def test_where_the_texts_part(
    analyse: Callable[..., Any], old: str, new: str, old_after: str | None, new_after: str | None
) -> None:
    (turn,) = analyse(windows(old, new)).report.turns
    found = (None, None) if turn.mismatch is None else (turn.mismatch.old, turn.mismatch.new)
    assert found == (old_after, new_after)


def test_a_window_that_never_ends_hides_nothing(analyse: Callable[..., Any]) -> None:
    """A grep'd log: the other half never came, so what was held back counts after all."""
    lines = windows("a | b", "a | c")
    del lines[3:6]
    (turn,) = analyse(lines).report.turns
    assert (turn.n_cached, turn.ended) == (200, "release")
