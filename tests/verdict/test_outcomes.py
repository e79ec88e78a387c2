"""Outcomes, severity, precedence and triggers, at the edges that CONTRACT draws, on small logs made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.records import TurnRecord
from ckptlog.replay.loss import is_costly_loss as costly

from .lines import Log
from .logs import report

Analyse = Callable[..., Any]


def last(analyse: Analyse, log: Log) -> TurnRecord:
    report = analyse(log.lines).report
    (source,) = report.sources
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)
    turn: TurnRecord = report.turns[-1]
    return turn


def reprefill(analyse: Analyse, *, n_prompt: int, common: int, cached: int = 0) -> TurnRecord:
    """A second turn that shares ``common`` tokens with 20,000 held ones and resumes at ``cached``."""
    log = Log()
    log.turn(20_000, 0, after=[log.create(cached, 1)] if cached else [])
    search = [log.check(cached, common), log.restore(cached)] if cached else [Log.FORCED]
    log.turn(n_prompt, common, cached=cached, between=search)
    return last(analyse, log)


@pytest.mark.parametrize(
    ("lost", "n_prompt", "is_costly"),
    [
        (127, 128, False),
        (128, 2_000, True),
        (128, 2_560, True),  # exactly 5 %
        (128, 2_561, False),
        (511, 10_221, False),
        (511, 10_220, True),
        (512, 100_000, True),
        (511, 100_000, False),
        (127, None, False),
        (128, None, True),
    ],
)
def test_severity_at_its_edges(lost: int, n_prompt: int | None, is_costly: bool) -> None:
    assert costly(lost, n_prompt) is is_costly


@pytest.mark.parametrize(
    ("n_prompt", "common", "severity", "failed"),
    [(1000, 127, "harmless", False), (1000, 128, "costly", True), (21_000, 511, "harmless", False), (21_000, 512, "costly", True)],
)
def test_severity_of_a_turn(analyse: Analyse, n_prompt: int, common: int, severity: str, failed: bool) -> None:
    turn = reprefill(analyse, n_prompt=n_prompt, common=common)
    assert (turn.outcome, turn.variant, turn.severity, turn.failed) == ("checkpoint-reprefill", "full", severity, failed)
    assert (turn.n_common, turn.n_cached, turn.n_lost) == (common, 0, common)
    assert turn.lost_ms == pytest.approx(common * 1000 / n_prompt, abs=0.01)


@pytest.mark.parametrize(
    ("common", "cached", "outcome", "variant"),
    [
        (10_000, 9_873, "restored", None),  # 127 lost
        (200, 73, "restored", None),  # 127 lost, more than half
        (200, 72, "checkpoint-reprefill", "partial"),  # 128 lost, more than half
        (256, 128, "restored", None),  # 128 lost, exactly half
        (10_000, 5_000, "restored", None),
        (10_000, 4_999, "checkpoint-reprefill", "partial"),
        (10_000, 9, "checkpoint-reprefill", "partial"),
        (10_000, 8, "checkpoint-reprefill", "full"),
        (10_000, 1, "checkpoint-reprefill", "full"),
    ],
)
def test_restored_or_processed_again(
    analyse: Analyse, common: int, cached: int, outcome: str, variant: str | None
) -> None:
    """Judged by what was lost, never by the verb: a restore to token 1 is a full re-prefill."""
    turn = reprefill(analyse, n_prompt=12_000, common=common, cached=cached)
    assert (turn.outcome, turn.variant, turn.n_lost) == (outcome, variant, common - cached)


def test_healthy_ends(analyse: Analyse) -> None:
    log = Log()
    log.turn(1000, 0)
    log.turn(2000, 1009)
    log.turn(2100, 4)
    log.turn(2200, 0)
    turns = analyse(log.lines).report.turns
    assert [t.outcome for t in turns] == ["cold", "reused", "reused", "cold"]
    assert [t.trigger for t in turns] == [None, "appended", "other-conversation", "other-conversation"]
    assert not any(t.failed or t.severity or t.cause for t in turns)


def test_the_forcing_line_is_no_proof_of_harm(analyse: Analyse) -> None:
    turn = reprefill(analyse, n_prompt=3000, common=4)
    assert (turn.outcome, turn.severity, turn.failed, turn.cause) == (
        "checkpoint-reprefill", "harmless", False, "other-conversation",
    )  # fmt: skip
    assert turn.fixes == []


REFUSED = "request ({n} tokens) exceeds the available context size ({limit} tokens), try increasing it"


@pytest.mark.parametrize(("n", "variant"), [(8192, "near-miss"), (9011, "near-miss"), (9012, "oversized"), (90_000, "oversized")])
def test_rejections(analyse: Analyse, n: int, variant: str) -> None:
    log = Log(n_ctx=8192)
    log.task = 7
    log.slot("get_availabl", "selected slot by LRU, t_last = -1", task=-1)
    log.slot("launch_slot_", "processing task, is_child = 0")
    log.slot("operator()", f"new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = {n}")
    log.raw("E", f"srv    send_error: task id = 7, error: {REFUSED.format(n=n, limit=8192)}")
    log.slot("release", "stop processing: n_tokens = 0, truncated = 0")
    log.raw("W", "srv          stop: cancel task, id_task = 7")
    turn = last(analyse, log)
    assert (turn.outcome, turn.variant, turn.failed, turn.also) == ("arrival-rejection", variant, True, [])
    assert (turn.n_prompt, turn.n_cached, turn.n_processed, turn.n_generated, turn.n_lost) == (n, 0, 0, 0, None)
    assert turn.trigger is None


def test_a_limit_stop_is_no_other_end(analyse: Analyse) -> None:
    log = Log(n_ctx=1000)
    log.turn(900, 0, generated=100, truncated=1)
    assert last(analyse, log).outcome == "limit-stop"
    log = Log(n_ctx=1000)
    log.turn(900, 0, generated=50)  # max_tokens
    assert last(analyse, log).outcome == "cold"
    log = Log(n_ctx=1000)
    log.turn(900, 0, generated=99)  # one short of full, and not truncated
    assert last(analyse, log).outcome == "cold"


def shift(n_keep: int, n_left: int, n_discard: int) -> str:
    return f"slot context shift, n_keep = {n_keep}, n_left = {n_left}, n_discard = {n_discard}"


@pytest.mark.parametrize(
    ("n_keep", "variant"), [(0, "head"), (1, "head"), (2, "history"), (499, "history"), (500, "generated"), (600, "generated")]
)
def test_shifts_by_where_the_hole_begins(analyse: Analyse, n_keep: int, variant: str) -> None:
    log = Log(memory="plain", n_ctx=1000)
    left = 999 - n_keep
    log.turn(500, 0, generated=600, after=[shift(n_keep, left, left // 2)], truncated=1)
    turn = last(analyse, log)
    assert (turn.outcome, turn.variant, turn.failed) == ("context-shift", variant, True)
    (told,) = turn.shifts
    assert (told.n_keep, told.hole) == (n_keep, (n_keep, n_keep + left // 2))


def test_precedence_and_also(analyse: Analyse) -> None:
    """A shift harms the answer more than the re-prefill before it; a costly re-prefill more than a cancel."""
    log = Log(n_ctx=30_000)
    log.turn(20_000, 0)
    log.turn(20_100, 5000, cached=0, between=[Log.FORCED], after=[shift(0, 29_999, 14_999)], generated=20_000, truncated=1)
    turn = last(analyse, log)
    assert (turn.outcome, turn.also) == ("context-shift", ["checkpoint-reprefill"])
    assert turn.cause is None
    log = Log(n_ctx=30_000)
    log.turn(20_000, 0)
    log.turn(20_100, 5000, cached=0, between=[Log.FORCED], generated=9_900, truncated=1)
    turn = last(analyse, log)
    assert (turn.outcome, turn.also) == ("limit-stop", ["checkpoint-reprefill"])


@pytest.mark.parametrize(("common", "outcome", "also"), [(5000, "checkpoint-reprefill", ["cancelled"]), (100, "cancelled", [])])
def test_cancelled_against_a_re_prefill(analyse: Analyse, common: int, outcome: str, also: list[str]) -> None:
    """Costly goes before cancelled, harmless behind it."""
    log = Log()
    log.turn(20_000, 0)
    log.turn(20_100, common, cached=0, between=[Log.FORCED])
    while "release" not in log.lines[-1]:
        log.lines.pop()
    timing = [i for i, line in enumerate(log.lines) if "print_timing" in line][-3:]
    timing.append(max(i for i, line in enumerate(log.lines) if "init sampler" in line))
    log.lines = [line for i, line in enumerate(log.lines) if i not in timing]
    log.lines[-1] = log.lines[-1].replace(f"n_tokens = {log.held}", "n_tokens = 8192")
    log.lines.insert(-1, log.lines[-1].split(" I ")[0] + f" W srv          stop: cancel task, id_task = {log.task}")
    turn = last(analyse, log)
    assert (turn.outcome, [word for word in turn.also if word == "cancelled"]) == (outcome, also)
    assert (turn.ended, turn.n_processed) == ("cancel", 8192)


def test_triggers(analyse: Analyse) -> None:
    def trigger(n_prompt: int, common: int) -> str | None:
        log = Log()
        log.turn(10_000, 0, generated=500)
        log.turn(n_prompt, common, cached=common - 1 if common == n_prompt else common)
        return last(analyse, log).trigger

    assert trigger(11_000, 10_499) == "appended"
    assert trigger(10_000, 10_000) == "repeated"
    assert trigger(6_000, 6_000) == "shrunk"
    assert trigger(11_000, 6_000) == "edited"
    assert trigger(11_000, 10_000) == "reasoning-dropped"
    assert trigger(11_000, 500) == "prefix-rewritten"
    assert trigger(11_000, 3) == "other-conversation"


def test_a_refused_request_is_not_what_left_the_slots_content(analyse: Analyse) -> None:
    """The same prompt again, with a refusal in between: repeated, though the last prompt was a longer one."""
    log = Log()
    log.turn(10_000, 0, generated=500)
    held = log.held
    log.task += 1
    log.slot("get_availabl", f"- checking sim = 0.110 ({held}/95000) > 0.100", task=-1)
    log.slot("get_availabl", "selected slot by LCP similarity, f_sim_best = 0.110 (> 0.100 thold), f_keep = 1.000", task=-1)
    log.slot("launch_slot_", "processing task, is_child = 0")
    log.slot("operator()", f"new prompt, n_ctx_slot = {log.n_ctx}, n_keep = 0, task.n_tokens = 95000")
    refusal = REFUSED.format(n=95_000, limit=log.n_ctx)
    log.line("E", f"srv    send_error: task id = {log.task}, error: {refusal}")
    log.slot("release", f"stop processing: n_tokens = {held}, truncated = 0")
    log.turn(10_000, 10_000, cached=9_999)
    turn = last(analyse, log)
    assert (turn.trigger, turn.outcome) == ("repeated", "reused")


@pytest.mark.parametrize("memory", ["plain", "hybrid", "swa"])
def test_a_saved_prompt_is_compared_with_the_turn_that_left_it(memory: str) -> None:
    """The same prompt as before another conversation took the slot: its content came back from the RAM cache."""
    turns = report(f"logs/b11549/{memory}/reject").turns
    again = turns[-1]
    assert (again.n_prompt, again.n_common, again.trigger) == (410, 410, "repeated")
    assert any(turn.n_prompt == 410 for turn in turns[:-2])
