"""The characters the map and the lists are drawn with: one set for Unicode, one for plain ASCII.

Every part of a turn and every fate of a checkpoint has its own shape, so that nothing is told by
colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptlog.records import FAILURES, HEALTHY, TurnRecord
from ckptlog.report.safe import safe_text


@dataclass(frozen=True)
class Glyphs:
    """One character for each thing that is drawn."""

    ascii: bool
    # parts of a turn, from token 0 upwards
    reused: str
    lost: str
    new: str
    generated: str
    refused: str = "!"
    unknown: str = "?"
    hole: str = ":"
    beyond: str = "^"  # a refused prompt that is longer than the map is high
    whatif: str = "*"  # what would have been cached with other flags
    cut: str = "#"  # where the full context ended an answer
    # checkpoints
    live: str = "o"
    created: str = "O"
    restored: str = "R"
    evicted: str = "X"
    thinned: str = "t"
    superseded: str = "s"
    invalidated: str = "i"
    cleared: str = "c"
    # lines
    life: str = "-"
    ghost: str = "~"  # where a checkpoint would have been needed, after its death
    divergence: str = ">"
    context: str = "_"
    restart: str = "|"
    cursor: str = "^"
    # lists
    more: str = "..."
    pointer: str = ">"
    bar_start: str = "["
    bar_end: str = ">"
    # whitespace made visible in prompt texts
    space: str = "_"
    newline: str = "\\n"
    tab: str = "\\t"

    def text(self, text: str) -> str:
        """Log text made harmless for the terminal, and ASCII where only that can be shown."""
        shown = safe_text(text)
        return shown.encode("ascii", "backslashreplace").decode("ascii") if self.ascii else shown


ASCII = Glyphs(ascii=True, reused="=", lost="x", new=".", generated="+")

UNICODE = Glyphs(
    ascii=False,
    reused="█",
    lost="╳",
    new="▒",
    generated="░",
    hole="┊",
    beyond="▲",
    cut="▀",
    live="○",
    created="●",
    restored="◆",
    evicted="✕",
    life="─",
    ghost="┄",
    divergence="►",
    context="┄",
    restart="│",
    cursor="▲",
    more="…",
    pointer="▸",
    bar_start="├",
    bar_end="▶",
    space="·",
    newline="↵",
    tab="⇥",
)

#: what each part and mark is called in the legend
NAMES = {
    "reused": "cached",
    "lost": "lost",
    "new": "new",
    "generated": "answer",
    "refused": "refused",
    "unknown": "not told",
    "hole": "deleted",
    "cut": "cut short",
    "live": "kept",
    "created": "made",
    "restored": "restored",
    "evicted": "evicted",
    "thinned": "thinned",
    "superseded": "superseded",
    "invalidated": "invalidated",
    "cleared": "cleared",
    "divergence": "parts here",
    "whatif": "cached then",
}


def sign(turn: TurnRecord) -> str:
    """One character before an outcome: ``!`` failed, ``~`` harmless, ``x`` ended early, ``?`` unknown."""
    if turn.failed:
        return "!"
    if turn.outcome in FAILURES:
        return "~"
    if turn.outcome == "error":
        return "!"
    if turn.outcome == "cancelled":
        return "x"
    if turn.outcome == "unknown":
        return "?"
    return " "


def ink(turn: TurnRecord) -> str:
    """The name of the colour that an outcome's word is written in."""
    if turn.failed or turn.outcome == "error":
        return "failed"
    if turn.outcome in HEALTHY:
        return "fine"
    return "other"
