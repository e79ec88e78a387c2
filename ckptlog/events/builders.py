"""Numbers to events, by functions made for one shape.

A log has a few dozen shapes and millions of lines, so what makes an ``Event`` of a line is the hottest Python
there is. Such a function is compiled once a shape, with the field names (the grammar's rule names) and the places
of their numbers written out; that takes a third of the time of a generic loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ckptlog.events.event import Event, Wording

#: (line number, microseconds, where the line's tokens begin, all tokens as integers, as floats, the raw line);
#: null if a number can't be read
Builder = Callable[
    [int, int | None, int, Sequence[int | None], Sequence[float | None], str | None], Event | None
]

#: a list for each column: line numbers, those that the builder was made for, and the raw lines if they are kept
ColumnBuilder = Callable[..., list[Event]]


class NumberField(NamedTuple):
    """A field that is the ``token``-th number token of the line, from 0."""

    name: str
    token: int
    negative: bool
    is_float: bool


class Heads(NamedTuple):
    """Which number tokens of a line are its port, slot and task; -1: none."""

    port: int = -1
    slot: int = -1
    task: int = -1
    task_negative: bool = False


#: fields that the number pattern cuts, and that are none
NO_NUMBERS = frozenset({"pointer"})


def builder(
    of: Wording, heads: Heads, numbers: Sequence[NumberField], constants: dict[str, Any], *, with_text: bool
) -> Builder:
    """The function for one shape; ``constants`` are fields that are the same in each of its lines."""
    lines = ["def build(no, t, o, ints, floats, text):"]
    pairs: list[str] = []
    needed: list[str] = []
    for i, field in enumerate(numbers):
        lines.append(f"    v{i} = {'floats' if field.is_float else 'ints'}[o + {field.token}]")
        sign = "-" if field.negative else ""
        if field.name in NO_NUMBERS:
            pairs.append(_pair(field.name, "None"))
            continue
        needed.append(f"v{i} is None")
        pairs.append(_pair(field.name, f"{sign}v{i}"))
    if needed:
        lines += [f"    if {' or '.join(needed)}:", "        return None"]
    if constants:
        pairs.append("**constants")
    task = _at(heads.task)
    if heads.task_negative and heads.task >= 0:
        lines += [f"    task = {task}", "    task = None if task is None else -task"]
        task = "task"
    fields = ", ".join(pairs)
    lines.append(
        f"    return Event(of, no, t, {_at(heads.port)}, {_at(heads.slot)}, {task}, {{{fields}}}, "
        f"{'text' if with_text else 'None'}, kind)"
    )
    return _compiled(lines, of, constants)  # type: ignore[no-any-return]


def column_builder(
    of: Wording,
    columns: Sequence[str],
    fields: Mapping[str, str],
    unread: Sequence[str],
    constants: dict[str, Any],
    *,
    with_text: bool,
) -> ColumnBuilder:
    """The function for columns of lines of one shape.

    ``columns`` are ``stamp``, ``port``, ``slot``, ``task`` as far as the lines have them, and one for each key of ``fields``,
    which has the field's name; fields named in ``unread`` are null.
    """
    pairs = [_pair(name, column) for column, name in fields.items()] + [_pair(name, "None") for name in unread]
    if constants:
        pairs.append("**constants")
    read = ["no", *columns, *(["text"] if with_text else [])]
    heads = [name if name in columns else "None" for name in ("stamp", "port", "slot", "task")]
    text = "text" if with_text else "None"
    event = f"Event(of, no, {', '.join(heads)}, {{{', '.join(pairs)}}}, {text}, kind)"
    return _compiled(  # type: ignore[no-any-return]
        [f"def build(*columns): return [{event} for {', '.join(read)}, in zip(*columns)]"], of, constants
    )


def _pair(name: str, value: str) -> str:
    """Two fields may have one name (a wording that prints a number twice): the last one counts."""
    if not name.isidentifier():
        raise ValueError(f"a field's name must be an identifier: {name}")
    return f"{name!r}: {value}"


def _compiled(lines: list[str], of: Wording, constants: dict[str, Any]) -> Any:
    namespace: dict[str, Any] = {"Event": Event, "of": of, "kind": of.kind, "constants": constants}
    exec(compile("\n".join(lines), "<builder of a shape>", "exec"), namespace)
    return namespace["build"]


def _at(token: int) -> str:
    return "None" if token < 0 else f"ints[o + {token}]"
