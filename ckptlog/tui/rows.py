"""A list of many rows of which only the visible ones are made: base of the turn list, the log and others."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ckptlog.tui.inks import Inked


class RowList(Inked, can_focus=True):
    """Rows by index with a cursor; a subclass makes the row and says how many there are.

    ``Moved`` is sent when the user moves the cursor, ``Chosen`` on Enter or a second click on a row.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup,ctrl+b", "move_page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "move_page(1)", "page down", show=False),
        Binding("home", "edge(-1)", "first", show=False),
        Binding("end,G", "edge(1)", "last", show=False),
        Binding("enter", "choose", "log", key_display="enter"),
    ]

    #: how many lines at the top stay when the rest scrolls; see ``header``
    HEAD: ClassVar[int] = 0
    #: whether the cursor is seen while another pane has the keys
    KEEPS_CURSOR: ClassVar[bool] = True

    class Moved(Message):
        """The cursor was moved to a row."""

        def __init__(self, rows: RowList, index: int) -> None:
            self.rows, self.index = rows, index
            super().__init__()

        @property
        def control(self) -> RowList:
            return self.rows

    class Chosen(Moved):
        """A row was opened."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0

    # -- for subclasses

    @property
    def n_rows(self) -> int:
        raise NotImplementedError

    def row(self, index: int, width: int) -> list[Segment]:
        """The segments of a row; what goes beyond ``width`` cells is cut off."""
        raise NotImplementedError

    def header(self, width: int) -> list[Segment]:
        """The first line, where ``HEAD`` is 1."""
        return []

    def empty_text(self) -> str:
        """What stands there when there is no row."""
        return ""

    def row_ink(self, index: int) -> str | None:
        """An ink for the whole row, behind its own."""
        return None

    # -- the rest

    @property
    def room(self) -> int:
        """How many rows are visible."""
        return max(1, self.inner.height - self.HEAD)

    def changed(self) -> None:
        """The rows are others now, or more."""
        self.cursor = max(0, min(self.cursor, self.n_rows - 1))
        self.virtual_size = Size(self.row_width(), self.n_rows + self.HEAD)
        self.refresh()

    def row_width(self) -> int:
        """The width of the widest row, in cells, if the list scrolls sideways."""
        return self.inner.width

    def go(self, index: int, centre: bool = False) -> None:
        """Put the cursor on a row and bring it into view; nobody is told."""
        self.cursor = max(0, min(index, self.n_rows - 1))
        top = self.scroll_offset.y
        if centre and not top <= self.cursor < top + self.room:
            self.scroll_to(y=max(0, self.cursor - self.room // 2), animate=False, immediate=True)
        elif self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + self.room:
            self.scroll_to(y=self.cursor - self.room + 1, animate=False, immediate=True)
        self.refresh()

    def on_resize(self) -> None:
        self.changed()
        self.go(self.cursor)

    def line(self, y: int) -> Strip:
        width = self.inner.width
        if self.HEAD:
            if y == 0:
                return Strip(self.header(width))
            y -= 1
        index = self.scroll_offset.y + y
        if not self.n_rows and y == 0:
            return Strip([Segment(self.empty_text(), self.ink("dim"))])
        if index >= self.n_rows:
            return Strip.blank(width)
        left = self.scroll_offset.x
        strip = Strip(self.row(index, left + width)).crop(left, left + width)
        ink = self.row_ink(index)
        if ink is not None:
            strip = strip.apply_style(self.ink(ink))
        if index == self.cursor and (self.has_focus or self.KEEPS_CURSOR):
            # the cursor's colours win over the row's own
            style = self.ink("cursor" if self.has_focus else "cursor-blurred")
            strip = Strip(
                [Segment(text, (own or Style()) + style, control) for text, own, control in strip],
                strip.cell_length,
            )
        return strip

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _user_goes(self, index: int) -> None:
        if self.n_rows:
            self.go(index)
            self.post_message(self.Moved(self, self.cursor))

    def action_move(self, step: int) -> None:
        self._user_goes(self.cursor + step)

    def action_move_page(self, step: int) -> None:
        self._user_goes(self.cursor + step * self.room)

    def action_edge(self, side: int) -> None:
        self._user_goes(0 if side < 0 else self.n_rows - 1)

    def action_choose(self) -> None:
        if self.n_rows:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if self.HEAD and offset.y == 0:
            self.header_clicked(offset.x)
            return
        index = self.scroll_offset.y + offset.y - self.HEAD
        if index < self.n_rows:
            again = index == self.cursor and event.chain > 1
            self._user_goes(index)
            if again:
                self.action_choose()

    def header_clicked(self, x: int) -> None:
        """The first line was clicked at a cell."""
