from __future__ import annotations

import polars as pl
import pytest

from ckptlog.errors import ExitCode, UsageError
from ckptlog.query import QueryError, compile_filter

# tasks 1 cold, 2 re-prefill, 3 rejected, 4 unknown (all null), 5 shifted
CHOSEN = [
    ("outcome == 'cold'", [1]),
    ("outcome != 'cold'", [2, 3, 4, 5]),
    ("failed", [2, 3, 5]),
    ("not failed", [1, 4]),
    ("failed == false", [1, 4]),
    ("n_prompt > 1k", [2, 3, 5]),
    ("n_prompt >= 1k or slot == 1", [1, 2, 3, 5]),
    ("n_prompt < 0.003M", [1, 2]),
    ("n_prompt * 2 == 4e3", [2]),
    ("n_lost / n_prompt > 0.4", [2]),
    ("-n_lost < -(800 + 2 * 3)", [2]),
    ("n_prompt - n_cached - n_lost == 1100", [2]),
    ("slot in (0, 7) and n_cached == 0", [1, 2]),
    ("slot not in (0, 7)", [3]),
    ("cause in ('checkpoint-evicted', 'unknown',)", [2]),
    ("n_shifts in (-1, 2)", [5]),
    ("also ~ 'limit'", [5]),
    ("path ~ '^logs/.*\\.log$'", [1, 2, 3, 4, 5]),
    ("path ~ '(?i)A\\.LOG'", [1, 2, 3, 4, 5]),
    ('model == "a/model.gguf"', [1, 2, 4, 5]),
    ("memory == 'hybrid' or variant == 'near-miss'", [3]),
    ("truncated", [5]),
    ("(n_prompt > 2k) == failed and failed", [3, 5]),
    # null: the log does not say
    ("n_prompt > 0 or n_prompt <= 0", [1, 2, 3, 5]),
    ("not (n_prompt > 1500)", [1]),
    ("n_prompt is null", [4]),
    ("n_prompt == null", [4]),
    ("n_prompt != null", [1, 2, 3, 5]),
    ("slot is not null and n_lost is null", [3]),
    ("n_lost > 5 and outcome == 'unknown'", []),
    ("n_lost > 5 or outcome == 'unknown'", [2, 4]),
    # a division by zero has no value: it is neither larger nor smaller than anything
    ("n_prompt / n_cached > 0.5", [5]),
    ("n_prompt / n_cached is null", [1, 2, 3, 4]),
    ("0 / n_cached <= 1 or 0 / n_cached > 1", [5]),
]


@pytest.mark.parametrize(("text", "tasks"), CHOSEN)
def test_filter_chooses(text: str, tasks: list[int], frame: pl.DataFrame) -> None:
    assert frame.filter(compile_filter(text).expr)["task"].to_list() == tasks


def test_columns_that_a_filter_reads() -> None:
    assert compile_filter("n_lost / n_prompt > 0.1 and not failed").columns == (
        "failed",
        "n_lost",
        "n_prompt",
    )


WRONG = [
    ("outcom == 'cold'", 0, "there is no column outcom; did you mean outcome?"),
    ("failed and N_PROMPT > 1", 11, "there is no column N_PROMPT; did you mean n_prompt?"),
    ("zzzzzz == 1", 0, "there is no column zzzzzz"),
    (
        "outcome == 'chekpoint-reprefill'",
        11,
        "outcome is never 'chekpoint-reprefill'; did you mean 'checkpoint-reprefill'?",
    ),
    ("severity != 'x'", 12, "severity is never 'x'; there are harmless, costly"),
    ("'colt' == outcome", 0, "outcome is never 'colt'; did you mean 'cold'?"),
    ("cause in ('slot-taken', 'slot-token')", 24, "cause is never 'slot-token'; did you mean 'slot-taken'?"),
    ("outcome == context-shift", 11, "context-shift is a word: write it in quotes, 'context-shift'"),
    ("outcome == cold", 11, "cold is a word: write it in quotes, 'cold'"),
    ("slot == 'a'", 5, "slot is a number and can't be compared with the text 'a'"),
    ("failed == 1", 7, "failed is a condition and can't be compared with the number 1"),
    ("slot in (1, 'a')", 12, "slot is a number and can't be compared with the text 'a'"),
    (
        "build > 'b10000'",
        6,
        "only numbers have an order; a text can be == or !=: use build_min or build_max",
    ),
    ("failed < true", 7, "only numbers have an order; a condition can be == or !="),
    ("n_prompt", 0, "n_prompt is a number, where a condition is needed"),
    ("failed and n_prompt", 11, "n_prompt is a number, where a condition is needed"),
    ("model + 1 == 2", 0, "'+' needs a number, and model is a text"),
    ("-failed", 1, "a minus sign needs a number, and failed is a condition"),
    ("slot ~ '1'", 5, "~ needs a text on its left, and slot is none"),
    ("model ~ model", 8, "~ takes a regular expression in quotes, not model"),
    ("model ~ '('", 8, "'(' is no regular expression: unclosed group"),
    ("1 == 1", 2, "the expression names no column: it would be the same for every turn"),
    ("sum(n_prompt) > 3", 0, None),
    ("foo(1) == 1", 0, "there is no aggregate foo"),
    ("n_prompt = 5", 9, "'=' is no operator here: write == to compare"),
    ("failed && truncated", 7, "'&' is no operator here: write and"),
    ("failed || truncated", 7, "'|' is no operator here: write or"),
    ("!failed", 0, "'!' is no operator here: write not"),
    ("slot in [1, 2]", 8, "'[' is not used here: a list is written in parentheses"),
    ("1 < n_prompt < 5", 13, "comparisons can't be chained: write a < b and b < c"),
    ("n_lost < null", 9, "null is no value: write is null or is not null"),
    ("model == 'abc", 9, "the text that begins with ' is never closed"),
    ("10kb > slot", 0, "10kb is no number (numbers may end in k or M)"),
    ("slot == 1K", 8, "1K is no number (numbers may end in k or M)"),
    ("slot == 9223372036854775808", 8, "9223372036854775808 is too large a number"),
    ("slot == 1e999", 8, "1e999 is too large a number"),
    ("slot == 9999999999999M", 8, "9999999999999M is too large a number"),
    ("failed AND slot == 1", 7, None),
    ("", 0, "the expression is empty"),
    ("  ", 0, "the expression is empty"),
    ("(failed", 7, "the expression ends too soon: ')' is missing"),
    ("failed)", 6, ") is unexpected: the end should be here"),
    ("slot ; drop", 5, "';' can't be read here"),
    ("\x1b[2J", 0, "'\\x1b' can't be read here"),
    ("not " * 100 + "failed", None, "the expression is nested more than 60 deep"),
    ("(" * 3000 + "slot" + ")" * 3000, 3000, "slot is a number, where a condition is needed"),
    ("failed or " * 2000 + "failed", 10_000, "the expression is longer than 10,000 characters"),
]


@pytest.mark.parametrize(("text", "position", "reason"), WRONG)
def test_wrong_filter_is_told_where_and_what(text: str, position: int | None, reason: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        compile_filter(text)
    if reason is not None:
        assert raised.value.reason == reason
    if position is not None:
        assert raised.value.position == position


def test_a_keyword_in_capitals_is_recognised() -> None:
    with pytest.raises(QueryError, match=r"AND is unexpected: .*; did you mean and\?"):
        compile_filter("failed AND slot == 1")


def test_an_aggregate_has_no_place_in_a_filter() -> None:
    with pytest.raises(QueryError, match=r"sum.* is a value for many turns"):
        compile_filter("sum(n_prompt) > 3")


def test_the_error_is_a_usage_error_with_a_caret() -> None:
    with pytest.raises(UsageError) as raised:
        compile_filter("failed and slott == 1")
    assert raised.value.exit_code is ExitCode.USAGE
    assert str(raised.value) == (
        "there is no column slott; did you mean slot? (character 12 of the expression)"
    )
    assert isinstance(raised.value, QueryError)
    assert raised.value.details == ("  failed and slott == 1", "             ^")


def test_the_caret_stays_under_its_place_in_a_long_or_hostile_expression() -> None:
    with pytest.raises(QueryError) as raised:
        compile_filter("failed and\n" * 30 + "slott == 1" + " and failed" * 30)
    shown, caret = raised.value.details
    assert shown[caret.index("^") :].startswith("slott")
    assert len(shown) < 150


def test_some_hundred_terms_are_no_problem(frame: pl.DataFrame) -> None:
    text = " or ".join(f"task == {i}" for i in range(600))
    assert frame.filter(compile_filter(text).expr).height == 5
