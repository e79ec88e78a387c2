"""Text to syntax tree: Lark with ``grammars/filter.lark``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from ckptlog.grammar.files import grammar_file
from ckptlog.query import nodes
from ckptlog.query.errors import QueryError, nearest, visible
from ckptlog.query.nodes import Node

MAX_LENGTH = 10_000
#: every later step walks the tree recursively, Polars too
MAX_DEPTH = 60
MAX_INT = 2**63 - 1

_SUFFIX = {"k": 1_000, "M": 1_000_000}
_KEYWORDS = ("and", "or", "not", "in", "is", "null", "true", "false")

#: what a terminal is called in an error message, in the order in which they are listed
_EXPECTED = {
    "NAME": "a column",
    "NUMBER": "a number",
    "STRING": "a quoted text",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_COMMA": "','",
    "EQ": "a comparison",
    "IN": "'in'",
    "NULL": "'null'",
    "AND": "'and'",
    "OR": "'or'",
    "NOT": "'not'",
    "$END": "the end",
}
_FOREIGN = {
    "=": "'=' is no operator here: write == to compare",
    "&": "'&' is no operator here: write and",
    "|": "'|' is no operator here: write or",
    "!": "'!' is no operator here: write not",
    "[": "'[' is not used here: a list is written in parentheses",
}


class _BadNumber(Exception):
    """A number the language can't hold; Lark wraps it, so it carries its own position."""

    def __init__(self, token: Token) -> None:
        self.token = token


def parse(text: str) -> Node:
    """The syntax tree of ``text``; its form only, names and types are not looked at.

    Raises ``QueryError`` with the position of what could not be read.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(f"the expression is longer than {MAX_LENGTH:,} characters", text, MAX_LENGTH)
    if not text.strip():
        raise QueryError("the expression is empty", text, 0)
    try:
        tree = cast(Node, _parser().parse(text))
    except UnexpectedCharacters as error:
        raise _bad_character(text, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        raise _bad_token(text, error) from None
    except (_BadNumber, VisitError) as error:
        bad = error if isinstance(error, _BadNumber) else error.orig_exc
        if not isinstance(bad, _BadNumber):
            raise
        raise QueryError(f"{bad.token} is too large a number", text, bad.token.start_pos or 0) from None
    for node, depth in nodes.walk(tree):
        if depth > MAX_DEPTH:
            raise QueryError(f"the expression is nested more than {MAX_DEPTH} deep", text, node.at)
    return tree


@cache
def _parser() -> Lark:
    # the transformer runs inside the parser, so that deep nesting is refused by us and not by Python
    # and the lexer is the basic one, so that a keyword is never taken for a column where it can't stand
    return Lark(
        grammar_file("filter.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        transformer=_ToNodes(),
        maybe_placeholders=True,
    )


class _ToNodes(Transformer[Token, Any]):
    """Builds the nodes bottom-up; each method is named after a rule of the grammar."""

    def start(self, items: list[Node]) -> Node:
        return items[0]

    def either(self, items: list[Any]) -> Node:
        return nodes.Or(tuple(items[::2]), items[1].start_pos)

    def both(self, items: list[Any]) -> Node:
        return nodes.And(tuple(items[::2]), items[1].start_pos)

    def negation(self, items: list[Any]) -> Node:
        return nodes.Not(items[1], items[0].start_pos)

    def comparison(self, items: list[Any]) -> Node:
        left, operator, right = items
        return nodes.Compare(operator.value, left, right, operator.start_pos)

    def match(self, items: list[Any]) -> Node:
        subject, operator, pattern = items
        return nodes.Match(subject, pattern, operator.start_pos)

    def one_of(self, items: list[Any]) -> Node:
        subject, negated, operator, *options = items
        return nodes.OneOf(
            subject, tuple(o for o in options if o is not None), negated is not None, operator.start_pos
        )

    def is_null(self, items: list[Any]) -> Node:
        subject, operator, negated, _ = items
        return nodes.IsNull(subject, negated is not None, operator.start_pos)

    def equals_null(self, items: list[Any]) -> Node:
        # by Polars' rules `x == null` would hold for no turn at all, which nobody who writes it means
        subject, operator, _ = items
        return nodes.IsNull(subject, operator.value == "!=", operator.start_pos)

    def sum(self, items: list[Any]) -> Node:
        left, operator, right = items
        return nodes.Arithmetic(operator.value, left, right, operator.start_pos)

    product = sum

    def minus(self, items: list[Any]) -> Node:
        return nodes.Negate(items[1], items[0].start_pos)

    def aggregate(self, items: list[Any]) -> Node:
        name, *argument = items
        return nodes.Aggregate(name.value, argument[0] if argument else None, name.start_pos)

    def column(self, items: list[Any]) -> Node:
        return nodes.Column(items[0].value, items[0].start_pos)

    def number(self, items: list[Any]) -> Node:
        return nodes.Number(_number(items[0]), items[0].start_pos)

    def text(self, items: list[Any]) -> Node:
        body = items[0].value[1:-1]
        return nodes.Text(re.sub(r"\\(['\"\\])", r"\1", body), items[0].start_pos)

    def flag(self, items: list[Any]) -> Node:
        return nodes.Flag(items[0].type == "TRUE", items[0].start_pos)


def _number(token: Token) -> int | float:
    digits, factor = token.value, 1
    if digits[-1] in _SUFFIX:
        digits, factor = digits[:-1], _SUFFIX[digits[-1]]
    value = int(digits) * factor if digits.isdigit() and len(digits) < 20 else float(digits) * factor
    if isinstance(value, float) and value.is_integer() and factor > 1:
        value = int(value)  # 1.5k is 1500 tokens
    if value > MAX_INT or not math.isfinite(value):
        raise _BadNumber(token)
    return value


def _bad_character(text: str, position: int) -> QueryError:
    character = text[position]
    if character in "'\"":
        reason = f"the text that begins with {character} is never closed"
    elif character.isdigit():
        word = re.match(r"[\w.]+", text[position:])
        reason = f"{word.group() if word else character} is no number (numbers may end in k or M)"
    else:
        reason = _FOREIGN.get(character, f"'{visible(character)}' can't be read here")
    return QueryError(reason, text, position)


def _bad_token(text: str, error: UnexpectedToken) -> QueryError:
    token = error.token
    accepted = error.accepts or error.expected
    wanted = _wanted(accepted)
    if token.type == "$END":
        return QueryError(f"the expression ends too soon: {wanted} is missing", text, len(text.rstrip()))
    position = token.start_pos or 0
    if token.type in {"EQ", "NE", "LE", "GE", "LT", "GT"} and "AND" in accepted:
        reason = "comparisons can't be chained: write a < b and b < c"
    elif token.type == "NULL":
        reason = "null is no value: write is null or is not null"
    elif "STRING" in accepted and "NAME" not in accepted and "NUMBER" not in accepted:
        reason = f"~ takes a regular expression in quotes, not {visible(token.value)}"
    else:
        reason = f"{visible(token.value)} is unexpected: {wanted} should be here"
        keyword = nearest(token.value, _KEYWORDS) if token.type == "NAME" else None
        if keyword and keyword.upper() in accepted:
            reason += f"; did you mean {keyword}?"
    return QueryError(reason, text, position)


def _wanted(accepted: Iterable[str]) -> str:
    names = [said for terminal, said in _EXPECTED.items() if terminal in set(accepted)]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
