"""JSON objects that are log records, read so that every value keeps its place in the raw line."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)


class Text:
    """A string and, for each of its characters, where it stands in the raw line.

    ``places`` is None where the string is a slice of the raw line from ``start`` on.
    """

    __slots__ = ("_nowhere", "places", "start", "value")

    def __init__(
        self, value: str, start: int = 0, places: list[int] | None = None, *, nowhere: bool = False
    ) -> None:
        self.value = value
        self.start = start
        self.places = places
        self._nowhere = nowhere

    def place(self, start: int, end: int) -> tuple[int, int] | None:
        """The raw [start, end) of a part, or None if its characters do not stand in one piece there."""
        if self._nowhere:
            return None
        if self.places is None:
            return self.start + start, self.start + end
        if start >= end:
            at = self.places[start - 1] + 1 if start else self.start
            return at, at
        first, last = self.places[start], self.places[end - 1]
        return (first, last + 1) if last - first == end - 1 - start else None

    def stripped(self) -> Text:
        """Without the newline at its end."""
        return Text(self.value.rstrip("\r\n"), self.start, self.places, nowhere=self._nowhere)


def plain_text(line: str) -> Text:
    """The raw line itself."""
    return Text(line)


class _Member(NamedTuple):
    value: Any
    start: int
    end: int


class Json:
    """The members of one JSON object, with their places in the text that holds it."""

    def __init__(self, holder: Text, members: dict[str, _Member]) -> None:
        self._holder = holder
        self._members = members

    @property
    def names(self) -> list[str]:
        """The keys, in the order of the text."""
        return list(self._members)

    def value(self, key: str) -> Any:
        member = self._members.get(key)
        return None if member is None else member.value

    def place(self, key: str) -> tuple[int, int] | None:
        """Where the value stands in the raw line."""
        member = self._members.get(key)
        return None if member is None else self._holder.place(member.start, member.end)

    def text(self, key: str) -> Text | None:
        """The value as text, if it is a string, or the bytes of one (journald, for what is no plain text)."""
        member = self._members.get(key)
        if member is None:
            return None
        if isinstance(member.value, str):
            return self._string(member)
        return bytes_text(member.value)

    def _string(self, member: _Member) -> Text:
        body = self._holder.value[member.start + 1 : member.end - 1]
        at = member.start + 1
        if "\\" not in body:
            places = self._holder.places
            if places is None:
                return Text(body, self._holder.start + at, nowhere=self._holder.place(at, at) is None)
            return Text(body, 0, places[at : at + len(body)])
        if self._holder.place(at, at + 1) is None:
            return Text(member.value, nowhere=True)
        inner: list[int] = []
        end = 0
        for escape in _ESCAPE.finditer(body):
            inner.extend(range(at + end, at + escape.start()))
            # an escape is one character, wherever its pieces stand
            inner.append(at + escape.start())
            end = escape.end()
        inner.extend(range(at + end, at + len(body)))
        if len(inner) != len(member.value):
            return Text(member.value, nowhere=True)
        outer = self._holder.places
        start = self._holder.start
        return Text(member.value, 0, [start + i if outer is None else outer[i] for i in inner])


def bytes_text(value: Any) -> Text | None:
    """The text of a JSON array of byte values, which has no place in the line; None for anything else."""
    if not isinstance(value, list) or not value:
        return None
    try:
        return Text(bytes(value).decode("utf-8", "replace"), nowhere=True)
    except (TypeError, ValueError):
        return None


def decode_object(holder: Text, start: int) -> Json | None:
    """The JSON object that begins at ``start`` of the text and is all of the rest, but for a comma; None if there is none."""
    text = holder.value
    members: dict[str, _Member] = {}
    try:
        at = _skip(text, start + 1)
        while text[at] != "}":
            _expect(text, at, '"')
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _expect(text, _skip(text, at), ":"))
            value, end = _DECODER.raw_decode(text, at)
            members[key] = _Member(value, at, end)
            at = _skip(text, end)
            if text[at] == ",":
                at = _skip(text, at + 1)
        if text[at + 1 :].strip() not in ("", ","):
            return None
    except (ValueError, IndexError, RecursionError):
        return None
    return Json(holder, members)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _expect(text: str, at: int, what: str) -> int:
    if text[at] != what:
        raise ValueError(f"no {what} at {at}")
    return at + 1
