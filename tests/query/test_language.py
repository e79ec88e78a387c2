"""Properties of the language: what is printed parses to the same, and nothing crashes."""

from __future__ import annotations

import contextlib

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptlog.query import QueryError, compile_check, compile_filter
from ckptlog.query import nodes as n
from ckptlog.query.columns import TURN_COLUMNS
from ckptlog.query.parse import MAX_INT, parse
from ckptlog.query.printer import to_text
from ckptlog.query.typing import AGGREGATES, OF_NUMBERS

#: the first call builds the parser and imports Polars
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

KEYWORDS = {"and", "or", "not", "in", "is", "null", "true", "false"}

names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z").filter(lambda name: name not in KEYWORDS)
numbers = st.builds(
    n.Number, st.integers(0, MAX_INT) | st.floats(0, 1e18, allow_nan=False).filter(lambda x: str(x) != "-0.0")
)
texts = st.builds(n.Text, st.text(max_size=12) | st.text("\\'\"d\n", max_size=6))
flags = st.builds(n.Flag, st.booleans())
literals = numbers | texts | flags | st.builds(n.Negate, numbers)


def grow(inner: st.SearchStrategy[n.Node]) -> st.SearchStrategy[n.Node]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return (
        st.builds(n.Negate, inner)
        | st.builds(n.Arithmetic, st.sampled_from("+-*/"), inner, inner)
        | st.builds(n.Compare, st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), inner, inner)
        | st.builds(n.Match, inner, texts)
        | st.builds(n.OneOf, inner, st.lists(literals, min_size=1, max_size=3).map(tuple), st.booleans())
        | st.builds(n.IsNull, inner, st.booleans())
        | st.builds(n.Not, inner)
        | st.builds(n.And, several)
        | st.builds(n.Or, several)
        | st.builds(n.Aggregate, names, st.none() | inner)
    )


trees = st.recursive(literals | st.builds(n.Column, names), grow, max_leaves=12)


@patient
@given(trees)
def test_printed_and_parsed_again_is_the_same(tree: n.Node) -> None:
    assert parse(to_text(tree)) == tree


@patient
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except QueryError as raised:
        error = raised
    else:
        assert parse(to_text(tree)) == tree
        return
    assert 0 <= error.position <= len(text)
    assert all(line.isprintable() for line in (str(error), *error.details))


# expressions of the right types, so that most of them compile and run

number_columns = st.sampled_from([c.name for c in TURN_COLUMNS if c.type in ("Int64", "Float64")])
flag_columns = st.sampled_from([c.name for c in TURN_COLUMNS if c.type == "Boolean"])
text_columns = st.sampled_from([c.name for c in TURN_COLUMNS if c.type == "String" and not c.words])

number_trees = st.recursive(
    numbers | st.builds(n.Column, number_columns),
    lambda inner: st.builds(n.Negate, inner) | st.builds(n.Arithmetic, st.sampled_from("+-*/"), inner, inner),
    max_leaves=5,
)
orders = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
patterns = st.builds(n.Text, st.sampled_from(["", "a", "\\d+", "[", "(?P<x>", "a{2,1}", "\x00", "(?=x)"]))
simple = (
    st.builds(n.Compare, orders, number_trees, number_trees)
    | st.builds(n.Column, flag_columns)
    | st.builds(n.Match, st.builds(n.Column, text_columns), patterns)
    | st.builds(n.Compare, st.sampled_from(("==", "!=")), st.builds(n.Column, text_columns), texts)
    | st.builds(n.OneOf, number_trees, st.lists(numbers, min_size=1, max_size=3).map(tuple), st.booleans())
    | st.builds(n.IsNull, number_trees, st.booleans())
)


def combine(inner: st.SearchStrategy[n.Node]) -> st.SearchStrategy[n.Node]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    same = st.builds(n.Compare, st.sampled_from(("==", "!=")), inner, inner)
    return st.builds(n.Not, inner) | st.builds(n.And, several) | st.builds(n.Or, several) | same


conditions = st.recursive(simple, combine, max_leaves=5)


@patient
@given(tree=conditions)
def test_a_filter_runs_or_is_refused(tree: n.Node, frame: pl.DataFrame) -> None:
    try:
        compiled = compile_filter(to_text(tree))
    except QueryError:
        return
    chosen = frame.filter(compiled.expr)
    inverse = frame.filter(~compiled.expr)
    unsaid = frame.filter(compiled.expr.is_null())
    assert chosen.height + inverse.height + unsaid.height == frame.height


@patient
@given(
    st.builds(
        n.Compare,
        orders,
        st.builds(n.Arithmetic, st.sampled_from("+-*/"), *[
            st.builds(n.Aggregate, st.sampled_from(OF_NUMBERS), number_trees)
            | st.builds(n.Aggregate, st.just("count"), st.none() | conditions)
            | st.builds(n.Aggregate, st.just("reuse"), st.none())
        ] * 2),
        numbers,
    )
)  # fmt: skip
def test_a_check_runs_or_is_refused(frame: pl.DataFrame, tree: n.Node) -> None:
    try:
        compiled = compile_check(to_text(tree))
    except QueryError:
        return
    for turns in (frame, frame.clear()):
        result = compiled.evaluate(turns)
        assert result.holds in (True, False, None)
        assert set(result.unknown) <= set(turns["turn"])


@patient
@given(trees)
def test_any_tree_is_checked_without_a_crash(tree: n.Node) -> None:
    for compile_ in (compile_filter, compile_check):
        with contextlib.suppress(QueryError):
            compile_(to_text(tree))


def test_names_of_aggregates_are_no_columns() -> None:
    assert not set(AGGREGATES) & {column.name for column in TURN_COLUMNS}
