"""Text to lines of a width in cells: wide characters count two."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells


def wrapped(text: str, width: int) -> list[str]:
    """``text`` (one line, already safe) in lines of at most ``width`` cells, broken at spaces if possible."""
    width = max(1, width)
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        candidate = f"{current} {word}" if current else word
        if cell_len(candidate) <= width:
            current = candidate
            continue
        if current:
            lines.append(current)
        pieces = chop_cells(word, width) if cell_len(word) > width else [word]
        lines += pieces[:-1]
        current = pieces[-1] if pieces else ""
    if current or not lines:
        lines.append(current)
    return lines
