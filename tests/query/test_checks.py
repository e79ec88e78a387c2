from __future__ import annotations

import polars as pl
import pytest

from ckptlog.query import QueryError, compile_check
from ckptlog.query.compile import CheckResult


def run(text: str, frame: pl.DataFrame) -> CheckResult:
    return compile_check(text).evaluate(frame)


VALUES = [
    ("count()", 5, ()),
    ("count(failed)", 3, ()),
    ("count(n_lost > 5)", 1, (3, 4)),
    ("count(outcome == 'cold' and n_lost > 5)", 0, ()),
    ("sum(n_prompt)", 15000, (4,)),
    ("min(n_prompt)", 1000, (4,)),
    ("max(n_prompt)", 9000, (4,)),
    ("mean(n_prompt)", 3750, (4,)),
    ("p50(n_prompt)", 2500, (4,)),
    ("p95(n_prompt)", 8100, (4,)),
    ("sum(n_prompt - n_cached)", 12000, (4,)),
    ("max(lost_ms)", None, (1, 2, 3, 4, 5)),
    # the rejected turn is left out; the unknown one can't be counted
    ("reuse()", 3000 / 6000, (4,)),
]


@pytest.mark.parametrize(("aggregate", "value", "unknown"), VALUES)
def test_aggregate(
    aggregate: str, value: float | None, unknown: tuple[int, ...], frame: pl.DataFrame
) -> None:
    result = run(f"{aggregate} >= 0", frame)
    [found] = result.aggregates
    assert found.text == aggregate
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.unknown == unknown == result.unknown
    assert result.holds is (None if value is None else True)


def test_the_turns_behind_a_count_and_an_extreme(frame: pl.DataFrame) -> None:
    result = run("count(failed) > 1 and max(n_prompt) < 1M and sum(n_prompt) > 0", frame)
    assert [a.turns for a in result.aggregates] == [(2, 3, 5), (3,), (3, 5, 2, 1)]


def test_the_sides_of_a_comparison(frame: pl.DataFrame) -> None:
    sides = run("sum(n_cached) / sum(n_prompt) >= 1/2", frame).sides
    assert sides is not None
    assert (sides.left, sides.operator, sides.right) == (0.2, ">=", 0.5)
    assert run("count() > 1 and count() < 9", frame).sides is None
    assert run("(count() > 1) == true", frame).sides is None


def test_a_condition_over_several_aggregates(frame: pl.DataFrame) -> None:
    assert run("sum(n_cached) / sum(n_prompt) >= 0.2", frame).holds is True
    assert run("sum(n_cached) / sum(n_prompt) > 0.2", frame).holds is False
    assert run("count(failed) <= 2 or count() < 10", frame).holds is True
    assert run("not (count(failed) <= 3)", frame).holds is False
    assert run("count() in (4, 5)", frame).holds is True


def test_no_turn_gives_no_value_and_no_verdict(frame: pl.DataFrame) -> None:
    none = frame.clear()
    assert run("count(failed) == 0", none).holds is True
    assert run("max(n_prompt) < 5", none).holds is None
    assert run("sum(n_cached) / sum(n_prompt) > 0.9", none).holds is None
    assert run("reuse() > 0.9", none).holds is None
    assert run("max(n_prompt) is null", none).holds is True


def test_the_same_aggregate_is_evaluated_once() -> None:
    assert len(compile_check("count(failed) > 1 and count(failed) < 9").aggregates) == 1


def test_columns() -> None:
    assert compile_check("reuse() > 0 and sum(n_lost) < 5").columns == ("n_cached", "n_lost", "n_prompt")


WRONG = [
    ("n_prompt > 3", "n_prompt has a value for each turn, and a check needs one for all: write sum(n_prompt) or max(n_prompt)"),
    ("failed", "failed has a value for each turn, and a check needs one for all: write count(failed)"),
    ("model == 'x'", "model has a value for each turn, and a check needs one for all: write count(model == '...')"),
    ("count(n_prompt) > 3", "count() takes a condition, and n_prompt is a number: write count(n_prompt is not null) for the turns that have it"),
    ("count", "count is an aggregate: it needs parentheses, count(...)"),
    ("count(failed)", "count(failed) is a number, where a condition is needed"),
    ("sum() > 3", "sum() needs a number to work on, such as sum(n_prompt)"),
    ("sum(1) > 2", "an aggregate over a constant says nothing: name a column"),
    ("count(1 == 1) > 2", "an aggregate over a constant says nothing: name a column"),
    ("mean(failed) > 1", "mean() needs a number, and failed is a condition"),
    ("avg(n_lost) > 1", "there is no aggregate avg"),
    ("p90(n_lost) > 1", "there is no aggregate p90; did you mean p95?"),
    ("reuse(slot) > 1", "reuse() takes nothing in its parentheses"),
    ("1 < 2", "a check needs an aggregate over the turns (count, sum, min, max, mean, p50, p95, reuse)"),
    ("count(cause == 'checkpoint-evictd') == 0", "cause is never 'checkpoint-evictd'; did you mean 'checkpoint-evicted'?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_wrong_check(text: str, reason: str) -> None:
    with pytest.raises(QueryError) as raised:
        compile_check(text)
    assert raised.value.reason == reason
