"""Syntax tree to Polars expressions; the checks of the gate are evaluated here as well.

Null is "the log does not say" and follows Polars' (Kleene's) rules: a comparison with null is null,
``null and false`` is false, ``null or true`` is true, everything else stays null; a filter keeps only the
turns for which its condition is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl
from polars.exceptions import ComputeError

from ckptlog.query.errors import QueryError
from ckptlog.query.nodes import (
    Aggregate,
    And,
    Arithmetic,
    Column,
    Compare,
    ComparisonOperator,
    Flag,
    IsNull,
    Match,
    Negate,
    Node,
    Not,
    Number,
    OneOf,
    Or,
    Text,
    walk,
)
from ckptlog.query.parse import parse
from ckptlog.query.printer import to_text
from ckptlog.query.typing import check_check, check_filter


@dataclass(frozen=True)
class CompiledFilter:
    """A condition on one turn."""

    text: str
    tree: Node
    #: a Boolean expression over the ``turns`` frame; null where the log does not say enough
    expr: pl.Expr
    #: the columns it reads, sorted
    columns: tuple[str, ...]


@dataclass(frozen=True)
class AggregateValue:
    """What one aggregate of a check came to."""

    text: str
    #: None: there is no value (no turn, or a mean of nothing)
    value: float | int | None
    #: turns (their ``turn`` numbers) for which the argument is null; they are left out of ``value``
    unknown: tuple[int, ...]
    #: the turns behind the value: those that count() counted, that hold the min or the max, or else the
    #: ten largest of those summed up, the largest first
    turns: tuple[int, ...]


@dataclass(frozen=True)
class Sides:
    """The two sides of a check that is one comparison of numbers, as they came out."""

    left: float | None
    operator: ComparisonOperator
    right: float | None


@dataclass(frozen=True)
class CheckResult:
    """``holds`` is None when the values it needs do not exist."""

    holds: bool | None
    aggregates: tuple[AggregateValue, ...]
    #: None: the check is more than one comparison
    sides: Sides | None

    @property
    def unknown(self) -> tuple[int, ...]:
        """The turns that could not be counted in some aggregate, in order."""
        return tuple(sorted({turn for a in self.aggregates for turn in a.unknown}))


@dataclass(frozen=True)
class CompiledCheck:
    """A condition on aggregates over turns."""

    text: str
    tree: Node
    columns: tuple[str, ...]

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Its aggregates, left to right, each once."""
        found = (node for node, _ in walk(self.tree) if isinstance(node, Aggregate))
        return tuple(dict.fromkeys(found))

    def evaluate(self, turns: pl.DataFrame) -> CheckResult:
        """The check over the rows of a ``turns`` frame (already cut down to those it is about)."""
        values = tuple(_aggregate(node, turns) for node in self.aggregates)
        row = {f"a{i}": _float(value.value) for i, value in enumerate(values)}
        frame = pl.DataFrame(row, schema=dict.fromkeys(row, pl.Float64))
        names = {node: f"a{i}" for i, node in enumerate(self.aggregates)}
        holds = frame.select(_expression(self.tree, names)).item()
        sides = None
        if isinstance(self.tree, Compare) and not _is_condition(self.tree.left):
            # with_columns: a side may be a constant
            left, right = (
                frame.with_columns(_expression(side, names).cast(pl.Float64).alias("side"))["side"].item()
                for side in (self.tree.left, self.tree.right)
            )
            sides = Sides(left, self.tree.operator, right)
        return CheckResult(None if holds is None else bool(holds), values, sides)


def compile_filter(text: str) -> CompiledFilter:
    """The filter ``text`` as a Polars expression over the ``turns`` frame.

    Raises ``QueryError`` (an ``errors.UsageError``) with ``.position`` for a wrong form, name or type.
    """
    tree = parse(text)
    check_filter(tree, text)
    _check_patterns(tree, text)
    return CompiledFilter(text, tree, _expression(tree, {}), _columns(tree))


def compile_check(text: str) -> CompiledCheck:
    """The gate check ``text``, ready to be evaluated over a ``turns`` frame.

    Raises ``QueryError`` (an ``errors.UsageError``) with ``.position`` for a wrong form, name or type.
    """
    tree = parse(text)
    check_check(tree, text)
    _check_patterns(tree, text)
    return CompiledCheck(text, tree, _columns(tree))


def _is_condition(node: Node) -> bool:
    return not isinstance(node, Number | Aggregate | Negate | Arithmetic)


def _columns(tree: Node) -> tuple[str, ...]:
    names = {node.name for node, _ in walk(tree) if isinstance(node, Column)}
    if any(isinstance(node, Aggregate) and node.name == "reuse" for node, _ in walk(tree)):
        names |= {"n_cached", "n_prompt"}
    return tuple(sorted(names))


def _check_patterns(tree: Node, text: str) -> None:
    """Refuse a regular expression that Polars' engine refuses, before any turn is looked at."""
    for node, _ in walk(tree):
        if isinstance(node, Match):
            try:
                pl.Series([""]).str.contains(node.pattern.value)
            except ComputeError as error:
                why = [line.strip() for line in str(error).splitlines() if line.startswith("error:")]
                detail = why[0].removeprefix("error:").strip() if why else "the engine refuses it"
                reason = f"{to_text(node.pattern)} is no regular expression: {detail}"
                raise QueryError(reason, text, node.pattern.at) from None


def _expression(node: Node, names: dict[Aggregate, str]) -> pl.Expr:
    def of(part: Node) -> pl.Expr:
        return _expression(part, names)

    match node:
        case Number(value=number):
            return pl.lit(number, dtype=pl.Int64 if isinstance(number, int) else pl.Float64)
        case Text(value=text):
            return pl.lit(text, dtype=pl.String)
        case Flag(value=flag):
            return pl.lit(flag, dtype=pl.Boolean)
        case Column(name=name):
            return pl.col(name)
        case Aggregate():
            return pl.col(names[node])
        case Negate(operand=operand):
            return -of(operand)
        case Arithmetic(operator=operator, left=left, right=right):
            return _arithmetic(operator, of(left), of(right))
        case Compare(operator=operator, left=left, right=right):
            return _compare(operator, of(left), of(right))
        case Match(subject=subject, pattern=pattern):
            return of(subject).str.contains(pattern.value)
        case OneOf(subject=subject, options=options, negated=negated):
            found = pl.any_horizontal([of(subject) == of(option) for option in options])
            return ~found if negated else found
        case IsNull(subject=subject, negated=negated):
            return of(subject).is_not_null() if negated else of(subject).is_null()
        case Not(operand=operand):
            return ~of(operand)
        case And(items=items):
            return pl.all_horizontal([of(item) for item in items])
        case Or(items=items):
            return pl.any_horizontal([of(item) for item in items])


def _arithmetic(operator: str, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    # in floating point, so that no product of token counts can wrap round; a division by zero has no
    # value, where Polars would give an infinity or a NaN that compares as larger than everything
    a, b = left.cast(pl.Float64), right.cast(pl.Float64)
    result = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[operator]
    return pl.when(result.is_finite()).then(result)


def _compare(operator: str, a: pl.Expr, b: pl.Expr) -> pl.Expr:
    match operator:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def _aggregate(node: Aggregate, turns: pl.DataFrame) -> AggregateValue:
    if node.name == "reuse":
        return _reuse(turns)
    if node.argument is None:
        return AggregateValue(to_text(node), turns.height, (), tuple(turns["turn"]))
    # with_columns and not select: an argument without a column per row would otherwise lose the height
    values = turns.with_columns(_expression(node.argument, {}).alias("\0value"))["\0value"]
    unknown = tuple(turns["turn"].filter(values.is_null()))
    chosen: tuple[int, ...] = ()
    value: Any
    match node.name:
        case "count":
            value = int(values.sum())
            chosen = tuple(turns["turn"].filter(values.fill_null(False)))
        case "min" | "max":
            value = values.min() if node.name == "min" else values.max()
            extreme = values == pl.Series([value], dtype=values.dtype)
            chosen = tuple(turns["turn"].filter(extreme.fill_null(False)))
        case _:
            value = _over_all(node.name, values)
            largest = turns["turn"].to_frame().with_columns(values).drop_nulls()
            largest = largest.sort(values.name, descending=True, maintain_order=True)
            chosen = tuple(largest["turn"].head(10))
    return AggregateValue(to_text(node), value, unknown, chosen)


def _over_all(name: str, values: pl.Series) -> Any:
    match name:
        case "sum":
            return values.sum()
        case "mean":
            return values.mean()
        case _:
            return values.quantile({"p50": 0.5, "p95": 0.95}[name], interpolation="linear")


def _reuse(turns: pl.DataFrame) -> AggregateValue:
    """The summary's ``reuse``: of the turns asked, n_cached / n_prompt without refusals, children and embeddings."""
    asked = ~pl.col("outcome").is_in(["arrival-rejection", "not-completion"])
    meant = turns.filter(asked & pl.col("child_of").is_null())
    known = pl.col("n_cached").is_not_null() & pl.col("n_prompt").is_not_null()
    counted = meant.filter(known)
    cached, prompt = int(counted["n_cached"].sum()), int(counted["n_prompt"].sum())
    worst = counted.sort(pl.col("n_prompt") - pl.col("n_cached"), descending=True, maintain_order=True)
    return AggregateValue(
        "reuse()",
        cached / prompt if prompt and counted.height >= meant["n_cached"].null_count() else None,
        tuple(meant.filter(~known)["turn"]),
        tuple(worst["turn"].head(10)),
    )


def _float(value: float | int | None) -> list[float | None]:
    return [None if value is None else float(value)]
