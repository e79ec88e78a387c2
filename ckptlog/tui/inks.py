"""The colours of drawn widgets by name, so that the stylesheet (and with it the theme) decides them."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

NAMES = (
    # the map
    "empty", "reused", "lost", "new", "generated", "refused", "unknown", "hole", "cut",
    "live", "created", "restored", "evicted", "thinned", "superseded", "invalidated", "cleared",
    "life", "strong", "ghost", "divergence", "whatif", "context", "restart", "axis", "picked",
    # words
    "failed", "fine", "other", "dim", "head", "key", "flag", "quote", "special", "differs", "match", "number",
    # rows of a list
    "cursor", "cursor-blurred", "chosen",
)  # fmt: skip


class InkWell(Widget):
    """Holds the inks for all drawn widgets, unseen: resolving so many for each of them would cost a
    noticeable part of the start and of every change of focus."""

    DEFAULT_CSS = "InkWell { display: none; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"ink--{name}" for name in NAMES}

    def style(self, name: str) -> Style:
        """The Rich style of an ink; only what the stylesheet says of it."""
        return self.get_component_rich_style(f"ink--{name}", partial=True)


class Inked(ScrollView):
    """A widget that draws its own lines, in the inks of the stylesheet."""

    _well: InkWell | None = None
    #: ``inner`` while a line is drawn: it is asked for often and dear to find out
    _inner: Size | None = None

    def ink(self, name: str) -> Style:
        """The Rich style of an ink."""
        if self._well is None:
            self._well = self.app.screen_stack[0].query_one(InkWell)
        return self._well.style(name)

    @property
    def inner(self) -> Size:
        """The room for lines: without the scrollbars, which ``size`` counts in."""
        return self._inner or self.scrollable_content_region.size

    def line(self, y: int) -> Strip:
        """Line ``y`` of the visible part, without the widget's own colours."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        return self.line(y).adjust_cell_length(self.inner.width).apply_style(self.rich_style)
