"""What counts as a number in a line, and how its text becomes a value.

The same pattern runs in Polars (Rust regex) over whole columns and in Python over the one
example of a shape; both must cut the same tokens, so it uses no construct they differ in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import polars as pl

#: hex pointers (MSVC prints them bare, 16 digits), then integers, floats and dotted stamps
NUMBER = r"0x[0-9a-fA-F]+|\b[0-9A-F]{16}\b|[0-9]+(?:\.[0-9]+)*"
#: what becomes ``#`` in a shape: the dots stay, or one odd number could pass for another kind of number
#: (its grammar is asked once a shape); padding in front goes, or `%7d` would make seven shapes
PADDED_NUMBER = r" *(?:0x[0-9a-fA-F]+|\b[0-9A-F]{16}\b|[0-9]+)"
#: no count, size or time of a server is beyond this: a longer number is damage
BEYOND = 10**15

Number = TypeVar("Number", int, "pl.Series", "pl.Expr")

number_tokens = re.compile(NUMBER)
padded_number_tokens = re.compile(PADDED_NUMBER)


def value(text: str, negative: bool) -> int | float | None:
    """The value of one number token; null for pointers, dotted stamps and absurd lengths."""
    try:
        if "." in text:
            number: int | float = float(text)
        elif len(text) < 19:
            number = int(text)
        else:
            return None
    except ValueError:
        return None
    return -number if negative else number


def in_microseconds(minutes: Number, seconds: Number, millis: Number, micros: Number) -> Number:
    """The parts of ``M.SS.mmm.uuu`` as one number; of columns, for each row."""
    return ((minutes * 60 + seconds) * 1000 + millis) * 1000 + micros


def stamp_us(text: str) -> int | None:
    """Microseconds from the logger's ``M.SS.mmm.uuu`` (minutes grow past 59 and 999)."""
    parts = text.split(".")
    if len(parts) != 4 or not all(part.isdigit() and len(part) < 10 for part in parts):
        return None
    return in_microseconds(*map(int, parts))
