"""The list of turns: sortable, filtered by the app, an outcome as a sign and a coloured word."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import set_cell_size
from rich.segment import Segment
from textual.message import Message

from ckptlog.records import FAILURES, TurnRecord
from ckptlog.report.digest import Numbered
from ckptlog.report.loss import loss
from ckptlog.report.words import label
from ckptlog.tui.columns import lost_tokens
from ckptlog.tui.glyphs import Glyphs, ink, sign
from ckptlog.tui.rows import RowList

_RANK = {outcome: rank for rank, outcome in enumerate(FAILURES)}


@dataclass(frozen=True)
class ListColumn:
    """A column: its heading, the width of its cells, its text, and a key to sort by (largest first)."""

    name: str
    width: int
    text: Callable[[Numbered], str]
    key: Callable[[Numbered], float]
    #: the list's inner width from which it is shown
    from_width: int = 0
    align: Literal["left", "right"] = "right"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _of(name: str) -> Callable[[Numbered], int | None]:
    return lambda item: getattr(item.turn, name)


def _figure(name: str, heading: str, from_width: int, width: int = 7) -> ListColumn:
    value = _of(name)
    return ListColumn(
        heading,
        width,
        lambda item: _count(value(item)),
        lambda item: -1 if (n := value(item)) is None else n,
        from_width,
    )


def _lost(turn: TurnRecord) -> str:
    lost = loss(turn)
    return str(lost) if lost is not None and lost.tokens else ""


def _outcome_key(turn: TurnRecord) -> float:
    """Failures first, the gravest of them on top."""
    if turn.failed:
        return 100 - _RANK.get(turn.outcome, 50)
    return {"error": 40, "cancelled": 30, "unknown": 20}.get(turn.outcome, 0)


COLUMNS = (
    ListColumn("turn", 5, lambda item: str(item.number), lambda item: -item.number),
    ListColumn(
        "slot",
        4,
        lambda item: "-" if item.turn.slot is None else str(item.turn.slot),
        lambda item: -1 if item.turn.slot is None else -item.turn.slot,
    ),
    ListColumn(
        "task",
        6,
        lambda item: "" if item.turn.task is None else str(item.turn.task),
        lambda item: -(item.turn.task or 0),
        48,
    ),
    ListColumn("line", 7, lambda item: str(item.turn.lines[0]), lambda item: -item.turn.lines[0], 56),
    _figure("n_prompt", "prompt", 26),
    _figure("n_cached", "cached", 64),
    ListColumn("lost", 7, lambda item: _lost(item.turn), lambda item: lost_tokens(item.turn), 40),
    _figure("n_generated", "answer", 72, 6),
    ListColumn(
        "outcome",
        14,
        lambda item: f"{sign(item.turn)} {label(item.turn)}",
        lambda item: _outcome_key(item.turn),
        align="left",
    ),
)


class TurnList(RowList):
    """The turns that the filters let through, one a row."""

    class Sorted(Message):
        """The order was changed; ``name`` is the column it goes by."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    HEAD = 1

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.items: list[Numbered] = []
        self.order = "turn"
        self.reverse_order = False
        self.several_slots = False
        self.nothing = ""

    @property
    def n_rows(self) -> int:
        return len(self.items)

    def empty_text(self) -> str:
        return self.nothing

    def show(self, items: Sequence[Numbered], selected: int | None, several_slots: bool) -> None:
        """Show these turns, in the chosen order, the cursor on turn number ``selected`` if it is there."""
        self.several_slots = several_slots
        if self.order == "turn":  # as they come
            self.items = list(items)
        else:
            column = next(column for column in COLUMNS if column.name == self.order)
            self.items = sorted(items, key=lambda item: (-column.key(item), item.number))
        if self.reverse_order:
            self.items.reverse()
        self.changed()
        self.point_at(selected)

    def point_at(self, number: int | None) -> None:
        """The cursor on a turn, by its number; it stays where it is if that turn is filtered out."""
        if number is None:
            return
        if self.order == "turn" and not self.reverse_order:
            index = bisect_left(self.items, number, key=lambda item: item.number)
        else:
            index = next((at for at, item in enumerate(self.items) if item.number == number), len(self.items))
        if index < len(self.items) and self.items[index].number == number:
            self.go(index, centre=True)

    def columns(self, width: int) -> list[ListColumn]:
        """The columns there is room for."""
        chosen = [
            column
            for column in COLUMNS
            if width >= column.from_width and (column.name != "slot" or self.several_slots)
        ]
        # the last one, the outcome, takes what is left
        rest = width - sum(column.width + 1 for column in chosen[:-1])
        return [*chosen[:-1], replace(chosen[-1], width=max(chosen[-1].width, rest))]

    def header(self, width: int) -> list[Segment]:
        segments = []
        for column in self.columns(width):
            mark = ("^" if self.reverse_order else "v") if column.name == self.order != "turn" else ""
            text = mark + column.name if column.align == "right" else column.name + mark
            segments.append(Segment(self._cell(text, column) + " ", self.ink("head")))
        return segments

    def row(self, index: int, width: int) -> list[Segment]:
        item = self.items[index]
        segments = []
        for column in self.columns(width):
            name = {"outcome": ink(item.turn), "lost": "lost-figure"}.get(column.name, "plain")
            style = None if name == "plain" else self.ink("failed" if name == "lost-figure" else name)
            if column.name == "lost" and not item.turn.failed:
                style = self.ink("dim")
            segments.append(Segment(self._cell(column.text(item), column) + " ", style))
        return segments

    def _cell(self, text: str, column: ListColumn) -> str:
        if column.align == "right":
            return text.rjust(column.width) if len(text) <= column.width else text[-column.width :]
        return set_cell_size(text, column.width)

    def sort_by(self, name: str) -> None:
        """Sort by a column; by the same again: the other way round."""
        self.reverse_order = self.order == name and not self.reverse_order
        self.order = name
        self.post_message(self.Sorted(name))

    def next_order(self) -> None:
        """Sort by the next column that is shown."""
        names = [column.name for column in self.columns(self.inner.width)]
        at = names.index(self.order) if self.order in names else -1
        self.order, self.reverse_order = names[(at + 1) % len(names)], False
        self.post_message(self.Sorted(self.order))

    def header_clicked(self, x: int) -> None:
        at = 0
        for column in self.columns(self.inner.width):
            at += column.width + 1
            if x < at:
                self.sort_by(column.name)
                return
