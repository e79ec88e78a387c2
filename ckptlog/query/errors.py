"""Errors of the filter language: what is wrong, where, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ckptlog.errors import UsageError

#: how much of a long expression the snippet shows on each side of the caret
_AROUND = 50


class QueryError(UsageError):
    """An expression that can't be used.

    ``reason`` is the sentence alone, ``position`` the 0-based index in ``text`` of the character it is
    about, ``details`` the expression with a caret below that character, as lines to show under the
    sentence. ``str()`` is the sentence with the position counted from 1.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        self.reason = reason
        self.text = text
        self.position = min(max(position, 0), len(text))
        super().__init__(f"{reason} (character {self.position + 1} of the expression)")

    @property
    def details(self) -> tuple[str, str]:
        """Two lines: the expression around the position, and a caret under it."""
        start = max(0, self.position - _AROUND)
        end = min(len(self.text), self.position + _AROUND)
        before = ("..." if start else "") + visible(self.text[start : self.position])
        after = visible(self.text[self.position : end]) + ("..." if end < len(self.text) else "")
        return f"  {before}{after}", f"  {' ' * len(before)}^"


def visible(text: str) -> str:
    """``text`` on one line, with whatever could move a terminal's cursor written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be, or None when nothing is near."""
    names = list(known)
    folded = {k.lower(): k for k in reversed(names)}
    found = get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], quote: str = "") -> str:
    """``"; did you mean X?"``, or nothing when no known name is near."""
    found = nearest(name, known)
    return f"; did you mean {quote}{found}{quote}?" if found else ""
