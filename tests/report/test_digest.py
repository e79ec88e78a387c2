"""What a report comes to: groups, their order, their cost."""

from __future__ import annotations

from ckptlog.records import Fix, TurnRecord
from ckptlog.report.digest import digest
from ckptlog.report.loss import loss

from .build import (
    a_limit_stop,
    a_rejection,
    a_report,
    a_run,
    a_shift,
    a_turn,
    an_evicted_turn,
    everything,
    evicted,
    healthy,
)


def test_turns_alike_are_one_finding() -> None:
    found = digest(evicted()).findings
    assert [[item.number for item in finding.turns] for finding in found] == [[40, 47, 52]]
    assert found[0].name == "checkpoint-evicted"
    assert found[0].n_lost == 3 * 8623


def test_another_cause_or_fix_is_another_finding() -> None:
    turns = [
        an_evicted_turn(1, 100),
        an_evicted_turn(2, 200, cause="slot-taken"),
        an_evicted_turn(3, 300, fixes=[Fix("keep-session", "keep it open")]),
        an_evicted_turn(4, 400),
    ]
    numbers = sorted([item.number for item in finding.turns] for finding in digest(a_report(turns)).findings)
    assert numbers == [[1, 4], [2], [3]]


def test_what_harms_an_answer_comes_before_what_costs_time() -> None:
    turns = [an_evicted_turn(1, 100), a_limit_stop(), a_shift(), a_turn(outcome="error"), a_rejection()]
    order = [finding.outcome for finding in digest(a_report(turns)).findings]
    assert order == ["arrival-rejection", "context-shift", "limit-stop", "checkpoint-reprefill", "error"]


def test_within_an_outcome_the_dearest_comes_first() -> None:
    cheap = [an_evicted_turn(n, 100 * n, cause="cache-off", lost_ms=10.0, n_lost=200) for n in range(1, 9)]
    dear = an_evicted_turn(9, 900, lost_ms=5000.0)
    assert [finding.name for finding in digest(a_report([*cheap, dear])).findings] == [
        "checkpoint-evicted",
        "cache-off",
    ]


def test_a_finding_is_told_of_its_dearest_turn() -> None:
    turns = [
        an_evicted_turn(1, 100, lost_ms=10.0),
        an_evicted_turn(2, 200, lost_ms=90.0),
        an_evicted_turn(3, 300, lost_ms=90.0),
    ]
    assert digest(a_report(turns)).findings[0].worst.number == 2


def test_the_fix_serves_every_turn_of_the_finding() -> None:
    def needs(count: str) -> list[Fix]:
        return [Fix("more-checkpoints", f"keeps {count}", ["--ctx-checkpoints", count])]

    turns = [
        an_evicted_turn(1, 100, lost_ms=99.0, fixes=needs("4")),
        an_evicted_turn(2, 200, lost_ms=1.0, fixes=needs("12")),
    ]
    assert digest(a_report(turns)).findings[0].fixes == needs("12")


def test_servers_that_need_other_flags_are_told_apart() -> None:
    def stopped(line: int, run: int, context: str) -> TurnRecord:
        return a_turn(
            line,
            outcome="limit-stop",
            failed=True,
            run=run,
            fixes=[Fix("larger-context", context, ["-c", context])],
        )

    turns = [stopped(1, 0, "2048"), stopped(2, 1, "6144"), stopped(3, 2, "2048"), stopped(4, 1, "5120")]
    runs = [a_run(n) for n in range(3)]
    found = digest(a_report(turns, runs)).findings
    assert [[item.number for item in finding.turns] for finding in found] == [[1, 3], [2, 4]]
    assert [finding.fixes[0].flags[1] for finding in found] == ["2048", "6144"]


def test_a_smaller_step_is_not_taken_for_a_larger_one() -> None:
    def needs(step: str) -> list[Fix]:
        return [Fix("closer", f"every {step}", ["--checkpoint-min-step", step])]

    turns = [
        an_evicted_turn(1, 100, lost_ms=99.0, fixes=needs("256")),
        an_evicted_turn(2, 200, lost_ms=1.0, fixes=needs("512")),
    ]
    assert digest(a_report(turns)).findings[0].fixes == needs("256")


def test_a_taken_slot_costs_what_the_server_held_elsewhere() -> None:
    turn = a_turn(
        n_prompt=9000,
        n_cached=0,
        outcome="checkpoint-reprefill",
        severity="costly",
        cause="slot-taken",
        n_common=12,
        n_lost=12,
        n_known=8000,
        lost_ms=12.0,
        prompt_ms=9000.0,
    )
    finding = digest(a_report([turn])).findings[0]
    assert (finding.n_lost, finding.lost_ms) == (8000, 8000.0)


def test_an_unknown_loss_is_not_called_nothing() -> None:
    known = an_evicted_turn(1, 100)
    unknown = an_evicted_turn(2, 200, n_lost=None, lost_ms=None)
    assert digest(a_report([unknown])).findings[0].cost() == "loss not in the log"
    assert digest(a_report([known, unknown])).findings[0].cost().startswith("at least 8,623 tokens")


def test_a_loss_between_two_bounds_is_told_as_the_least_it_can_be() -> None:
    turn = an_evicted_turn(
        1,
        100,
        n_prompt=2000,
        n_lost=None,
        lost_ms=None,
        n_common=None,
        n_common_range=(1500, 1600),
        prompt_ms=4000.0,
    )
    finding = digest(a_report([turn])).findings[0]
    assert finding.cost() == "at least 1,500 tokens again, 3.0 s"


def test_a_rewritten_head_is_told_although_little_is_lost() -> None:
    def harmless(line: int, n_prompt: int, trigger: str) -> TurnRecord:
        return an_evicted_turn(
            1,
            line,
            n_prompt,
            severity="harmless",
            n_common=15,
            n_lost=15,
            cause="before-first-boundary",
            trigger=trigger,
        )

    turns = [
        harmless(100, 3000, "prefix-rewritten"),
        harmless(200, 3000, "other-conversation"),
        harmless(300, 200, "prefix-rewritten"),
        harmless(400, 9000, "prefix-rewritten"),
    ]
    what = digest(a_report(turns))
    assert what.findings == []
    assert [[item.number for item in finding.turns] for finding in what.rewritten] == [[1, 4]]


def test_fine_failed_and_the_rest_add_up() -> None:
    what = digest(everything())
    assert (what.fine, what.failed, what.counts) == (2, 4, {"cancelled": 1, "unknown": 1, "error": 1})
    assert what.fine + what.failed + sum(what.counts.values()) == len(what.turns)


def test_a_harmless_reprefill_is_no_finding() -> None:
    what = digest(healthy())
    assert what.findings == []
    assert [item.number for item in what.harmless] == [13]
    assert what.fine == 13


def test_low_reuse_without_a_failure_is_told_of() -> None:
    def other(line: int) -> TurnRecord:
        return a_turn(line, 3000, 0, outcome="cold", n_common=0)

    assert [item.number for item in digest(a_report([other(1), other(2), other(3)])).unshared] == [2, 3]
    assert digest(a_report([other(1)])).unshared == []
    appended = [a_turn(100 * n, 9000, 8900) for n in range(1, 9)]
    assert digest(a_report([other(1), other(2), *appended])).unshared == []
    assert digest(a_report([other(1), other(2), an_evicted_turn(3, 300)])).unshared == []


def test_a_refused_request_loses_nothing() -> None:
    """What it shared with the slot is still there for the next one."""
    refused = a_rejection(n_common_range=(19_502, 19_600), n_lost=None)
    assert loss(refused) is None
    assert digest(a_report([refused])).lost.tokens == 0
