"""A turn as a row of characters: reused, processed again, new and generated, as proportions."""

from __future__ import annotations

from typing import NamedTuple

from ckptlog.records import TurnRecord
from ckptlog.report.loss import loss

CACHED, LOST, NEW, GENERATED, UNKNOWN = "=", "x", ".", "+", "?"

LEGEND = f"from cache {CACHED}  lost {LOST}  new {NEW}  answer {GENERATED}"


class Piece(NamedTuple):
    """``width`` characters ``glyph`` standing for ``tokens`` tokens."""

    glyph: str
    tokens: int
    width: int


def pieces(turn: TurnRecord) -> list[tuple[str, int]]:
    """The parts of a turn in tokens, in the order of the prompt; a part that is 0 is left out.

    ``lost`` is what was processed although the server held it (the least it can have been), ``new`` the rest of what was
    processed. A prompt whose reuse the log does not tell is one piece ``?``.
    """
    parts: list[tuple[str, int]]
    if turn.n_cached is None or turn.n_processed is None:
        parts = [(UNKNOWN, turn.n_prompt or 0)]
    else:
        known = loss(turn)
        lost = min(known.tokens, turn.n_processed) if known is not None else 0
        parts = [(CACHED, turn.n_cached), (LOST, lost), (NEW, turn.n_processed - lost)]
    parts.append((GENERATED, turn.n_generated or 0))
    return [(glyph, tokens) for glyph, tokens in parts if tokens > 0]


def picture(turn: TurnRecord, width: int) -> list[Piece]:
    """The parts scaled to exactly ``width`` characters; each part that exists gets at least one."""
    parts = pieces(turn)
    if not parts or width < len(parts):
        return []
    total = sum(tokens for _, tokens in parts)
    shares = [tokens * width / total for _, tokens in parts]
    widths = [max(1, int(share)) for share in shares]
    # hand out what rounding left over, or take back what the minimum of one cost
    while (missing := width - sum(widths)) != 0:
        step = 1 if missing > 0 else -1
        able = [index for index in range(len(parts)) if step > 0 or widths[index] > 1]
        index = max(able, key=lambda i: step * (shares[i] - widths[i]))
        widths[index] += step
    return [Piece(glyph, tokens, size) for (glyph, tokens), size in zip(parts, widths, strict=True)]
