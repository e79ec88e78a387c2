"""The catalogue of outcomes, variants, causes, triggers, fixes and words, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ckptlog.report.page import Page

if TYPE_CHECKING:
    from ckptlog.verdict.catalogue import Entry

_KINDS = {
    "outcome": "Outcomes",
    "variant": "Variants",
    "cause": "Causes",
    "trigger": "Triggers",
    "fix": "Fixes",
    "word": "Words",
}


def render_listing(entries: Sequence[Entry], width: int) -> list[Text]:
    """Every name with its title, by kind."""
    page = Page(width)
    column = max((len(entry.name) for entry in entries), default=0)
    for kind, heading in _KINDS.items():
        rows = [entry for entry in entries if entry.kind == kind]
        if not rows:
            continue
        page.blank()
        page.line(Text(heading, "bold"))
        for entry in rows:
            page.para(entry.title, first=f"  {entry.name:<{column}}  ")
    return page.lines


def render_entries(entries: Sequence[Entry], width: int) -> list[Text]:
    """Each entry's text and example in full."""
    page = Page(width)
    for entry in entries:
        page.blank()
        page.line(Text.assemble((entry.name, "bold"), f"  ({entry.kind})"))
        page.para(entry.title)
        page.blank()
        _text(page, entry.text)
        if entry.example:
            page.blank()
            page.line(Text("Example", "bold"))
            _text(page, entry.example, indent="  ")
    return page.lines


def _text(page: Page, text: str, indent: str = "") -> None:
    """Paragraphs are filled to the width; indented lines (log lines, lists) stay lines."""
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            page.para(" ".join(paragraph), first=indent)
            paragraph.clear()

    for line in text.strip("\n").splitlines():
        if not line.strip():
            flush()
            page.blank()
        elif line[0].isspace() or line.startswith(("- ", "* ")):
            flush()
            lead = indent + line[: len(line) - len(line.lstrip())]
            page.para(line.strip(), first=lead, rest=len(lead) + 2)
        else:
            paragraph.append(line.strip())
    flush()
