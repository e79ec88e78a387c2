"""The filter language's syntax tree.

``at`` is the 0-based index in the source text of the character an error about the node points at; two
trees are equal when they say the same, wherever they say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ArithmeticOperator = Literal["+", "-", "*", "/"]
ComparisonOperator = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is not negative (a sign is a ``Negate``), its suffix already multiplied in."""

    value: int | float
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Flag:
    value: bool
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``sum(n_prompt)``: one value out of many turns; ``count()`` and ``reuse()`` have no argument."""

    name: str
    argument: Node | None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Negate:
    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: ArithmeticOperator
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    operator: ComparisonOperator
    left: Node
    right: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Match:
    """``subject ~ 'pattern'``: the regular expression is found somewhere in the subject."""

    subject: Node
    pattern: Text
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    subject: Node
    options: tuple[Node, ...]
    negated: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    subject: Node
    negated: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Node, ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Node, ...]
    at: int = field(default=0, compare=False)


Node: TypeAlias = (
    Number
    | Text
    | Flag
    | Column
    | Aggregate
    | Negate
    | Arithmetic
    | Compare
    | Match
    | OneOf
    | IsNull
    | Not
    | And
    | Or
)


def children(node: Node) -> tuple[Node, ...]:
    """The node's direct parts, left to right."""
    match node:
        case Aggregate(argument=argument):
            return () if argument is None else (argument,)
        case Negate(operand=operand) | Not(operand=operand):
            return (operand,)
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
        case Match(subject=subject, pattern=pattern):
            return (subject, pattern)
        case OneOf(subject=subject, options=options):
            return (subject, *options)
        case IsNull(subject=subject):
            return (subject,)
        case And(items=items) | Or(items=items):
            return items
        case _:
            return ()


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Every node below and including ``node`` with its depth, the root's being 1, left to right."""
    # a stack of its own: the depth is what the caller wants to limit, so Python's must not run out first
    stack = [(node, 1)]
    while stack:
        current, depth = stack.pop()
        yield current, depth
        stack.extend((child, depth + 1) for child in reversed(children(current)))
