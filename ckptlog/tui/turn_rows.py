"""Rows about one turn, made again for each turn and each width: base of the evidence and the mismatch."""

from __future__ import annotations

from ckptlog.report.digest import Numbered
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.rows import RowList


class TurnRows(RowList):
    """A list that a subclass fills, in ``build``, for ``item`` of ``book``."""

    KEEPS_CURSOR = False

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.book: Book | None = None
        self.item: Numbered | None = None

    def build(self, book: Book, item: Numbered | None) -> None:
        """Make the rows for a turn (null: for none), wrapped to the width there is."""
        raise NotImplementedError

    def show(self, book: Book, item: Numbered | None) -> None:
        """Show a turn; another one than before from its first row on."""
        moved = self.item is None or item is None or item.turn is not self.item.turn
        self.book, self.item = book, item
        self._rebuild()
        if moved:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, immediate=True)

    def on_resize(self) -> None:
        self._rebuild()
        super().on_resize()

    def _rebuild(self) -> None:
        if self.book is not None:
            self.build(self.book, self.item)
        self.changed()
