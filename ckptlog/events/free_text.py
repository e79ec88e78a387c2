"""Fields of free text, which run to the line's end: where they begin in the lines of one shape."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from ckptlog.events.builders import Builder
from ckptlog.events.event import Event
from ckptlog.events.numbers import number_tokens

#: behind these and one space stands the text of a window
WINDOW_HEADS = {"mismatch_old": "old: ...", "mismatch_new": "new: ..."}

#: what may stand behind a message: spaces, and the code that switches a colour off
LINE_END = re.compile(r"(?:\s|\x1b?\[[0-9;]*m)*$")


class SliceField(NamedTuple):
    """A field of free text up to the line's end: it begins ``delta`` characters behind the ``before``-th
    number token (behind the line's beginning if ``before`` is 0), or after the spaces that follow there:
    padding is no part of a shape."""

    name: str
    before: int
    delta: int
    padded: bool


def json_message(line: str) -> str | None:
    """The ``msg`` of a JSONL record, unescaped; null when the line is no such record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    message = record.get("msg") if isinstance(record, dict) else None
    return message if isinstance(message, str) else None


def cut_slices(slices: Sequence[SliceField], line: str, *, in_json: bool) -> dict[str, str]:
    """The free texts of one line of a shape; a line that ends before one has it empty.

    ``in_json``: they stand in a JSON record's ``msg``, unescaped.
    """
    base = (json_message(line) or "") if in_json else line
    base = base[: LINE_END.search(base).start()]  # type: ignore[union-attr]
    ends = [0]
    most = max(piece.before for piece in slices)
    for match in number_tokens.finditer(base):
        if len(ends) > most:
            break
        ends.append(match.end())
    found: dict[str, str] = {}
    for name, before, delta, padded in slices:
        text = base[ends[before] + delta :] if before < len(ends) else ""
        found[name] = text.lstrip(" ") if padded else text
    return found


def with_slices(build: Builder, slices: Sequence[SliceField], *, in_json: bool, keep_text: bool) -> Builder:
    """A shape's function that also cuts the free texts; without ``keep_text`` the raw line goes then."""

    def build_with_slices(
        no: int,
        t: int | None,
        at: int,
        ints: Sequence[int | None],
        floats: Sequence[float | None],
        text: str | None,
    ) -> Event | None:
        event = build(no, t, at, ints, floats, text)
        if event is not None:
            assert text is not None
            event.f.update(cut_slices(slices, text, in_json=in_json))
            if not keep_text:
                event.text = None
        return event

    return build_with_slices
