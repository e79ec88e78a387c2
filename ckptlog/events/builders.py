"""Rows of numbers to events, by a function made for one shape.

A log has a few dozen shapes and millions of lines, so the loop that makes an ``Event`` a row is the hottest
Python there is. A comprehension with the field names written out takes a third of the time of a generic
``dict(zip(names, values))``; it is compiled once a shape, from names that are the grammar's rule names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ckptlog.events.event import Event, Wording

Builder = Callable[[Iterable[tuple[Any, ...]], Wording, dict[str, Any]], list[Event]]


def builder(names: tuple[str, ...], *, with_text: bool, with_constants: bool) -> Builder:
    """A function (rows, wording, constants) -> events.

    A row is (no, t, port, slot, task, one value a name in ``names``, and the raw line if ``with_text``).
    """
    if not all(name.isidentifier() for name in names):
        raise ValueError(f"field names must be identifiers: {names}")
    values = [f"v{i}" for i in range(len(names))]
    pairs = [f"{name!r}: {value}" for name, value in zip(names, values, strict=True)]
    if with_constants:
        pairs.append("**constants")
    row = ", ".join(["no", "t", "port", "slot", "task", *values, *(["text"] if with_text else [])])
    text = "text" if with_text else "None"
    source = (
        "def build(rows, of, constants):\n"
        "    kind = of.kind\n"
        f"    return [Event(of, no, t, port, slot, task, {{{', '.join(pairs)}}}, {text}, kind) for {row} in rows]\n"
    )
    namespace: dict[str, Any] = {"Event": Event}
    exec(compile(source, "<builder of a shape>", "exec"), namespace)
    return namespace["build"]  # type: ignore[no-any-return]
