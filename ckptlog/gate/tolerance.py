"""How much worse than the baseline a figure may be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ckptlog.report.compare import METRICS

#: what may stand in ``max_regression``
METRIC_NAMES = tuple(name for name, better in METRICS.items() if better != "neither")

#: a baseline without ``max_regression``: times are noise on shared machines and are left out
DEFAULT: dict[str, float | int | str] = {
    "failed": 0,
    "error": 0,
    "unknown": 0,
    "reuse": 0.01,
    "n_lost": "10%",
}

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Tolerance:
    """``amount`` in the metric's own unit, or as a fraction of the old value if ``relative``."""

    amount: float
    relative: bool

    def allows(self, old: float, new: float, better: Literal["less", "more"]) -> bool:
        """Whether ``new`` is no more than this much worse than ``old``."""
        worse_by = new - old if better == "less" else old - new
        # the sums are of tokens and rounded ratios: a billionth is rounding, not a regression
        return worse_by <= (self.amount * abs(old) if self.relative else self.amount) + 1e-9

    def __str__(self) -> str:
        return f"{self.amount * 100:g} %" if self.relative else f"{self.amount:g}"


def parse_tolerance(value: float | int | str) -> Tolerance | None:
    """``0.02``, ``5`` (absolute) or ``"10%"`` (of the old value); None if it is neither."""
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        return Tolerance(float(match[1]) / 100, True) if match else None
    return Tolerance(float(value), False) if 0 <= value < float("inf") else None
