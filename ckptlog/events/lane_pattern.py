"""One anchored expression for all lines of a shape, made from an example."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ckptlog.events.expressions import escaped
from ckptlog.events.numbers import number_tokens

#: characters that may belong to a number token (a hex one, too) and so must not touch a number
_TOUCHY = re.compile(r"[0-9A-Fa-fxX_]")
#: the groups of the logger's ``M.SS.mmm.uuu``
STAMP_PARTS = ("minutes", "seconds", "millis", "micros")
_DOTTED = re.compile(r"([0-9]{1,9})\.([0-9]{2})\.([0-9]{3})\.([0-9]{3})")
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)*")


class Piece(NamedTuple):
    """A piece of the example from ``start`` on; ``text`` is the literal that it is, or else ``number`` an expression."""

    start: int
    text: str = ""
    number: str = ""
    group: str | None = None

    def __str__(self) -> str:
        return f"({self.number})" if self.group else self.number or escaped(self.text)


class LanePattern(NamedTuple):
    """An expression with a group for each name in ``groups``, in their order."""

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return f"^{''.join(map(str, self.pieces))}$"

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(piece.group for piece in self.pieces if piece.group)

    def cut(self, at: int) -> tuple[LanePattern, LanePattern] | None:
        """For what stands before the example's ``at``-th character, and from it on; null if that is no literal's."""
        for i, piece in enumerate(self.pieces):
            if piece.start <= at < piece.start + len(piece.text):
                before, behind = piece.text[: at - piece.start], piece.text[at - piece.start :]
                return (
                    LanePattern((*self.pieces[:i], Piece(piece.start, before))),
                    LanePattern((Piece(at, behind), *self.pieces[i + 1 :])),
                )
        return None


def lane_pattern(line: str, names: Mapping[int, str], *, dotted_time: bool) -> LanePattern | None:
    """``names`` has the group's name for each number token that is read; if the time is dotted, ``stamp`` becomes a
    group for each of its parts.

    Null if one expression can't tell for certain that a line has the same number tokens as the example.
    """
    pieces: list[Piece] = []
    at = 0
    for token, match in enumerate(number_tokens.finditer(line)):
        between, text, name = line[at : match.start()], match.group(), names.get(token)
        literal = between.rstrip(" ")
        spaced = literal != between
        if not _apart(literal, spaced=spaced, first=token == 0):
            return None
        pieces.append(Piece(at, literal))
        if spaced:
            pieces.append(Piece(at + len(literal), number=" +"))
        if name == "stamp" and dotted_time:
            parts = _stamp_pieces(text, match.start())
            if not parts:
                return None
            pieces += parts
            at = match.end()
            continue
        if text.startswith("0x") and name is None:
            number = "0x[0-9a-fA-F]+"
        elif _PLAIN.fullmatch(text):
            # one that is not read must not be beyond any sense, either
            number = ("[0-9]+" if name else "[0-9]{1,15}") + r"\.[0-9]+" * text.count(".")
        else:
            return None
        pieces.append(Piece(match.start(), number=number, group=name))
        at = match.end()
    tail = line[at:]
    pieces.append(Piece(at, tail))
    found = LanePattern(tuple(pieces))
    return found if found.groups and not _TOUCHY.match(tail) else None


def _stamp_pieces(text: str, start: int) -> list[Piece]:
    """A dotted time, part by part; none if it is no such time."""
    match = _DOTTED.fullmatch(text)
    if match is None:
        return []
    pieces: list[Piece] = []
    for number, name in enumerate(STAMP_PARTS):
        begin, end = match.span(number + 1)
        size = "{1,9}" if number == 0 else f"{{{end - begin}}}"
        pieces.append(Piece(start + begin, number=f"[0-9]{size}", group=name))
        if number < len(STAMP_PARTS) - 1:
            pieces.append(Piece(start + end, "."))
    return pieces


def _apart(literal: str, *, spaced: bool, first: bool) -> bool:
    """Is what stands before a number no part of a number token itself? ``first``: there is none before it."""
    if not literal:
        return first or spaced
    if not first and (_TOUCHY.match(literal) or literal == "."):
        return False
    return spaced or not _TOUCHY.match(literal[-1])
