"""Policies applied to reports: what fails, what warns, what is said, which turns are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.gate.verdict import CheckVerdict, LogVerdict

from ..report.build import (
    a_limit_stop,
    a_rejection,
    a_report,
    a_run,
    a_shift,
    a_turn,
    an_evicted_turn,
    evicted,
)

Gated = Callable[..., LogVerdict]


def only(verdict: LogVerdict) -> CheckVerdict:
    [check] = [check for check in verdict.checks if check.kind == "check"]
    return check


def check(expr: str, **more: Any) -> str:
    lines = ["[gate]", "fail_on = []", "[[gate.check]]", f'expr = "{expr}"']
    for key, value in more.items():
        lines.append(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}")
    return "\n".join(lines)


# --- outcomes ------------------------------------------------------------------------------------------


def outcomes(verdict: LogVerdict) -> dict[str, str]:
    return {c.id.removeprefix("outcome/"): c.status for c in verdict.checks if c.status != "passed"}


DEFAULT = [
    ([a_turn()], {}),
    ([an_evicted_turn(1, 50)], {"checkpoint-reprefill": "failed"}),
    ([an_evicted_turn(1, 50, severity="harmless")], {}),
    ([a_rejection()], {"arrival-rejection": "failed"}),
    ([a_shift()], {"context-shift": "failed"}),
    ([a_limit_stop()], {"limit-stop": "failed"}),
    ([a_turn(outcome="error")], {"error": "failed"}),
    ([a_turn(outcome="unknown")], {"unknown": "failed"}),
    ([a_turn(outcome="cancelled"), a_turn(outcome="not-completion"), a_turn(outcome="cold")], {}),
    # what else happened in a turn counts as well, unless it did no harm
    ([a_shift(also=["limit-stop"])], {"context-shift": "failed", "limit-stop": "failed"}),
    (
        [a_shift(also=["checkpoint-reprefill"], severity="costly")],
        {"context-shift": "failed", "checkpoint-reprefill": "failed"},
    ),
    ([a_turn(outcome="cancelled", also=["checkpoint-reprefill"], severity="harmless")], {}),
]


@pytest.mark.parametrize(("turns", "failing"), DEFAULT)
def test_default_policy(turns: list[Any], failing: dict[str, str], gated: Gated) -> None:
    verdict = gated(a_report(turns))
    assert outcomes(verdict) == failing
    assert verdict.status == ("failed" if failing else "passed")


def test_fail_on_names_what_fails(gated: Gated) -> None:
    report = a_report([a_rejection(), a_shift(), a_turn(outcome="unknown")])
    verdict = gated(report, '[gate]\nfail_on = ["context-shift"]')
    assert outcomes(verdict) == {"context-shift": "failed"}
    assert verdict.notes == ["of 1 turn the log does not tell the outcome, and fail_on leaves that out"]


@pytest.mark.parametrize(
    ("toml", "notes"),
    [
        ("[gate]\nfail_on = []", ["nothing was checked: fail_on is empty, and the policy has no check"]),
        (
            "[gate.baseline]\nmax_regression = {reuse = 0.02}",
            ["nothing was compared: [gate.baseline] names no file, and --baseline none either"],
        ),
        ("", []),
    ],
)
def test_a_green_verdict_says_what_was_not_judged(toml: str, notes: list[str], gated: Gated) -> None:
    verdict = gated(a_report([a_turn()]), toml)
    assert verdict.status == "passed"
    assert verdict.notes == notes


def test_allow_unknown_warns(gated: Gated) -> None:
    report = a_report([a_turn(outcome="unknown")], [a_run(verbosity=3, build_min=11000)])
    verdict = gated(report, "[gate]\nallow_unknown = true")
    assert outcomes(verdict) == {"unknown": "warning"}
    assert verdict.status == "passed"
    [warning] = [c for c in verdict.checks if c.status == "warning"]
    assert warning.hint is not None
    assert "LLAMA_SERVER_SLOTS_DEBUG=1" in warning.hint
    assert "-lv" in warning.hint


def test_warn_only_never_fails(gated: Gated) -> None:
    verdict = gated(a_report([a_rejection()]), "[gate]\nwarn_only = true")
    assert outcomes(verdict) == {"arrival-rejection": "warning"}
    assert verdict.status == "passed"
    assert verdict.message == ("no check failed, 1 warning: no arrival-rejection (1 turn, 1 failed)")


def test_a_failed_turn_is_named_with_its_line_cause_and_fix(gated: Gated) -> None:
    verdict = gated(evicted())
    assert (
        verdict.message == "1 of 6 checks failed: no checkpoint-reprefill (52 turns, 3 failed, 93 % reused)"
    )
    [failed] = [c for c in verdict.checks if c.status == "failed"]
    assert [(t.turn, t.line, t.cause) for t in failed.turns] == [
        (40, 2092, "checkpoint-evicted"),
        (47, 2428, "checkpoint-evicted"),
        (52, 2668, "checkpoint-evicted"),
    ]
    turn = failed.turns[0]
    assert turn.says.startswith(
        "checkpoint-reprefill, full, checkpoint-evicted: The prompt was processed again"
    )
    assert turn.do is not None
    assert turn.do.startswith("--ctx-checkpoints 4: Keep 4 checkpoints a slot")
    assert [p.line for p in turn.evidence] == [241, 2094]


def test_no_text_of_the_log_is_quoted(gated: Gated) -> None:
    verdict = gated(evicted())
    assert "Fix the test" not in repr(verdict)
    assert "erasing old" not in repr(verdict)


def test_drifted_lines_are_noted(gated: Gated) -> None:
    report = evicted()
    report.sources[0].drifted_lines = 2
    report.sources[0].unknown_slot_lines = 1
    assert gated(report).notes == [
        "3 lines of the server's own not understood: ckptlog doctor LOG shows them"
    ]


# --- checks --------------------------------------------------------------------------------------------

# 52 turns, turns 40, 47 and 52 processed 8,623 tokens again
MESSAGES = [
    ("count(failed) <= 2", "failed", "3, at most 2 allowed", [40, 47, 52]),
    ("count(failed) < 3", "failed", "3, less than 3 allowed", [40, 47, 52]),
    ("2 >= count(failed)", "failed", "3, at most 2 allowed", [40, 47, 52]),
    ("count(failed) == 3", "passed", "3, exactly 3 wanted", []),
    ("count(failed) != 3", "failed", "3, anything but 3 wanted", [40, 47, 52]),
    ("count(outcome == 'cold') >= 2", "failed", "1, at least 2 wanted", [40, 47, 52]),
    ("count(cause == 'checkpoint-evicted' and n_lost > 8k) == 0", "failed", "3, exactly 0 wanted", [40, 47, 52]),
    ("reuse() >= 0.99", "failed", "0.93, at least 0.99 wanted", [40, 47, 52]),
    ("reuse() >= 0.90", "passed", "0.93, at least 0.9 wanted", []),
    ("max(n_lost) < 1k", "failed", "8,623, less than 1,000 allowed", [40, 47, 52]),
    ("sum(n_lost) / 1000 <= 20", "failed", "25.9, at most 20 allowed", [40, 47, 52]),
    ("count(failed) < 1 or sum(n_lost) < 5", "failed", "count(failed) = 3, sum(n_lost) = 25,869", [40, 47, 52]),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "status", "message", "turns"), MESSAGES)
def test_check(expr: str, status: str, message: str, turns: list[int], gated: Gated) -> None:
    verdict = gated(evicted(), check(expr))
    found = only(verdict)
    assert (found.status, found.message) == (status, message)
    assert [t.turn for t in found.turns][: len(turns)] == turns
    assert verdict.status == status


def test_a_check_is_called_by_its_name_or_its_expression(gated: Gated) -> None:
    assert only(gated(evicted(), check("count() > 1"))).name == "count() > 1"
    assert only(gated(evicted(), check("count() > 1", name="enough turns"))).name == "enough turns"
    assert only(gated(evicted(), check("count() > 1", name="enough turns"))).id == "check/enough-turns"


def test_where_narrows_a_check(gated: Gated) -> None:
    found = only(gated(evicted(), check("count() == 3", where="failed and slot == 0")))
    assert (found.status, found.where) == ("passed", "failed and slot == 0")


def test_groups_are_judged_apart(gated: Gated) -> None:
    report = a_report([a_turn(slot=1), an_evicted_turn(2, 90, slot=0), an_evicted_turn(3, 190, slot=None)])
    verdict = gated(report, check("count(failed) == 0", name="clean", by="slot"))
    found = [(c.name, c.status, c.group) for c in verdict.checks if c.kind == "check"]
    assert found == [
        ("clean [slot 0]", "failed", {"slot": 0}),
        ("clean [slot 1]", "passed", {"slot": 1}),
        ("clean [slot unknown]", "failed", {"slot": None}),
    ]


def test_groups_by_several_columns(gated: Gated) -> None:
    runs = [a_run(0, model="a.gguf"), a_run(1, model="b.gguf")]
    report = a_report([a_turn(run=0), a_turn(run=1), a_turn(run=1)], runs)
    verdict = gated(report, check("count() == 1", by=["model", "slot"]))
    found = {tuple(c.group.values()): c.status for c in verdict.checks if c.kind == "check"}
    assert found == {("a.gguf", 0): "passed", ("b.gguf", 0): "failed"}


def test_a_check_that_warns_only(gated: Gated) -> None:
    verdict = gated(evicted(), check("count(failed) == 0", warn_only=True))
    assert only(verdict).status == "warning"
    assert verdict.status == "passed"


# --- unknown values ------------------------------------------------------------------------------------

# two turns: one lost 10 tokens, of the other it is not known; no time is known
# the expression, further keys, what comes out, whether that is for want of knowledge, what is said
UNKNOWN = [
    ("sum(n_lost) <= 100", {}, "failed", True, "10, at most 100 allowed; 1 turn has no known n_lost"),
    ("sum(n_lost) <= 5", {}, "failed", False, "10, at most 5 allowed; 1 turn has no known n_lost"),
    ("sum(n_lost) <= 100", {"allow_unknown": True}, "warning", True, "10, at most 100 allowed; 1 turn has no known n_lost"),
    ("sum(n_lost) <= 5", {"allow_unknown": True}, "failed", False, "10, at most 5 allowed; 1 turn has no known n_lost"),
    # even if the unknown turn were counted, this would hold
    ("count(n_lost > 5) <= 2", {}, "passed", False, "1, at most 2 allowed; 1 turn has no known n_lost"),
    ("3 > count(n_lost > 5)", {}, "passed", False, "1, less than 3 allowed; 1 turn has no known n_lost"),
    ("count(n_lost > 5) >= 1", {}, "passed", False, "1, at least 1 wanted; 1 turn has no known n_lost"),
    ("count(n_lost > 5) != 9", {}, "passed", False, "1, anything but 9 wanted; 1 turn has no known n_lost"),
    # ... and these might not
    ("count(n_lost > 5) <= 1", {}, "failed", True, "1, at most 1 allowed; 1 turn has no known n_lost"),
    ("count(n_lost > 5) == 1", {}, "failed", True, "1, exactly 1 wanted; 1 turn has no known n_lost"),
    ("count(n_lost > 5) != 2", {}, "failed", True, "1, anything but 2 wanted; 1 turn has no known n_lost"),
    ("count() <= 2", {"where": "n_lost > 5"}, "passed", False, "1, at most 2 allowed; 1 turn has no known n_lost"),
    ("count() <= 1", {"where": "n_lost > 5"}, "failed", True, "1, at most 1 allowed; 1 turn has no known n_lost"),
    # unless the policy says which turns it means
    ("sum(n_lost) <= 100", {"where": "n_lost is not null"}, "passed", False, "10, at most 100 allowed"),
    ("max(n_lost) < 100", {"where": "slot == 7"}, "failed", False, "unknown, less than 100 allowed; there is no turn to judge with this where"),
    ("max(lost_ms) < 100", {}, "failed", True, "unknown, less than 100 allowed; 2 turns have no known lost_ms"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "more", "status", "undecided", "message"), UNKNOWN)
def test_unknown_values(
    expr: str, more: dict[str, Any], status: str, undecided: bool, message: str, gated: Gated
) -> None:
    turns = [a_turn(10, n_lost=10, lost_ms=None), a_turn(50, n_lost=None, lost_ms=None)]
    found = only(gated(a_report(turns), check(expr, **more)))
    assert (found.status, found.message) == (status, message)
    assert (found.hint is not None) == undecided
    if undecided and "lost_ms" not in expr:
        assert [t.turn for t in found.turns] == [2]


def test_turns_that_can_have_no_figure_are_told_apart_from_a_log_that_says_too_little(gated: Gated) -> None:
    rejected = only(gated(a_report([a_turn(), a_rejection()]), check("sum(n_lost) <= 100")))
    assert rejected.hint == (
        "such turns have none: leave them out with where = "
        "\"outcome not in ('arrival-rejection', 'not-completion')\""
    )
    hidden = only(gated(a_report([a_turn(n_lost=None), a_rejection()]), check("sum(n_lost) <= 100")))
    assert hidden.hint is not None
    assert hidden.hint.startswith("capture more next time: LLAMA_SERVER_SLOTS_DEBUG=1")
    assert {turn.says for turn in hidden.turns} == {"no known n_lost"}


def test_like_turns_get_the_fix_that_does_for_all_of_them(gated: Gated) -> None:
    turns = [an_evicted_turn(1, 50), an_evicted_turn(2, 150)]
    turns[1].fixes[0].flags[1] = "9"
    [failed] = [c for c in gated(a_report(turns)).checks if c.status == "failed"]
    assert [turn.do.split(":")[0] for turn in failed.turns if turn.do] == ["--ctx-checkpoints 9"] * 2


def test_the_gates_own_allow_unknown_counts_unless_the_check_has_one(gated: Gated) -> None:
    report = a_report([a_turn(10, n_lost=None)])
    toml = check("sum(n_lost) <= 100").replace("[gate]", "[gate]\nallow_unknown = true")
    assert only(gated(report, toml)).status == "warning"
    assert only(gated(report, toml + "\nallow_unknown = false")).status == "failed"


def test_very_many_turns_are_counted_and_not_all_named(gated: Gated) -> None:
    verdict = gated(a_report([a_rejection(n) for n in range(1, 301)]))
    [failed] = [c for c in verdict.checks if c.status == "failed"]
    assert (len(failed.turns), failed.turns_total) == (200, 300)
