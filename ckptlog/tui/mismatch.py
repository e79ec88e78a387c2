"""Where the new prompt parts from what the slot held: both texts, whitespace and special tokens visible."""

from __future__ import annotations

import re
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from ckptlog.records import TurnRecord
from ckptlog.report.capture import capture_lines
from ckptlog.report.digest import Numbered
from ckptlog.report.text_findings import message_of
from ckptlog.report.words import request_words
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.turn_rows import TurnRows
from ckptlog.tui.wrap import wrapped

#: characters of each text that are shown
_SHOWN = 2000
_SIDE_BY_SIDE_FROM = 64
#: what chat templates write between messages: <|im_start|>, <start_of_turn>, [INST], <think>
_SPECIAL = re.compile(r"<\|[^|<>\s]{1,40}\|>|</?[a-z_]{2,24}>|\[/?[A-Z_]{3,20}\]|<0x[0-9A-F]{2}>")


class Piece(NamedTuple):
    """Some text in an ink."""

    text: str
    ink: str


class MismatchPane(TurnRows):
    """Old and new side by side, from the token at which they part."""

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._rows: list[list[Piece]] = []

    @property
    def n_rows(self) -> int:
        return len(self._rows)

    def row(self, index: int, width: int) -> list[Segment]:
        return [Segment(piece.text, self.ink(piece.ink)) for piece in self._rows[index]]

    def build(self, book: Book, item: Numbered | None) -> None:
        self._rows = []
        if item is None:
            return
        turn = item.turn
        mismatch = turn.mismatch
        if mismatch is None:
            self._without(book, turn)
            return
        self._say(
            "The prompts part"
            + ("" if mismatch.pos is None else f" at token {mismatch.pos:,}")
            + (f" of {turn.n_prompt:,}." if turn.n_prompt and mismatch.pos is not None else ".")
            + (f" {request_words(turn.trigger)}" if turn.trigger else "")
        )
        if mismatch.old is not None and mismatch.new is not None:
            self._rows.append([])
            self._texts(turn, mismatch.old, mismatch.new)
        else:
            self._rows += self._how_to_capture(book, turn)

    def _say(self, sentence: str, ink: str = "other") -> None:
        self._rows += [[Piece(line, ink)] for line in wrapped(self.glyphs.text(sentence), self.inner.width)]

    def _without(self, book: Book, turn: TurnRecord) -> None:
        if turn.n_common is not None and turn.n_prompt is not None and turn.n_common >= turn.n_prompt - 1:
            self._say("The new prompt holds all that it has in common with the slot: nothing parts.")
            return
        if turn.n_common is not None:
            self._say(
                f"The first {turn.n_common:,} tokens are common; the log does not show the text behind them."
            )
        else:
            self._say("The log does not tell where this prompt parts from what the slot held.")
        self._rows += self._how_to_capture(book, turn)

    def _how_to_capture(self, book: Book, turn: TurnRecord) -> list[list[Piece]]:
        run = book.run_of(turn)
        if run is not None and run.slots_debug:
            return []
        rows = [[], [Piece("To see both texts next time, start the server like this:", "dim")]]
        return rows + [
            [Piece(f"  {line}", "flag")] for line in capture_lines(book.report, [run] if run else [])
        ]

    def _texts(self, turn: TurnRecord, old: str, new: str) -> None:
        before = _common_before(turn)
        same = _same_head(old, new)
        width = self.inner.width
        if width < _SIDE_BY_SIDE_FROM:
            for name, text in (("the slot held", old), ("the new prompt", new)):
                self._rows.append([Piece(name, "head")])
                self._rows += self._side(text, before, same, width - 1)
                self._rows.append([])
            return
        half = (width - 3) // 2
        sides = [self._side(text, before, same, half) for text in (old, new)]
        self._rows.append([Piece("the slot held".ljust(half) + " | the new prompt", "head")])
        for n in range(max(len(side) for side in sides)):
            left = sides[0][n] if n < len(sides[0]) else []
            right = sides[1][n] if n < len(sides[1]) else []
            pad = half - sum(cell_len(piece.text) for piece in left)
            self._rows.append([*left, Piece(" " * max(0, pad) + " | ", "dim"), *right])

    def _side(self, text: str, before: str, same: int, width: int) -> list[list[Piece]]:
        """One text, wrapped to ``width`` cells; ``same`` characters of it are equal in both."""
        pieces: list[Piece] = []
        if before:
            pieces += self._visible(before[-60:], "dim")
        pieces.append(Piece("|", "divergence"))
        pieces += self._visible(text[:same], "dim")
        pieces += self._visible(text[same:_SHOWN], "differs")
        if len(text) > _SHOWN:
            pieces.append(Piece(f" {self.glyphs.more} {len(text) - _SHOWN:,} more", "dim"))
        return _wrap_pieces(pieces, width)

    def _visible(self, text: str, ink: str) -> list[Piece]:
        """Text with whitespace as signs of its own and special tokens in their ink."""
        pieces: list[Piece] = []
        at = 0
        for match in _SPECIAL.finditer(text):
            pieces += self._plain(text[at : match.start()], ink)
            pieces.append(Piece(self.glyphs.text(match.group()), "special"))
            at = match.end()
        return pieces + self._plain(text[at:], ink)

    def _plain(self, text: str, ink: str) -> list[Piece]:
        pieces = []
        for part in re.split(r"(\n|\t| +)", text):
            if part == "\n":
                pieces.append(Piece(self.glyphs.newline, "special"))
            elif part == "\t":
                pieces.append(Piece(self.glyphs.tab, "special"))
            elif part.startswith(" "):
                pieces.append(Piece(self.glyphs.space * len(part), "axis"))
            elif part:
                pieces.append(Piece(self.glyphs.text(part), ink))
        return pieces


def _common_before(turn: TurnRecord) -> str:
    """The text in front of the divergence, where the quoted line has it."""
    for evidence in turn.evidence:
        message = message_of(evidence.text)[:20_000]
        if message.startswith(("old: ", "new: ")):
            head, bar, _ = message[5:].partition(" | ")
            if bar:
                return head.lstrip(". ")
    return ""


def _same_head(old: str, new: str) -> int:
    """How many characters two texts begin with in common (tokens may differ and yet begin alike)."""
    for n, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return n
    return min(len(old), len(new))


def _wrap_pieces(pieces: list[Piece], width: int) -> list[list[Piece]]:
    rows: list[list[Piece]] = [[]]
    used = 0
    for piece in pieces:
        text = piece.text
        while text:
            room = width - used
            taken = _head_of(text, room)
            if not taken:
                if not used:  # a single character wider than the whole column
                    taken = text[0]
                else:
                    rows.append([])
                    used = 0
                    continue
            rows[-1].append(Piece(taken, piece.ink))
            used += cell_len(taken)
            text = text[len(taken) :]
    return rows


def _head_of(text: str, cells: int) -> str:
    """As many characters as fit into ``cells`` cells."""
    taken, used = 0, 0
    for char in text:
        used += cell_len(char)
        if used > cells:
            break
        taken += 1
    return text[:taken]
