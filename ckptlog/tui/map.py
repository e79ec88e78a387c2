"""The map: a slot's turns from left to right, token positions from bottom to top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ckptlog.report.digest import Numbered
from ckptlog.tui.columns import Column, column_of
from ckptlog.tui.glyphs import NAMES, Glyphs
from ckptlog.tui.inks import Inked
from ckptlog.tui.lanes import Lane, Life
from ckptlog.tui.raster import (
    OVER_ROWS,
    PITCHES,
    Cell,
    Frame,
    Pitch,
    column_cells,
    fitting_zoom,
    is_marked,
    restart_gap,
)
from ckptlog.tui.scale import KINDS, Kind, best_kind, make_scale, short, ticks

#: cells of the position labels on the left, with a space after them
_GUTTER = 6
#: rows under the plot: the signs of failed turns, the turns' numbers
_AXIS_ROWS = 2
#: heights from which there is a legend of one row, of two
_LEGEND_FROM_HEIGHT = (9, 13)


class TimelineMap(Inked, can_focus=True):
    """One lane as columns. ``Picked`` is sent when a column is chosen, ``Pointed`` when one is hovered."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", "previous turn", show=False),
        Binding("right,l", "step(1)", "next turn", show=False),
        Binding("up,k", "app.step_slot(-1)", "previous slot", show=False),
        Binding("down,j", "app.step_slot(1)", "next slot", show=False),
        Binding("home", "edge(-1)", "first turn", show=False),
        Binding("end,G", "edge(1)", "last turn", show=False),
        Binding("pageup", "page(-1)", "a screen to the left", show=False),
        Binding("pagedown", "page(1)", "a screen to the right", show=False),
        Binding("enter", "app.show_log", "log", key_display="enter"),
    ]

    class Picked(Message):
        """A turn was chosen on the map."""

        def __init__(self, item: Numbered) -> None:
            self.item = item
            super().__init__()

    class Pointed(Message):
        """The mouse is over a column (null: over none)."""

        def __init__(self, column: Column | None) -> None:
            self.column = column
            super().__init__()

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.lane: Lane | None = None
        #: index in the lane of the selected turn
        self.place: int | None = None
        self.zoom: int | None = None
        self.kind: Kind | None = None
        #: the checkpoints that the selected turn's finding speaks of
        self._strong: tuple[Life, ...] = ()
        self._columns: dict[int, Column] = {}
        self._cells: dict[int, list[list[Cell]]] = {}
        self._frame_key: tuple[Lane, int, Kind | None] | None = None
        self._frame_made: Frame
        #: what the cells were made for; a scrollbar that appears changes it
        self._cells_frame: Frame | None = None
        self._hovered: int | None = None
        self._then: Mapping[int, tuple[int, ...]] = {}

    # -- what is shown

    def show(self, lane: Lane | None, place: int | None) -> None:
        """Show ``lane`` with its turn ``place`` selected and in view."""
        blamed = tuple(lane.blamed(lane.turns[place].turn)) if lane is not None and place is not None else ()
        # the selected turn is only tinted; what its finding speaks of is drawn into the columns
        same = lane is self.lane and not blamed and not self._strong
        self.lane, self.place, self._strong = lane, place, blamed
        if not same:
            self._rebuild()
        self._reveal()
        self.refresh()

    def imagine(self, then: Mapping[int, tuple[int, ...]]) -> None:
        """Mark in each column what would have been cached: tokens (or a range's ends) by turn number."""
        if then != self._then:
            self._then = then
            self._rebuild()

    def set_zoom(self, step: int) -> bool:
        """Widen (-1) or narrow (1) the columns; false at the end of the range."""
        wanted = self.level + step
        if not 0 <= wanted < len(PITCHES) or (step > 0 and self.n_columns <= 1):
            return False
        self.zoom = wanted
        self._rebuild()
        self._reveal(centre=True)
        return True

    def next_scale(self) -> Kind:
        """Go to the next kind of scale and name it."""
        kind = KINDS[(KINDS.index(self.scale_kind) + 1) % len(KINDS)]
        self.kind = kind
        self._rebuild()
        return kind

    @property
    def scale_kind(self) -> Kind:
        if self.kind is not None:
            return self.kind
        return best_kind(self.lane.n_ctx, self.lane.used) if self.lane else "context"

    @property
    def level(self) -> int:
        """The index of the zoom level."""
        if self.zoom is not None:
            return self.zoom
        n_turns = len(self.lane.turns) if self.lane else 0
        return fitting_zoom(n_turns, max(1, self.inner.width - _GUTTER))

    @property
    def pitch(self) -> Pitch:
        return PITCHES[self.level]

    @property
    def n_columns(self) -> int:
        return -(-len(self.lane.turns) // self.pitch.turns) if self.lane else 0

    @property
    def _legend(self) -> int:
        """How many rows the legend has."""
        return sum(self.inner.height >= height for height in _LEGEND_FROM_HEIGHT)

    @property
    def _frame(self) -> Frame:
        lane = self.lane
        assert lane is not None
        key = (lane, self.inner.height, self.kind)
        if key != self._frame_key:
            rows = max(1, self.inner.height - _AXIS_ROWS - self._legend)
            to_context = bool(lane.n_ctx) and self.scale_kind != "used"
            over = min(OVER_ROWS if lane.refused else 1 if to_context else 0, rows - 1)
            scale = make_scale(self.scale_kind, rows - over, lane.n_ctx, lane.used)
            self._frame_key, self._frame_made = key, Frame(scale, over, to_context)
        return self._frame_made

    def column(self, index: int) -> Column:
        """The column at an index, made when it is first needed."""
        if index not in self._columns:
            lane = self.lane
            assert lane is not None
            n = self.pitch.turns
            first = index * n
            last = min(first + n, len(lane.turns)) - 1
            column = column_of(lane, first, last, self._strong, self.place)
            self._columns[index] = replace(column, then=self._then.get(column.shown.number, ()))
        return self._columns[index]

    def _cells_of(self, index: int) -> list[list[Cell]]:
        frame = self._frame
        if frame != self._cells_frame:
            self._cells.clear()
            self._cells_frame = frame
        if index not in self._cells:
            cells = column_cells(self.column(index), frame, self.pitch, self.glyphs)
            if self.pitch.gap and index + 1 < self.n_columns and self.column(index + 1).restart:
                cells = restart_gap(cells, self.glyphs)
            self._cells[index] = cells
        return self._cells[index]

    def _rebuild(self) -> None:
        self._columns.clear()
        self._cells.clear()
        self.virtual_size = Size(_GUTTER + self.n_columns * self.pitch.width, self.inner.height)
        self.refresh()

    def on_resize(self) -> None:
        self._rebuild()
        self._reveal()

    def _reveal(self, centre: bool = False) -> None:
        """Scroll so that the selected column is in view."""
        if self.place is None or not self.inner.width:
            return
        x = self.place // self.pitch.turns * self.pitch.width
        room = max(1, self.inner.width - _GUTTER)
        left = self.scroll_offset.x
        if centre or x < left or x + self.pitch.width > left + room:
            self.scroll_to(x=max(0, x - room // 2), animate=False, immediate=True)

    # -- drawing

    def line(self, y: int) -> Strip:
        if self.lane is None or not self.lane.turns:
            return Strip.blank(self.inner.width)
        frame = self._frame
        if y < frame.rows:
            segments = self._plot_row(frame, frame.rows - 1 - y)
        elif y == frame.rows:
            segments = self._sign_row()
        elif y == frame.rows + 1:
            segments = self._number_row()
        else:
            segments = self._legend_row(y - frame.rows - _AXIS_ROWS)
        return Strip(segments)

    def _visible(self) -> range:
        width = self.pitch.width
        left = self.scroll_offset.x
        room = max(0, self.inner.width - _GUTTER)
        return range(left // width, min(self.n_columns, -(-(left + room) // width)))

    @property
    def _picked(self) -> int | None:
        return None if self.place is None else self.place // self.pitch.turns

    def _plot_row(self, frame: Frame, row: int) -> list[Segment]:
        body: list[tuple[Cell, bool]] = []
        chosen, pitch = self._picked, self.pitch
        for index in self._visible():
            cells = self._cells_of(index)[row]
            picked = index == chosen
            body += [(cell, picked and x < pitch.body) for x, cell in enumerate(cells)]
        skip = self.scroll_offset.x % pitch.width
        shown = body[skip : skip + max(0, self.inner.width - _GUTTER)]
        segments = [self._label(frame, row)]
        # neighbours of one look are one segment
        for (ink, under, picked), run in groupby(shown, lambda pair: (pair[0].ink, pair[0].under, pair[1])):
            style = self.ink(ink)
            if under:
                style += Style(bgcolor=self.ink(under).color)
            if picked:
                # a part's own background stays: only the empty cells of the selected column are tinted
                style = self.ink("picked") + style
            segments.append(Segment("".join(cell.char for cell, _ in run), style))
        return segments

    def _label(self, frame: Frame, row: int) -> Segment:
        """The position label of a row: where the prompts part, the context, or a round number."""
        text, ink = "", "axis"
        if self._picked is not None and self._picked < self.n_columns:
            parts_at = self.column(self._picked).divergence
            if parts_at is not None and frame.scale.row(parts_at) == row:
                text, ink = short(parts_at), "divergence"
        if not text and frame.to_context and row == frame.scale.rows:
            text = short(frame.scale.top)
        if not text and row < frame.scale.rows - frame.to_context:
            text = ticks(frame.scale).get(row, "")
        return Segment(f"{text:>{_GUTTER - 1}} ", self.ink(ink))

    def _sign_row(self) -> list[Segment]:
        line: list[Segment] = []
        for index in self._visible():
            turn = self.column(index).shown.turn
            bad = turn.failed or turn.outcome == "error"
            mark = "!" if bad else " "
            text = mark.center(self.pitch.body) if self.pitch.body > 1 else mark
            if index == self._picked:
                arrow = self.glyphs.cursor if not bad else "!"
                text = arrow.center(self.pitch.body)
            line.append(
                Segment(
                    text,
                    self.ink("failed" if bad else "axis")
                    + (self.ink("picked") if index == self._picked else Style()),
                )
            )
            if self.pitch.gap:
                line.append(Segment(" " * self.pitch.gap))
        return [Segment(" " * _GUTTER), *self._cropped(line)]

    def _number_row(self) -> list[Segment]:
        """Turn numbers: the selected turn's, failed ones', then every few columns, as far as there is room."""
        visible = self._visible()
        width = len(visible) * self.pitch.width + 8
        row: list[Cell] = [Cell(" ", "axis")] * width

        def put(index: int, ink: str) -> None:
            text = str(self.column(index).shown.number)
            middle = (index - visible.start) * self.pitch.width + (self.pitch.body - 1) // 2
            start = max(0, middle - (len(text) - 1) // 2)
            around = row[max(0, start - 1) : start + len(text) + 1]
            if all(cell.char == " " for cell in around) and start + len(text) <= width:
                row[start : start + len(text)] = [Cell(char, ink) for char in text]

        if self._picked is not None and self._picked in visible:
            put(self._picked, "number")
        for index in visible:
            turn = self.column(index).shown.turn
            if turn.failed or turn.outcome == "error":
                put(index, "failed")
        for index in visible:
            put(index, "axis")
        segments = [
            Segment("".join(cell.char for cell in run), self.ink(ink))
            for ink, run in groupby(row, lambda cell: cell.ink)
        ]
        return [Segment("turn".rjust(_GUTTER - 1) + " ", self.ink("axis")), *self._cropped(segments)]

    def _cropped(self, segments: list[Segment]) -> list[Segment]:
        skip = self.scroll_offset.x % self.pitch.width
        return list(Strip(segments).crop(skip, skip + max(0, self.inner.width - _GUTTER)))

    def _legend_row(self, row: int) -> list[Segment]:
        """What the characters mean, of those that this stretch of the map has, on up to two rows."""
        rows: list[list[Segment]] = [[]]
        used = 0
        for name in self._present():
            text = f" {NAMES[name]}  "
            if used + 1 + len(text.rstrip()) > self.inner.width - 1:
                rows.append([])
                used = 0
            rows[-1] += [Segment(getattr(self.glyphs, name), self.ink(name)), Segment(text, self.ink("dim"))]
            used += 1 + len(text)
        return [Segment(" "), *rows[row]] if row < len(rows) else []

    def _present(self) -> list[str]:
        """The parts and marks that the visible columns have, in the legend's order."""
        present: set[str] = set()
        for index in self._visible():
            column = self.column(index)
            present.update(part.kind for part in column.parts)
            present.update(mark.kind for mark in column.marks if is_marked(mark, self.pitch))
            present.update(
                name
                for name, there in (
                    ("hole", bool(column.holes)),
                    ("cut", column.cut),
                    ("divergence", column.divergence is not None),
                    ("whatif", bool(column.then)),
                )
                if there
            )
        return [name for name in NAMES if name in present]

    # -- keys and mouse

    def _pick(self, place: int) -> None:
        if self.lane and self.lane.turns:
            place = max(0, min(place, len(self.lane.turns) - 1))
            self.post_message(self.Picked(self.lane.turns[place]))

    def action_step(self, step: int) -> None:
        n = self.pitch.turns
        if self.place is None:
            self._pick(0)
        elif n == 1:
            self._pick(self.place + step)
        else:
            self._pick_column(self.place // n + step)

    def _pick_column(self, index: int) -> None:
        """Select the worst turn of a column."""
        if self.lane and 0 <= index < self.n_columns:
            self._pick(self.lane.index[self.column(index).shown.number])

    def action_edge(self, side: int) -> None:
        self._pick(0 if side < 0 else len(self.lane.turns) - 1 if self.lane else 0)

    def action_page(self, step: int) -> None:
        columns = max(1, (self.inner.width - _GUTTER) // self.pitch.width - 1)
        self._pick((self.place or 0) + step * columns * self.pitch.turns)

    def column_at(self, x: int, y: int) -> int | None:
        """The index of the column at a place inside the widget."""
        if self.lane is None or x < _GUTTER or y >= self._frame.rows + _AXIS_ROWS:
            return None
        index = (x - _GUTTER + self.scroll_offset.x) // self.pitch.width
        return index if index < self.n_columns else None

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        index = None if offset is None else self.column_at(offset.x, offset.y)
        if index is not None:
            self._pick_column(index)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        offset = event.get_content_offset(self)
        index = None if offset is None else self.column_at(offset.x, offset.y)
        if index != self._hovered:
            self._hovered = index
            self.post_message(self.Pointed(None if index is None else self.column(index)))

    def on_leave(self) -> None:
        self._hovered = None
        self.post_message(self.Pointed(None))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        """The wheel goes along the turns; with Ctrl it zooms."""
        event.stop()
        event.prevent_default()
        if event.ctrl:
            self.set_zoom(step)
        else:
            self.scroll_relative(x=step * max(4, self.pitch.width), animate=False, immediate=True)
