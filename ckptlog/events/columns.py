"""Columns of number tokens to columns of values."""

from __future__ import annotations

import polars as pl

from ckptlog.events.numbers import BEYOND, in_microseconds


def sound_number(token: pl.Expr, *, is_float: bool) -> pl.Expr:
    """Int64 or Float64; null for what is no such number or beyond any sense."""
    number = token.cast(pl.Float64 if is_float else pl.Int64, strict=False)
    return pl.when(number <= BEYOND).then(number)


def microseconds(stamp: pl.Expr, *, dotted: bool) -> pl.Expr:
    """From ``M.SS.mmm.uuu``, or as JSON has them."""
    if not dotted:
        return stamp.cast(pl.Int64, strict=False)
    part = stamp.str.split_exact(".", 3).struct
    return in_microseconds(*(part.field(f"field_{i}").cast(pl.Int64, strict=False) for i in range(4)))
