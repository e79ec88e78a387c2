"""Small widgets: a pane of text, the bar of tabs, the line to type into, a sheet over the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, ScrollableContainer, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.scrollbar import ScrollBarRender
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Label, Static

_SCROLL_KEYS: list[BindingType] = [
    Binding("k", "scroll_up", "up", show=False),
    Binding("j", "scroll_down", "down", show=False),
    Binding("G", "scroll_end", "end", show=False),
]


class AsciiScrollBar(ScrollBarRender):
    """A scrollbar without the block characters of its rounded ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def ascii_scrollbars(screen: Screen[Any]) -> None:
    """Give everything on a screen that scrolls the plain scrollbars."""
    for widget in screen.query(ScrollableContainer):
        widget.vertical_scrollbar.renderer = AsciiScrollBar  # type: ignore[misc]
        widget.horizontal_scrollbar.renderer = AsciiScrollBar  # type: ignore[misc]


def fitting(widget: Widget, text: str) -> str:
    """As much of a text as fits into a widget's border: whole parts between commas, if possible."""
    if not widget.outer_size.width:  # not laid out yet
        return text
    room = max(0, widget.outer_size.width - 6)
    while len(text) > room and ", " in text:
        text = text.rpartition(", ")[0]
    return text[:room]


class Labelled(NamedTuple):
    """Text behind a label, which stays in front of it however it is wrapped; ``label`` ends with its spaces."""

    label: Content
    text: Content

    def wrapped(self, width: int) -> list[Content]:
        """In lines of ``width`` cells."""
        indent = self.label.cell_length
        if width <= 2 * indent:
            return [self.label + self.text]
        first, *more = self.text.wrap(width - indent) or [Content("")]
        return [self.label + first, *(part.pad_left(indent) for part in more)]


class TextPane(VerticalScroll):
    """Text that scrolls, also with ``j`` and ``k``."""

    BINDINGS: ClassVar[list[BindingType]] = _SCROLL_KEYS

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    _lines: Sequence[Content | Labelled] = ()

    def show(self, lines: Sequence[Content | Labelled]) -> None:
        self._lines = lines
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        parts: list[Content] = []
        for line in self._lines:
            parts += line.wrapped(width) if isinstance(line, Labelled) else [line]
        self.query_one(Static).update(Content("\n").join(parts))


class TabBar(Static):
    """The names of the tabs on one line, the current one in brackets; a click changes it."""

    def __init__(self, names: Sequence[str], id: str | None = None) -> None:
        super().__init__(markup=False, id=id)
        self.names = list(names)
        self.current = self.names[0]
        self.titles: dict[str, str] = {}

    def on_mount(self) -> None:
        self.show(self.current)

    def show(self, current: str, **titles: str) -> None:
        """Mark a tab as the current one; ``titles`` replaces the words of some."""
        self.current = current
        self.titles.update(titles)
        parts = []
        # what has no tab of its own shows its name while it is open
        names = self.names if current in self.names else [*self.names, current]
        for name in names:
            title = self.titles.get(name, name)
            style = "bold $text-accent reverse" if name == current else "$text-muted"
            text = f"[{title}]" if name == current else f" {title} "
            click = Style.from_meta({"@click": f"app.show_tab('{name}')"})
            parts.append(Content.styled(text, style).stylize(click))
        self.update(Content(" ").join(parts))


class Prompt(Horizontal):
    """A line to type into, with a hint below; open only while something is asked."""

    class Asked(Message):
        """Something was typed; ``final`` when it was entered."""

        def __init__(self, kind: str, text: str, final: bool) -> None:
            self.kind, self.text, self.final = kind, text, final
            super().__init__()

    class Closed(Message):
        """It was left without an answer."""

        def __init__(self, kind: str) -> None:
            self.kind = kind
            super().__init__()

    DEFAULT_CSS = "Prompt { layout: vertical; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "close", show=False)]

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.kind = ""

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(markup=False)
            yield Input()
        yield Static(markup=False, id="hint")

    def open(self, kind: str, label: str, hint: str, value: str = "") -> None:
        self.kind = kind
        self.add_class("-open")
        self.query_one(Label).update(Content(label))
        self.hint(Content(hint))
        field = self.query_one(Input)
        with self.prevent(Input.Changed):
            field.value = value
        field.cursor_position = len(value)
        field.focus()

    def hint(self, content: Content) -> None:
        self.query_one("#hint", Static).update(content)

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def close(self) -> None:
        self.remove_class("-open")

    def action_close(self) -> None:
        self.close()
        self.post_message(self.Closed(self.kind))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.post_message(self.Asked(self.kind, event.value, False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Asked(self.kind, event.value, True))


class Sheet(ModalScreen[None]):
    """Text over the screen, until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,w", "dismiss", "close"),
        *_SCROLL_KEYS,
    ]

    def __init__(self, title: str, lines: Sequence[Content | Labelled]) -> None:
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        pane = TextPane(id="sheet")
        yield pane

    def on_resize(self) -> None:
        pane = self.query_one(TextPane)
        pane.border_title = Content(fitting(pane, self._title))
        pane.border_subtitle = Content(fitting(pane, "esc closes"))

    def on_mount(self) -> None:
        if self.app.has_class("-ascii"):
            self.add_class("-ascii")
            ascii_scrollbars(self)
        self.query_one(TextPane).show(self._lines)
        self.query_one(TextPane).focus()

    def action_scroll_up(self) -> None:
        self.query_one(TextPane).scroll_up()

    def action_scroll_down(self) -> None:
        self.query_one(TextPane).scroll_down()

    def action_scroll_end(self) -> None:
        self.query_one(TextPane).scroll_end()
