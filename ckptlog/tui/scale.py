"""From token positions to rows: linear to the context's size, linear to what is used, or logarithmic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["context", "used", "log"]
KINDS: tuple[Kind, ...] = ("context", "used", "log")

#: below this share of the context the linear scale would press a conversation into a few rows
_WELL_USED = 0.4


@dataclass(frozen=True)
class Scale:
    """``rows`` rows (row 0 at the bottom) for the positions 0 to ``top`` (tokens)."""

    kind: Kind
    top: int
    rows: int

    def share(self, n_tokens: float) -> float:
        """The height of a position, 0 to 1; beyond ``top`` it is 1."""
        if n_tokens <= 0:
            return 0.0
        if n_tokens >= self.top:
            return 1.0
        if self.kind == "log":
            unit = max(1.0, self.top / 256)
            return math.log1p(n_tokens / unit) / math.log1p(self.top / unit)
        return n_tokens / self.top

    def row(self, n_tokens: float) -> int:
        """The row that a position lies in."""
        return min(self.rows - 1, int(self.share(n_tokens) * self.rows))

    def span(self, low: int, high: int) -> tuple[int, int]:
        """The half-open range of rows whose middle lies in the positions ``low`` to ``high``."""
        return round(self.share(low) * self.rows), round(self.share(high) * self.rows)

    def tokens(self, row: int) -> int:
        """The position at a row's lower edge."""
        share = row / self.rows
        if self.kind == "log":
            unit = max(1.0, self.top / 256)
            return round(unit * math.expm1(share * math.log1p(self.top / unit)))
        return round(share * self.top)


def make_scale(kind: Kind, rows: int, n_ctx: int | None, used: int) -> Scale:
    """A scale for a slot of ``n_ctx`` tokens of which at most ``used`` are in use.

    Without a known context the used part is all there is.
    """
    if kind == "used" or not n_ctx:
        top = max(used, 1)
        if n_ctx:
            top = min(max(n_ctx, 1), math.ceil(top * 1.05))
        return Scale("log" if kind == "log" else "used", max(1, top), max(1, rows))
    return Scale(kind, max(1, n_ctx), max(1, rows))


def best_kind(n_ctx: int | None, used: int) -> Kind:
    """The scale that shows a slot best when nothing was chosen yet."""
    return "context" if n_ctx and used >= n_ctx * _WELL_USED else "used"


def short(n_tokens: int) -> str:
    """A position in at most five characters: ``640``, ``8.6k``, ``65k``, ``1.0M``."""
    if n_tokens < 1000:
        return str(n_tokens)
    if n_tokens < 9_950:
        return f"{n_tokens / 1000:.1f}k"
    if n_tokens < 999_500:
        return f"{n_tokens / 1000:.0f}k"
    return f"{n_tokens / 1_000_000:.1f}M"


@lru_cache(maxsize=16)
def ticks(scale: Scale, every: int = 3) -> dict[int, str]:
    """Labels for the axis by row, at round positions about ``every`` rows apart."""
    labels: dict[int, str] = {0: "0"}
    last = 0
    for row in range(1, scale.rows):
        if row - last < every:
            continue
        low, high = scale.tokens(row), scale.tokens(row + 1)
        value = _roundest(low, high)
        if value is not None:
            labels[row] = short(value)
            last = row
    return labels


def _roundest(low: int, high: int) -> int | None:
    """The roundest number in the half-open range; null if none is round."""
    step = int(10 ** max(0, len(str(max(high, 1))) - 1))
    while step >= 1:
        for unit in (step, step // 2, step // 5):
            if unit >= 1:
                value = -(-low // unit) * unit
                if low <= value < high:
                    return value
        step //= 10
    return None
