"""Columns to cells: which character, in which ink, stands on which row of the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ckptlog.tui.columns import Column, Mark, Part
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.scale import Scale

#: rows above the context's line in which refused prompts rise
OVER_ROWS = 2

#: checkpoints that are marked even where a mark hides the column
_ALWAYS_MARKED = frozenset({"restored", "evicted"})


class Cell(NamedTuple):
    """One character and the name of its colour (see ``ink--*`` in style.tcss).

    ``under`` is the ink of a solid part that the character stands on.
    """

    char: str
    ink: str
    under: str = ""


EMPTY = Cell(" ", "empty")


@dataclass(frozen=True)
class Pitch:
    """How wide a column is: ``body`` cells and ``gap`` cells after them, for ``turns`` turns."""

    body: int
    gap: int
    turns: int = 1

    @property
    def width(self) -> int:
        return self.body + self.gap


#: the zoom levels, from one turn a screen to hundreds of turns a column
PITCHES = (
    Pitch(16, 4),
    Pitch(12, 3),
    Pitch(8, 2),
    Pitch(6, 2),
    Pitch(4, 2),
    Pitch(3, 1),
    Pitch(2, 1),
    Pitch(1, 1),
    *(Pitch(1, 0, 2**power) for power in range(12)),
)
#: the narrowest pitch that is chosen without being asked for
_NARROWEST_OWN = 5


@lru_cache(maxsize=64)
def fitting_zoom(n_turns: int, width: int) -> int:
    """The index of the widest pitch at which all turns are visible; a readable one if none does."""
    for index, pitch in enumerate(PITCHES[: _NARROWEST_OWN + 1]):
        if n_turns * pitch.width <= width:
            return index
    return _NARROWEST_OWN


@dataclass(frozen=True)
class Frame:
    """The rows of the map: ``scale.rows`` for the context, ``over`` above its line."""

    scale: Scale
    over: int
    #: whether the top of the scale is the context's size
    to_context: bool

    @property
    def rows(self) -> int:
        return self.scale.rows + self.over


def is_marked(mark: Mark, pitch: Pitch) -> bool:
    """Whether a checkpoint is marked in columns of this width."""
    return pitch.body > 1 or mark.strong or mark.kind in _ALWAYS_MARKED


def column_cells(column: Column, frame: Frame, pitch: Pitch, glyphs: Glyphs) -> list[list[Cell]]:
    """The cells of one column with its gap: a list by row from the bottom, each ``pitch.width`` long."""
    canvas = [[EMPTY] * pitch.width for _ in range(frame.rows)]
    _context_line(canvas, column, frame, pitch, glyphs)
    for part in _in_drawing_order(column.parts):
        _fill(canvas, part, column, frame, pitch, glyphs)
    for hole in column.holes:
        low, high = frame.scale.span(*hole)
        for row in range(low, max(high, low + 1)):
            _body(canvas, row, pitch, Cell(glyphs.hole, "hole"))
    if column.cut and column.parts:
        top = frame.scale.row(max(part.high for part in column.parts) - 1)
        _body(canvas, top, pitch, Cell(glyphs.cut, "cut"))
    _lifelines(canvas, column, frame, pitch, glyphs)
    for mark in column.marks:
        if not is_marked(mark, pitch):
            continue
        row = frame.scale.row(mark.n_tokens)
        ink = mark.kind if not mark.strong else "strong"
        middle = (pitch.body - 1) // 2
        if mark.strong and mark.kind != "created":
            canvas[row][:middle] = [Cell(glyphs.life, "strong")] * middle
        under = canvas[row][middle].ink
        canvas[row][middle] = Cell(
            getattr(glyphs, mark.kind), ink, under if under == "reused" and not glyphs.ascii else ""
        )
    if column.divergence is not None:
        row = frame.scale.row(column.divergence)
        place = (pitch.body - 1) // 2 if pitch.body < 3 else 0
        canvas[row][place] = Cell(glyphs.divergence, "divergence")
    for position in column.then:
        n = 2 if pitch.body > 3 else 1
        row_then = canvas[frame.scale.row(position)]
        row_then[pitch.body - n : pitch.body] = [Cell(glyphs.whatif, "whatif")] * n
    return canvas


def restart_gap(cells: list[list[Cell]], glyphs: Glyphs) -> list[list[Cell]]:
    """A column's cells with a vertical line at its right edge: the server starts anew after it."""
    return [[*row[:-1], Cell(glyphs.restart, "restart")] for row in cells]


def _in_drawing_order(parts: Sequence[Part]) -> list[Part]:
    """The lost part last: it must be seen, however small."""
    return sorted(parts, key=lambda part: part.kind == "lost")


def _fill(
    canvas: list[list[Cell]], part: Part, column: Column, frame: Frame, pitch: Pitch, glyphs: Glyphs
) -> None:
    low, high = frame.scale.span(part.low, part.high)
    cell = Cell(getattr(glyphs, part.kind), part.kind)
    if part.kind == "refused":
        _refused(canvas, column, frame, pitch, glyphs)
        return
    # something that exists is at least one row high; a loss only if it counts
    if column.shown.turn.failed if part.kind == "lost" else part.low == 0:
        high = max(high, low + 1)
    for row in range(min(low, frame.scale.rows - 1), min(high, frame.scale.rows)):
        _body(canvas, row, pitch, cell)


def _refused(canvas: list[list[Cell]], column: Column, frame: Frame, pitch: Pitch, glyphs: Glyphs) -> None:
    """A refused prompt rises over the context's line: a little over it one row, far over it all."""
    ratio = column.refused_ratio or 1.0
    above = 1 if ratio <= 1.1 else frame.over
    for row in range(frame.scale.rows + above):
        _body(canvas, row, pitch, Cell(glyphs.refused, "refused"))
    if ratio > 1.1 and frame.over:
        _body(canvas, frame.rows - 1, pitch, Cell(glyphs.beyond, "refused"))


def _context_line(
    canvas: list[list[Cell]], column: Column, frame: Frame, pitch: Pitch, glyphs: Glyphs
) -> None:
    """The upper edge of the context, in the first row above it."""
    if frame.to_context and frame.over:
        canvas[frame.scale.rows] = [Cell(glyphs.context, "context")] * pitch.width


def _lifelines(canvas: list[list[Cell]], column: Column, frame: Frame, pitch: Pitch, glyphs: Glyphs) -> None:
    for line in column.lines:
        row = canvas[frame.scale.row(line.n_tokens)]
        if line.ghost:
            cell = Cell(glyphs.ghost, "ghost")
        else:
            cell = Cell(glyphs.life, "strong" if line.strong else "life")
        for x in range(pitch.body, pitch.width):
            row[x] = cell
        if line.strong:
            # a line that the finding speaks of goes through the columns, too
            for x in range((pitch.body - 1) // 2 + 1, pitch.body):
                row[x] = cell
            if line.ghost:
                row[: pitch.body] = [cell] * pitch.body


def _body(canvas: list[list[Cell]], row: int, pitch: Pitch, cell: Cell) -> None:
    if 0 <= row < len(canvas):
        canvas[row][: pitch.body] = [cell] * pitch.body
