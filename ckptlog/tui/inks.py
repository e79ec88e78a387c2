"""The colours of drawn widgets by name, so that the stylesheet (and with it the theme) decides them."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

NAMES = (
    # the map
    "empty", "reused", "lost", "new", "generated", "refused", "unknown", "hole", "cut",
    "live", "created", "restored", "evicted", "thinned", "superseded", "invalidated", "cleared",
    "life", "strong", "ghost", "divergence", "context", "restart", "axis", "picked",
    # words
    "failed", "fine", "other", "dim", "head", "key", "flag", "quote", "special", "differs", "match", "number",
    # rows of a list
    "cursor", "cursor-blurred", "chosen",
)  # fmt: skip

COMPONENT_CLASSES = {f"ink--{name}" for name in NAMES}


class Inked(ScrollView):
    """A widget that draws its own lines, in the inks of the stylesheet."""

    COMPONENT_CLASSES = COMPONENT_CLASSES

    def ink(self, name: str) -> Style:
        """The Rich style of an ink; only what the stylesheet says of it."""
        return self.get_component_rich_style(f"ink--{name}", partial=True)

    @property
    def inner(self) -> Size:
        """The room for lines: without the scrollbars, which ``size`` counts in."""
        return self.scrollable_content_region.size

    def line(self, y: int) -> Strip:
        """Line ``y`` of the visible part, without the widget's own colours."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        return self.line(y).adjust_cell_length(self.inner.width).apply_style(self.rich_style)
