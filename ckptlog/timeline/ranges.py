"""Ranges of whole numbers: what a rounded ratio, or several bounds, leave of a figure."""

from __future__ import annotations

from math import ceil, floor

#: half of the last printed digit of a ``%.3f``, and a float's worth of slack
HALF_DIGIT = 0.0005 + 2e-7

Range = tuple[int, int]


def ratio_range(ratio: float, whole: int) -> Range:
    """The integers k for which k / whole prints as ``ratio`` with three decimals."""
    low = ceil((ratio - HALF_DIGIT) * whole - 1e-6)
    high = floor((ratio + HALF_DIGIT) * whole + 1e-6)
    return max(0, low), min(whole, high)


def whole_of(ratio: float, parts: Range) -> int | None:
    """The one number of which a part in this range prints as ``ratio``; None if there are several, or none."""
    if ratio <= HALF_DIGIT:
        return None
    least = max(parts[0], ceil(parts[0] / (ratio + HALF_DIGIT) - 1e-6))
    most = floor(parts[1] / (ratio - HALF_DIGIT) + 1e-6)
    return least if least == most else None


def has_share(whole: int, ratio: float) -> bool:
    """Is there a whole number whose share of ``whole`` prints as ``ratio`` with three decimals?"""
    return whole > 0 and not is_empty(ratio_range(ratio, whole))


def meet(a: Range | None, b: Range | None) -> Range | None:
    """The intersection; null only if both are null. An empty one comes back with low > high."""
    if a is None:
        return b
    if b is None:
        return a
    return max(a[0], b[0]), min(a[1], b[1])


def is_empty(r: Range | None) -> bool:
    """Do the bounds contradict each other?"""
    return r is not None and r[0] > r[1]
