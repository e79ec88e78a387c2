"""Logs in forms that people post: what is said of a cut, of the turn behind it, and of builds before checkpoints."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ckptlog
from ckptlog.records import Report
from ckptlog.report.loss import n_deleted

POSTED = Path(__file__).parents[1] / "data" / "posted"


@cache
def report(name: str) -> Report:
    return ckptlog.analyze(POSTED / f"{name}.log").report


def test_a_few_tokens_kept_are_no_system_prompt() -> None:
    shifted, _ = report("keep-4-of-ollama").turns
    assert (shifted.outcome, shifted.variant, shifted.shifts[0].hole) == ("context-shift", "history", (4, 2049))
    assert "behind the first 4 tokens, so the system prompt went first" in shifted.explanation
    assert "fits the conversation only up to token 4" in shifted.explanation
    assert "keep-the-prompt" in {fix.name for fix in shifted.fixes}


def test_the_turn_behind_a_shift_says_why_it_found_nothing() -> None:
    _, behind = report("keep-4-of-ollama").turns
    assert (behind.outcome, behind.failed, behind.n_common, behind.n_processed) == ("reused", False, 4, 2287)
    assert behind.trigger is None  # not another conversation: the server itself cut the slot's content
    assert behind.explanation.startswith("A context shift in the turn before (line 25)")


def test_what_is_cut_out_on_arrival_begins_where_n_keep_ends() -> None:
    first, second = report("input-truncated-journald").turns
    assert (first.outcome, first.variant, n_deleted(first), n_deleted(second)) == ("context-shift", "input", 28_672, 30_719)
    assert "cut 28,672 of its 31,910 tokens out of it and went on: at the very beginning" in first.explanation
    assert "keep-the-prompt" not in {fix.name for fix in first.fixes}  # the prompt is longer than the context


def test_memory_that_was_whole_is_no_lack_of_checkpoints() -> None:
    turn = report("swa-full-forced").turns[1]
    assert (turn.outcome, turn.cause, turn.confidence) == ("checkpoint-reprefill", "server-rule", "derived")
    assert [fix.name for fix in turn.fixes] == ["upgrade-server"]


def test_a_build_before_checkpoints_has_none_to_switch_on() -> None:
    turn = report("before-checkpoints").turns[1]
    assert (turn.cause, [fix.name for fix in turn.fixes]) == ("server-rule", ["upgrade-server", "swa-full"])


def test_a_retry_that_parts_early_shows_that_what_was_done_is_lost() -> None:
    first, again = report("timed-out-twice").turns
    assert "stays in the slot" in first.explanation
    assert "this one parts from them at token 15,102" in again.explanation
    assert "stays in the slot" not in again.explanation
