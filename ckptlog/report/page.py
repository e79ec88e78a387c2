"""Lines of text of a given width: the little layout that the text reports need.

Everything is a ``rich.text.Text``: log text in it is data, and wide characters are measured
as a terminal shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text


@cache
def _measure() -> Console:
    """Rich wants a console to wrap text; nothing is ever printed on this one."""
    return Console(color_system=None, force_terminal=False, width=80)


def wrapped(text: Text, width: int) -> list[Text]:
    """``text`` broken into lines of at most ``width`` columns, at spaces where there are any."""
    lines = text.wrap(_measure(), max(width, 8), overflow="fold", tab_size=4)
    for line in lines:
        line.rstrip()
    return list(lines) or [Text()]


class Page:
    """Collects lines; every line fits ``width`` columns and has no blanks at its end."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[Text] = []

    def blank(self) -> None:
        """An empty line, but never two in a row and none at the top."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def line(self, text: Text | str, style: str = "") -> None:
        """One line that the caller knows to fit; it is cut if it doesn't."""
        line = Text(text, style) if isinstance(text, str) else text
        line.truncate(self.width, overflow="crop")
        line.rstrip()
        self.lines.append(line)

    def para(
        self,
        text: Text | str,
        first: str = "",
        rest: int | None = None,
        style: str = "",
        limit: int | None = None,
    ) -> None:
        """A paragraph with a hanging indent: ``first`` stands before its first line, the others
        start in the same column (or ``rest``). After ``limit`` lines the rest is ``...``."""
        body = Text(text, style) if isinstance(text, str) else text
        indent = len(first) if rest is None else rest
        width = self.width - max(indent, len(first))
        parts = wrapped(body, width)
        if limit is not None and len(parts) > limit:
            parts = parts[:limit]
            parts[-1].truncate(max(width - 3, 1))
            parts[-1].append("...")
        for number, part in enumerate(parts):
            self.line(Text.assemble(first if number == 0 else " " * indent, part))

    def phrases(self, parts: Sequence[str], first: str = "", rest: int = 4, style: str = "") -> None:
        """Phrases with commas between them as a paragraph; one that fits a line is never broken over two."""
        lines = [first]
        for number, part in enumerate(parts, 1):
            phrase = part + ("," if number < len(parts) else "")
            if not lines[-1].strip():
                lines[-1] += phrase
            elif cell_len(lines[-1]) + 1 + cell_len(phrase) <= self.width:
                lines[-1] += " " + phrase
            else:
                lines.append(" " * rest + phrase)
        for line in lines:
            if cell_len(line) <= self.width:
                self.line(line, style)
            else:
                indent = len(line) - len(line.lstrip())
                self.para(line[indent:], first=line[:indent], rest=rest, style=style)

    def words(self, parts: Sequence[str], gap: str = "   ", first: str = "", style: str = "") -> None:
        """Short phrases side by side; a phrase is never broken over two lines."""
        line = first
        for part in parts:
            if line.strip() and len(line) + len(gap) + len(part) > self.width:
                self.line(line, style)
                line = " " * len(first)
            line += (gap if line.strip() else "") + part
        self.line(line, style)

    def ends(self, left: Text, right: Text) -> None:
        """``left`` and ``right`` at the two edges; ``right`` on a line of its own if they don't fit."""
        gap = self.width - left.cell_len - right.cell_len
        if gap >= 2:
            self.line(Text.assemble(left, " " * gap, right))
        else:
            self.para(left)
            self.para(right, first=" " * max(4, self.width - right.cell_len))
