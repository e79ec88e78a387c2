"""The log lines that show what happened, each with what it shows; Enter opens the log there."""

from __future__ import annotations

from typing import NamedTuple

from rich.segment import Segment

from ckptlog.records import Evidence
from ckptlog.report.digest import Numbered
from ckptlog.report.safe import shorten
from ckptlog.report.text_findings import interesting, message_of
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.turn_rows import TurnRows
from ckptlog.tui.wrap import wrapped

_QUOTE_ROWS = 3
#: of a line that may be megabytes long, what is looked at
_LOOKED_AT = 4000


class Line(NamedTuple):
    """One row: a piece of text of an evidence."""

    evidence: Evidence
    lead: str
    text: str
    ink: str


class EvidenceList(TurnRows):
    """A turn's evidence, wrapped to the width: several rows belong to one piece of evidence."""

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs, id=id)
        self._lines: list[Line] = []

    def build(self, book: Book, item: Numbered | None) -> None:
        self._lines = []
        evidence = item.turn.evidence if item is not None else []
        several = len(book.report.sources) > 1
        places = [
            f"{self.glyphs.text(book.source_name(e.source))[-24:]}:{e.line}" if several else f"line {e.line}"
            for e in evidence
        ]
        column = max((len(place) for place in places), default=0)
        room = max(20, self.inner.width - column - 4)
        for place, piece in zip(places, evidence, strict=True):
            message = message_of(piece.text)
            around = interesting(message)
            quote = self.glyphs.text(shorten(message[:_LOOKED_AT], _QUOTE_ROWS * room, around))
            lead = f"{place:>{column}}  "
            for row, text in enumerate(wrapped(quote, room)[:_QUOTE_ROWS]):
                self._lines.append(Line(piece, lead if row == 0 else " " * len(lead), text, "quote"))
            for row, text in enumerate(wrapped(self.glyphs.text(piece.says), room - 2) if piece.says else ()):
                mark = f"{self.glyphs.pointer} " if row == 0 else "  "
                self._lines.append(Line(piece, " " * len(lead) + mark, text, "other"))

    @property
    def n_rows(self) -> int:
        return len(self._lines)

    def empty_text(self) -> str:
        return "No line is quoted for this turn. The log tab has its lines." if self.item else ""

    def row(self, index: int, width: int) -> list[Segment]:
        line = self._lines[index]
        return [Segment(line.lead, self.ink("dim")), Segment(line.text, self.ink(line.ink))]

    def evidence_at(self, index: int) -> Evidence | None:
        """What a row belongs to."""
        return self._lines[index].evidence if 0 <= index < len(self._lines) else None
