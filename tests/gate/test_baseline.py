"""Baselines and the comparison behind them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlog import analyze
from ckptlog.gate.baseline import against, choose, read_baseline, render_baseline
from ckptlog.gate.errors import BaselineError
from ckptlog.gate.policy import Gate, Policy
from ckptlog.gate.tolerance import parse_tolerance
from ckptlog.gate.verdict import CheckVerdict
from ckptlog.records import CheckpointSettings, Report
from ckptlog.report.compare import compare
from ckptlog.report.compare_text import render_compare
from ckptlog.report.digest import digest
from ckptlog.report.matching import matching
from ckptlog.report.snapshot import Snapshot, snapshot

from ..report.build import a_rejection, a_report, a_run, a_source, a_turn, an_evicted_turn, evicted, healthy

MakePolicy = Callable[[str], Policy]
ROOT = Path(__file__).parents[2]


def session(*turns: Any, **run: Any) -> Report:
    return a_report(list(turns), [a_run(**run)])


BEFORE = session(
    a_turn(10, 9000, 0, outcome="cold"), a_turn(50, 9100, 9000), a_turn(90, 9138, 8623, outcome="restored")
)
AFTER = session(
    a_turn(10, 9000, 0, outcome="cold"), a_turn(50, 9100, 9000), an_evicted_turn(3, 90, 9138)
)  # fmt: skip


def checked(old: Report, new: Report, policy: Policy) -> dict[str, CheckVerdict]:
    checks, _ = against(new, "new.log", snapshot(old, "old.log"), policy)
    return {check.id.removeprefix("baseline/"): check for check in checks}


# --- the file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [evicted(), healthy(), session()])
def test_a_baseline_is_read_back_as_it_was(report: Report, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_bytes(render_baseline([snapshot(report, "a.log"), snapshot(report, "b.log")]))
    first, second = read_baseline(str(file))
    assert (first.path, second.path) == ("a.log", "b.log")
    differences = compare(snapshot(report, "a.log"), first)
    assert differences.aligned
    assert not differences.worse
    assert not differences.better
    assert not differences.settings
    assert all(metric.old == metric.new for metric in differences.metrics)


def test_a_baseline_is_one_line_a_turn_without_prompt_text() -> None:
    text = render_baseline([snapshot(evicted(), "server.log")]).decode()
    lines = [line for line in text.splitlines() if '"turn":' in line]
    assert len(lines) == 52
    assert lines[39].strip() == (
        '{"turn": 40, "outcome": "checkpoint-reprefill", "slot": 0, "failed": true, "severity": "costly", '
        '"variant": "full", "cause": "checkpoint-evicted", "n_prompt": 9140, "n_cached": 0, "n_lost": 8623},'
    )
    assert "Fix the test" not in text
    assert "erasing" not in text


def test_a_model_is_named_without_its_folder() -> None:
    report = session(a_turn(), model="/home/me/models/q.gguf")
    assert snapshot(report, "x").settings[0]["model"] == "q.gguf"


BAD = [
    ("", "is no baseline: input data was truncated"),
    ("{", "is no baseline: input data was truncated"),
    ("[]", "is no baseline: expected `object`, got `array`"),
    ('{"kind": "x", "schema": 1, "logs": []}', "is no baseline: its kind is 'x', not 'ckptlog-baseline'"),
    ('{"kind": "ckptlog-baseline", "schema": 2, "logs": []}', "has baseline schema 2, and this ckptlog reads 1: write it again"),
    ('{"kind": "ckptlog-baseline", "schema": 1, "logs": [{}]}', "is no baseline: object missing required field `path` - at `$.logs[0]`"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), BAD)
def test_a_bad_baseline_is_told(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(content)
    with pytest.raises(BaselineError) as raised:
        read_baseline(str(file))
    assert str(raised.value).startswith(f"{file} {message}")


def test_a_missing_baseline_is_told(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"can't read the baseline .*: no such file or directory"):
        read_baseline(str(tmp_path / "none.json"))


def test_the_baseline_of_a_log_is_chosen_by_path_then_name_then_alone() -> None:
    logs = [snapshot(session(), path) for path in ("a/x.log", "b/x.log", "b/y.log")]

    def chosen(path: str, among: list[Snapshot], alone: bool) -> str:
        return choose(among, path, "base.json", alone).path

    assert chosen("b/x.log", logs, alone=True) == "b/x.log"
    assert chosen("c/y.log", logs, alone=False) == "b/y.log"
    assert chosen("z.log", logs[:1], alone=True) == "a/x.log"
    with pytest.raises(BaselineError) as raised:
        chosen("c/x.log", logs, alone=True)
    assert str(raised.value) == (
        "the baseline base.json has nothing on c/x.log: it has a/x.log, b/x.log, b/y.log"
    )
    with pytest.raises(BaselineError):
        chosen("z.log", logs[:1], alone=False)


# --- judging -------------------------------------------------------------------------------------------


def test_a_regression_fails_and_names_the_turn(policy: MakePolicy) -> None:
    found = checked(BEFORE, AFTER, policy(""))
    assert {name: check.status for name, check in found.items()} == {
        "failed": "failed",
        "error": "passed",
        "unknown": "passed",
        "reuse": "failed",
        "n_lost": "failed",
    }
    assert found["failed"].message == "1, was 0"
    assert found["n_lost"].message == "8,623, was 0; 10 % worse is allowed"
    assert [turn.turn for turn in found["n_lost"].turns] == [3]
    assert "checkpoint-evicted" in found["failed"].turns[0].says


def test_an_improvement_passes(policy: MakePolicy) -> None:
    assert {check.status for check in checked(AFTER, BEFORE, policy("")).values()} == {"passed"}


def test_tolerances_are_the_policys(policy: MakePolicy) -> None:
    loose = policy('[gate.baseline]\nmax_regression = {n_lost = 9000, failed = 1, reuse = "60%"}')
    assert {name: c.status for name, c in checked(BEFORE, AFTER, loose).items()} == {
        "failed": "passed",
        "reuse": "passed",
        "n_lost": "passed",
    }
    tight = policy("[gate.baseline]\nmax_regression = {n_lost = 8622}")
    assert checked(BEFORE, AFTER, tight)["n_lost"].status == "failed"


def test_times_do_not_fail_unless_asked_for(policy: MakePolicy) -> None:
    slow = session(a_turn(10, 9000, 0, outcome="cold", prompt_ms=99_999.0), a_turn(50, 9100, 9000))
    quick = session(a_turn(10, 9000, 0, outcome="cold", prompt_ms=9.0), a_turn(50, 9100, 9000))
    assert {check.status for check in checked(quick, slow, policy("")).values()} == {"passed"}
    asked = policy('[gate.baseline]\nmax_regression = {prompt_ms = "50%"}')
    assert checked(quick, slow, asked)["prompt_ms"].status == "failed"


def test_one_turn_mended_and_another_broken_is_no_draw(policy: MakePolicy) -> None:
    old = session(an_evicted_turn(1, 10, 9000), a_turn(50, 9100, 9000))
    new = session(a_turn(10, 9000, 8990), an_evicted_turn(2, 50, 9100))
    found = checked(old, new, policy("[gate.baseline]\nmax_regression = {failed = 0}"))["failed"]
    assert found.status == "failed"
    assert found.message == "1, was 1; 1 turn failed that did not fail before"
    assert [turn.turn for turn in found.turns] == [2]


def test_outcomes_can_be_compared(policy: MakePolicy) -> None:
    old, new = session(a_turn(10, 90, 0)), session(a_rejection(10, 90))
    wanted = policy("[gate.baseline]\nmax_regression = {arrival-rejection = 0}")
    assert checked(old, new, wanted)["arrival-rejection"].status == "failed"


def test_what_is_no_longer_known_does_not_pass(policy: MakePolicy) -> None:
    old, new = session(a_turn(10, 9000, 8000)), session(a_turn(10, 9000, 8000, n_lost=None))
    found = checked(old, new, policy(""))["n_lost"]
    assert (found.status, found.message) == (
        "failed",
        "0, was 0; 10 % worse is allowed; 1 more turn without a known n_lost than before",
    )
    assert checked(old, new, policy("[gate]\nallow_unknown = true"))["n_lost"].status == "warning"
    assert checked(new, new, policy(""))["n_lost"].status == "passed"


def test_a_baseline_that_warns_only(policy: MakePolicy) -> None:
    found = checked(BEFORE, AFTER, policy("[gate.baseline]\nwarn_only = true"))
    assert {check.status for check in found.values()} == {"warning", "passed"}


def test_notes_tell_changed_flags_and_turns_without_a_counterpart(policy: MakePolicy) -> None:
    old = session(a_turn(10, 90, 0), checkpoints=CheckpointSettings(True, 32, 256), build="b10068")
    new = session(a_turn(10, 91, 0), checkpoints=CheckpointSettings(True, 2, 256), build="b11549")
    _, notes = against(new, "new.log", snapshot(old, "old.log"), policy(""))
    assert notes == [
        "since the baseline: build b10068 -> b11549",
        "since the baseline: --ctx-checkpoints 32 -> 2",
        "0 turns correspond to the baseline's; 1 of this log and 1 of the baseline do not "
        "(other order or prompt sizes) and were compared in sum only",
    ]


TOLERANCES = [
    (0, "0", 5, 5, True),
    (0, "0", 5, 6, False),
    (2, "2", 5, 7, True),
    (2, "2", 5, 8, False),
    ("10%", "10 %", 100, 110, True),
    ("10%", "10 %", 100, 111, False),
    (" 2.5 % ", "2.5 %", 1000, 1025, True),
    ("10%", "10 %", 0, 1, False),
    ("10%", "10 %", 0, 0, True),
]


@pytest.mark.parametrize(("given_", "shown", "old", "new", "allowed"), TOLERANCES)
def test_tolerance(given_: Any, shown: str, old: float, new: float, allowed: bool) -> None:
    tolerance = parse_tolerance(given_)
    assert tolerance is not None
    assert str(tolerance) == shown
    assert tolerance.allows(old, new, "less") is allowed
    assert tolerance.allows(-old, -new, "more") is allowed


@pytest.mark.parametrize("given_", ["", "x", "10", "-1%", "1e3%", -1, float("inf"), float("nan")])
def test_no_tolerance(given_: Any) -> None:
    assert parse_tolerance(given_) is None


# --- turns that correspond -----------------------------------------------------------------------------


def test_turns_are_matched_by_order_and_prompt_size() -> None:
    old = session(*(a_turn(10 * n, size, 0) for n, size in enumerate((100, 200, 300, 400, 500), 1)))
    new = session(*(a_turn(10 * n, size, 0) for n, size in enumerate((100, 200, 250, 260, 400, 500), 1)))
    found = compare(snapshot(old, "old"), snapshot(new, "new"))
    assert (found.matched, found.only_old, found.only_new) == (4, [3], [3, 4])


sizes = st.lists(st.integers(1, 5) | st.none(), max_size=30)


@given(sizes, sizes)
def test_matching_keeps_the_order_and_uses_each_turn_once(
    old: list[int | None], new: list[int | None]
) -> None:
    left = snapshot(session(*(a_turn(1, size, 0) for size in old)), "old")
    right = snapshot(session(*(a_turn(1, size, 0) for size in new)), "new")
    found = compare(left, right)
    assert found.matched + len(found.only_old) == len(old)
    assert found.matched + len(found.only_new) == len(new)
    kept_old = [size for i, size in enumerate(old, 1) if i not in found.only_old]
    kept_new = [size for i, size in enumerate(new, 1) if i not in found.only_new]
    assert kept_old == kept_new
    assert compare(left, left).matched == len(old)


# --- compare, for a person -----------------------------------------------------------------------------


def text(old: Report, new: Report) -> str:
    comparison = compare(snapshot(old, "old.log"), snapshot(new, "new.log"))
    lines = [line.plain for line in render_compare(comparison, new)]
    assert all(len(line) <= 80 for line in lines)
    return "\n".join(lines)


def test_compare_golden(golden: Callable[[str, bytes], None]) -> None:
    before = session(*BEFORE.turns, checkpoints=CheckpointSettings(True, 4, 8192))
    golden("compare.txt", (text(before, AFTER) + "\n").encode())


def test_compare_says_better_same_and_worse() -> None:
    assert "BETTER  1 turn better, none worse" in text(AFTER, BEFORE)
    assert "NO DIFFERENCE that matters in 3 turns" in text(AFTER, AFTER)
    assert "WORSE  1 turn got worse, failed went from 0 to 1" in text(BEFORE, AFTER)


def test_compare_of_other_conversations_judges_nothing() -> None:
    said = text(session(a_turn(10, 100, 90)), session(a_turn(10, 200, 20), a_turn(20, 300, 0)))
    assert "0 turns correspond" in said
    assert "NOT COMPARABLE turn by turn" in said
    assert "In sum, old and new: reuse 0.9 and 0.04." in " ".join(said.split())
    assert "worse" not in said.lower()
    assert "better" not in said.lower()


def test_below_no_difference_no_row_says_otherwise() -> None:
    old = session(a_turn(10, 1000, 900, prompt_ms=100.0))
    new = session(a_turn(10, 1000, 890, prompt_ms=900.0))
    said = text(old, new)
    assert "NO DIFFERENCE that matters in 1 turn" in said
    assert "worse" not in said
    assert "better" not in said


def test_many_small_losses_are_one() -> None:
    old = session(*(a_turn(10 * n, 200 + n, 190) for n in range(1, 20)))
    new = session(*(a_turn(10 * n, 200 + n, 100) for n in range(1, 20)))
    assert "WORSE  no turn by much, reuse went from" in text(old, new)
    assert "BETTER  no turn by much, reuse went from" in text(new, old)


def test_a_mended_failure_outweighs_a_little_reuse() -> None:
    old = session(an_evicted_turn(1, 10, 9138), a_turn(50, 9500, 9400))
    new = session(a_turn(10, 9138, 8623), a_turn(50, 9500, 9000, n_lost=400))
    assert "MIXED  1 failure mended, 0 new, 1 turn got worse" in text(old, new)
    assert "WORSE  1 turn got worse, 1 better" in text(new, old)


def test_sums_that_leave_turns_out_say_so_in_full() -> None:
    said = text(BEFORE, session(*AFTER.turns[:2], an_evicted_turn(3, 90, 9138, lost_ms=None, prompt_ms=None)))
    (row,) = [line for line in said.splitlines() if "lost_ms" in line]
    assert "worse" not in row
    assert "      not known in 1 turn of the new log\n" in said


def test_several_logs_on_a_side_are_counted() -> None:
    comparison = compare(snapshot(BEFORE, "before/"), snapshot(AFTER, "after/"))
    lines = [line.plain for line in render_compare(comparison, AFTER, files=(12, 1))]
    assert lines[:2] == ["old  before/ (12 logs, as one)", "new  after/"]
    assert any("turn 3 (line 90):" in line for line in lines)
    two = msgspec.structs.replace(AFTER, sources=[a_source("after/server.log"), a_source("after/other.log")])
    lines = [line.plain for line in render_compare(comparison, two, files=(12, 2))]
    assert any("turn 3 (line 90 of server.log):" in line for line in lines)


def test_a_turn_that_was_put_in_or_left_out_moves_no_other() -> None:
    long = [n % 700 for n in range(5000)]  # no prompt size occurs only once
    assert len(matching(long, long)) == 5000
    assert len(matching(long, [*long[:2000], 9, 8, 7, *long[2000:]])) >= 4990
    assert len(matching(long, long[:2000] + long[2003:])) >= 4990
    changed = [-1 if n % 97 == 50 else size for n, size in enumerate(long)]
    assert len(matching(long, changed)) == sum(size >= 0 for size in changed)


@pytest.mark.parametrize("path", sorted((ROOT / "sample_logs").glob("*.log")), ids=lambda path: path.stem)
def test_a_log_is_no_worse_than_itself(path: Path, tmp_path: Path) -> None:
    report = analyze(path).report
    file = tmp_path / "baseline.json"
    file.write_bytes(render_baseline([snapshot(report, "a.log")]))
    (old,) = read_baseline(str(file))
    checks, notes = against(report, "a.log", old, Policy(None, Gate()))
    assert {check.id: check.message for check in checks if check.status != "passed"} == {}
    assert notes == []


def test_no_reuse_where_there_was_one_is_worse() -> None:
    embedding = a_turn(10, 9000, 0, outcome="not-completion")
    assert checked(session(embedding), session(embedding), Policy(None, Gate()))["reuse"].status == "passed"
    gone = checked(session(a_turn(10, 9000, 8000)), session(embedding), Policy(None, Gate()))
    assert gone["reuse"].status == "failed"


# --- what was lost -------------------------------------------------------------------------------------


def test_what_was_held_elsewhere_is_lost_as_in_the_report() -> None:
    """The log's own figures: 10 of 2,779 tokens shared with the slot, 2,642 saved in the RAM prompt cache."""
    report = analyze(ROOT / "sample_logs" / "held-elsewhere.log").report
    found = snapshot(report, "held-elsewhere.log")
    assert found.sums["n_lost"] == 2652 == digest(report).lost.tokens
    assert found.sums["lost_ms"] == pytest.approx(digest(report).lost.ms, abs=0.1)
    assert [turn.n_lost for turn in found.turns if turn.cause == "slot-taken"] == [2642]


def test_a_loss_of_which_only_bounds_are_known_is_in_no_sum() -> None:
    report = session(an_evicted_turn(1, 100, n_common=None, n_lost=None, lost_ms=None, n_common_range=(500, 600)))
    found = snapshot(report, "a.log")
    assert (found.sums["n_lost"], found.unknown["n_lost"], found.unknown["lost_ms"]) == (0, 1, 1)


def test_a_slot_taken_from_a_conversation_is_worse_than_before() -> None:
    turn = an_evicted_turn(1, 100, cause="slot-taken", n_known=2642, n_common=10, n_lost=10)
    held = msgspec.structs.replace(turn, cause="other-conversation", n_known=10, n_lost=10)
    (change,) = compare(snapshot(session(held), "a.log"), snapshot(session(turn), "b.log")).worse
    assert (change.old.n_lost, change.new.n_lost) == (10, 2642)


def test_a_server_start_more_is_told_as_such() -> None:
    """What a second server in one of the logs is set to is no change of a setting."""
    old = a_report([a_turn()], [a_run(verbosity=4)])
    new = a_report([a_turn()], [a_run(verbosity=3), a_run(1)])
    settings = compare(snapshot(old, "a.log"), snapshot(new, "b.log")).settings
    assert [(one.name, one.old, one.new) for one in settings] == [("server starts", "1", "2"), ("-lv", "4", "3")]
