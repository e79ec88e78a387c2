"""What is said where no cause is proved: nothing that the log itself refutes, and no advice that can't help there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .lines import Log

Analyse = Callable[..., Any]

FORCED = f"slot update_slots: id  0 | task {{}} | {Log.FORCED}"


def old_turn(task: int, n_prompt: int, common: int, held: int, *, pos_min: int, n_swa: int) -> list[str]:
    """A prompt of which nothing was reused, as builds of early 2026 print it at the default level."""
    head = f"slot update_slots: id  0 | task {task} |"
    search = [
        f"{head} n_past = {common}, slot.prompt.tokens.size() = {held}, seq_id = 0, pos_min = {pos_min}, n_swa = {n_swa}",
        FORCED.format(task),
    ]
    return [
        f"slot launch_slot_: id  0 | task {task} | processing task, is_child = 0",
        f"{head} new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = {n_prompt}",
        *(search if common else []),
        f"{head} n_tokens = 0, memory_seq_rm [0, end)",
        f"{head} prompt done, n_tokens = {n_prompt}, batch.n_tokens = {n_prompt}",
        f"slot init_sampler: id  0 | task {task} | init sampler, took 0.32 ms, tokens: text = {n_prompt}, total = {n_prompt}",
        f"prompt eval time =    5000.00 ms /  {n_prompt} tokens (    3.75 ms per token,   267.01 tokens per second)",
        "       eval time =     320.00 ms /    10 tokens (   32.00 ms per token,    31.25 tokens per second)",
        f"      total time =    5320.00 ms /  {n_prompt + 10} tokens",
        f"slot      release: id  0 | task {task} | stop processing: n_tokens = {n_prompt + 9}, truncated = 0",
        "srv  update_slots: all slots are idle",
    ]


def test_an_empty_list_is_no_list_that_the_log_does_not_show(analyse: Analyse) -> None:
    """The log begins in mid-run, but what does not fit is swept with a line each, and there is none."""
    lines = old_turn(124, 1360, 845, 1362, pos_min=1361, n_swa=1) + old_turn(135, 1371, 848, 1369, pos_min=1368, n_swa=1)
    first, second = analyse(lines).report.turns
    assert (first.cause, second.cause) == ("unknown", "unknown")
    for turn in (first, second):
        assert "list of checkpoints was empty" in turn.explanation
        assert "log begins" not in turn.explanation
        assert turn.fixes == []  # no build makes any for such a request
    assert "made none, as with /infill requests" in second.explanation


def test_a_prompt_too_short_for_a_checkpoint_is_no_sign_that_none_are_made(analyse: Analyse) -> None:
    lines = old_turn(124, 136, 100, 1362, pos_min=1361, n_swa=1) + old_turn(135, 1371, 140, 145, pos_min=144, n_swa=1)
    turn = analyse(lines).report.turns[-1]
    assert turn.explanation == "The slot's list of checkpoints was empty when the server looked for one."


def test_a_list_that_was_swept_is_known_afterwards(analyse: Analyse) -> None:
    log = Log()
    del log.lines[:]  # the log begins in mid-run
    log.task, log.held = 7, 20_000
    swept = "erased invalidated context checkpoint (pos_min = {0}, pos_max = {0}, n_tokens = 15000, n_swa = 0, pos_next = 0, size = 10.000 MiB)"
    log.turn(10_100, 5000, cached=0, between=[log.check(15_000, 5000), Log.FORCED, swept.format(14_999)])
    log.turn(10_200, 6000, cached=0, between=[Log.FORCED])
    first, second = analyse(log.lines).report.turns
    assert "log begins after" in first.explanation
    assert "list of checkpoints was empty" in second.explanation


def test_missing_sizes_are_named_where_they_are_what_is_missing(analyse: Analyse) -> None:
    """A cut 512 before the end may be a full batch's, or a user message's."""
    log = Log(checkpoints=(32, 8192))
    kept = "cached n_tokens = {0}, memory_seq_rm [{0}, end)"
    log.turn(1902, 0, after=[kept.format(1390), log.create(1390, 1), kept.format(1898), log.create(1898, 2)])
    log.turn(1911, 1200, cached=0, between=[log.check(1898, 1200), log.check(1390, 1200), Log.FORCED])
    turn = analyse(log.lines).report.turns[-1]
    assert turn.cause == "unknown"
    assert "n_batch and n_ubatch" in turn.explanation
    assert turn.missing == ["n_batch and n_ubatch (capture it from the server's start, with -lv 4)"]
