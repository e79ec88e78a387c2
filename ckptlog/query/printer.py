"""Syntax tree to text: the shortest spelling that parses to the same tree."""

from __future__ import annotations

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
)

# how tightly a node binds; a part that binds less than its place asks for goes into parentheses
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _SIGNED, _ATOM = range(8)


def to_text(node: Node) -> str:
    """The expression as the language writes it: ``parse(to_text(node)) == node``."""
    return _write(node, _OR)


def quoted(text: str) -> str:
    """``text`` as a literal of the language, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _write(node: Node, place: int) -> str:
    text, binding = _spelling(node)
    return text if binding >= place else f"({text})"


def _spelling(node: Node) -> tuple[str, int]:
    match node:
        case Number(value=value):
            return repr(value), _ATOM
        case Text(value=value):
            return quoted(value), _ATOM
        case Flag(value=value):
            return str(value).lower(), _ATOM
        case Column(name=name):
            return name, _ATOM
        case Aggregate(name=name, argument=argument):
            return f"{name}({'' if argument is None else _write(argument, _OR)})", _ATOM
        case Negate(operand=operand):
            return f"-{_write(operand, _SIGNED)}", _SIGNED
        case Arithmetic(operator=operator, left=left, right=right):
            binding = _SUM if operator in "+-" else _PRODUCT
            return f"{_write(left, binding)} {operator} {_write(right, binding + 1)}", binding
        case Compare(operator=operator, left=left, right=right):
            return f"{_write(left, _SUM)} {operator} {_write(right, _SUM)}", _PREDICATE
        case Match(subject=subject, pattern=pattern):
            return f"{_write(subject, _SUM)} ~ {quoted(pattern.value)}", _PREDICATE
        case OneOf(subject=subject, options=options, negated=negated):
            listed = ", ".join(_write(option, _SIGNED) for option in options)
            return f"{_write(subject, _SUM)} {'not ' if negated else ''}in ({listed})", _PREDICATE
        case IsNull(subject=subject, negated=negated):
            return f"{_write(subject, _SUM)} is {'not ' if negated else ''}null", _PREDICATE
        case Not(operand=operand):
            return f"not {_write(operand, _NOT)}", _NOT
        case And(items=items):
            return " and ".join(_write(item, _NOT) for item in items), _AND
        case Or(items=items):
            return " or ".join(_write(item, _AND) for item in items), _OR
