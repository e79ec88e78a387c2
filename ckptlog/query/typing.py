"""Names and types of an expression, checked before anything runs."""

from __future__ import annotations

from typing import Literal

from ckptlog.query.columns import BY_NAME
from ckptlog.query.errors import QueryError, did_you_mean, nearest
from ckptlog.query.nodes import (
    Aggregate,
    And,
    Arithmetic,
    Column,
    Compare,
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
from ckptlog.query.printer import to_text

Kind = Literal["number", "text", "condition"]
#: row: one turn (filters, and what stands inside an aggregate); check: one value for all turns
Place = Literal["row", "check"]

#: aggregates of a number column; count takes a condition or nothing, reuse nothing
OF_NUMBERS = ("sum", "min", "max", "mean", "p50", "p95")
AGGREGATES = ("count", *OF_NUMBERS, "reuse")

_KINDS: dict[str, Kind] = {"Int64": "number", "Float64": "number", "String": "text", "Boolean": "condition"}
_WORDS = tuple(dict.fromkeys(word for column in BY_NAME.values() for word in column.words))


def check_filter(tree: Node, text: str) -> None:
    """Raise ``QueryError`` unless ``tree`` is a condition on one turn."""
    checker = _Checker(text)
    checker.condition(tree, "row")
    if not any(isinstance(node, Column) for node, _ in walk(tree)):
        raise QueryError("the expression names no column: it would be the same for every turn", text, tree.at)


def check_check(tree: Node, text: str) -> None:
    """Raise ``QueryError`` unless ``tree`` is a condition on aggregates over turns."""
    checker = _Checker(text)
    checker.condition(tree, "check")
    if not any(isinstance(node, Aggregate) for node, _ in walk(tree)):
        raise QueryError(
            f"a check needs an aggregate over the turns ({', '.join(AGGREGATES)})", text, tree.at
        )


class _Checker:
    def __init__(self, text: str) -> None:
        self.text = text

    def error(self, reason: str, node: Node) -> QueryError:
        return QueryError(reason, self.text, node.at)

    def condition(self, node: Node, place: Place) -> None:
        kind = self.kind(node, place)
        if kind != "condition":
            raise self.error(f"{_shown(node)} is a {kind}, where a condition is needed", node)

    def number(self, node: Node, place: Place, what_for: str) -> None:
        kind = self.kind(node, place)
        if kind != "number":
            raise self.error(f"{what_for} needs a number, and {_shown(node)} is a {kind}", node)

    def kind(self, node: Node, place: Place) -> Kind:
        match node:
            case Number():
                return "number"
            case Text():
                return "text"
            case Flag():
                return "condition"
            case Column():
                return self.column(node, place)
            case Aggregate():
                return self.aggregate(node, place)
            case Negate(operand=operand):
                self.number(operand, place, "a minus sign")
                return "number"
            case Arithmetic(operator=operator, left=left, right=right):
                self.number(left, place, f"'{operator}'")
                self.number(right, place, f"'{operator}'")
                return "number"
            case Compare():
                return self.compare(node, place)
            case Match(subject=subject):
                if self.kind(subject, place) != "text":
                    raise self.error(f"~ needs a text on its left, and {_shown(subject)} is none", node)
                return "condition"
            case OneOf():
                return self.one_of(node, place)
            case IsNull(subject=subject):
                self.kind(subject, place)
                return "condition"
            case Not(operand=operand):
                self.condition(operand, place)
                return "condition"
            case And(items=items) | Or(items=items):
                for item in items:
                    self.condition(item, place)
                return "condition"

    def column(self, node: Column, place: Place) -> Kind:
        column = BY_NAME.get(node.name)
        if column is None:
            raise self.unknown_name(node)
        kind = _KINDS[column.type]
        if place == "check":
            offer = {
                "number": f"sum({node.name}) or max({node.name})",
                "text": f"count({node.name} == '...')",
                "condition": f"count({node.name})",
            }[kind]
            raise self.error(
                f"{node.name} has a value for each turn, and a check needs one for all: write {offer}", node
            )
        return kind

    def unknown_name(self, node: Column) -> QueryError:
        # a word without its quotes reads as a difference: context-shift is "context" minus "shift"
        rest = self.text[node.at :]
        bare = next((w for w in sorted(_WORDS, key=len, reverse=True) if rest.startswith(w)), None)
        if bare is not None and not rest[len(bare) :][:1].isalnum():
            return self.error(f"{bare} is a word: write it in quotes, '{bare}'", node)
        if node.name in AGGREGATES:
            return self.error(f"{node.name} is an aggregate: it needs parentheses, {node.name}(...)", node)
        return self.error(f"there is no column {node.name}{did_you_mean(node.name, BY_NAME)}", node)

    def aggregate(self, node: Aggregate, place: Place) -> Kind:
        if node.name not in AGGREGATES:
            raise self.error(f"there is no aggregate {node.name}{did_you_mean(node.name, AGGREGATES)}", node)
        if place == "row":
            raise self.error(
                f"{node.name}(...) is a value for many turns: it can stand in a gate check, not in an "
                "expression about one turn",
                node,
            )
        if node.name == "reuse":
            if node.argument is not None:
                raise self.error("reuse() takes nothing in its parentheses", node)
        elif node.name == "count":
            self.count(node)
        elif node.argument is None:
            raise self.error(f"{node.name}() needs a number to work on, such as {node.name}(n_prompt)", node)
        else:
            self.number(node.argument, "row", f"{node.name}()")
            self.names_a_column(node.argument)
        return "number"

    def count(self, node: Aggregate) -> None:
        if node.argument is None:
            return
        kind = self.kind(node.argument, "row")
        if kind != "condition":
            shown = _shown(node.argument)
            raise self.error(
                f"count() takes a condition, and {shown} is a {kind}: write count({shown} is not null) "
                "for the turns that have it",
                node.argument,
            )
        self.names_a_column(node.argument)

    def names_a_column(self, argument: Node) -> None:
        if not any(isinstance(part, Column) for part, _ in walk(argument)):
            raise self.error("an aggregate over a constant says nothing: name a column", argument)

    def compare(self, node: Compare, place: Place) -> Kind:
        left, right = self.kind(node.left, place), self.kind(node.right, place)
        if left != right:
            raise self.error(
                f"{_shown(node.left)} is a {left} and can't be compared with the {right} {_shown(node.right)}",
                node,
            )
        if left != "number" and node.operator not in ("==", "!="):
            hint = ": use build_min or build_max" if _is_column(node.left, "build") else ""
            raise self.error(f"only numbers have an order; a {left} can be == or !={hint}", node)
        self.words(node.left, node.right)
        self.words(node.right, node.left)
        return "condition"

    def one_of(self, node: OneOf, place: Place) -> Kind:
        kind = self.kind(node.subject, place)
        for option in node.options:
            other = self.kind(option, place)
            if other != kind:
                raise self.error(
                    f"{_shown(node.subject)} is a {kind} and can't be compared with the {other} "
                    f"{_shown(option)}",
                    option,
                )
            self.words(node.subject, option)
        return "condition"

    def words(self, subject: Node, literal: Node) -> None:
        """Refuse a literal that the column can never be equal to."""
        if not (isinstance(subject, Column) and isinstance(literal, Text)):
            return
        known = BY_NAME[subject.name].words
        if not known or literal.value in known:
            return
        near = nearest(literal.value, known)
        rest = f"did you mean '{near}'?" if near else "there are " + ", ".join(known)
        raise self.error(f"{subject.name} is never {_shown(literal)}; {rest}", literal)


def _is_column(node: Node, name: str) -> bool:
    return isinstance(node, Column) and node.name == name


def _shown(node: Node) -> str:
    text = to_text(node)
    return text if len(text) <= 60 else text[:57] + "..."
