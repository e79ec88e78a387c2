"""Positions to rows."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlog.tui.scale import KINDS, best_kind, make_scale, short, ticks


@given(
    kind=st.sampled_from(KINDS),
    rows=st.integers(1, 80),
    n_ctx=st.integers(1, 1_048_576),
    used=st.integers(0, 2_000_000),
    low=st.integers(0, 2_000_000),
    more=st.integers(0, 2_000_000),
)
def test_a_higher_position_is_never_in_a_lower_row(
    kind: str, rows: int, n_ctx: int, used: int, low: int, more: int
) -> None:
    scale = make_scale(kind, rows, n_ctx, used)  # type: ignore[arg-type]
    assert 0 <= scale.row(low) <= scale.row(low + more) < rows
    first, last = scale.span(low, low + more)
    assert 0 <= first <= last <= rows


@given(kind=st.sampled_from(KINDS), rows=st.integers(2, 60), n_ctx=st.integers(1000, 1_048_576))
def test_the_lower_edge_of_a_row_lies_in_it(kind: str, rows: int, n_ctx: int) -> None:
    scale = make_scale(kind, rows, n_ctx, n_ctx)  # type: ignore[arg-type]
    for row in range(rows):
        assert abs(scale.row(scale.tokens(row)) - row) <= 1
    assert scale.tokens(rows) == pytest.approx(scale.top, abs=1)


def test_the_logarithmic_scale_spreads_the_bottom() -> None:
    linear, log = make_scale("context", 20, 131_072, 9_000), make_scale("log", 20, 131_072, 9_000)
    assert log.row(9_000) - log.row(0) > 5 * (linear.row(9_000) - linear.row(0) or 1)


def test_a_short_conversation_in_a_large_context_is_not_shown_to_the_context() -> None:
    assert best_kind(262_144, 9_000) == "used"
    assert best_kind(16_384, 12_000) == "context"
    assert best_kind(None, 12_000) == "used"


@pytest.mark.parametrize(
    ("n_tokens", "text"),
    [
        (0, "0"),
        (640, "640"),
        (999, "999"),
        (1000, "1.0k"),
        (8623, "8.6k"),
        (65_536, "66k"),
        (1_048_576, "1.0M"),
    ],
)
def test_short(n_tokens: int, text: str) -> None:
    assert short(n_tokens) == text


@given(kind=st.sampled_from(KINDS), rows=st.integers(1, 60), n_ctx=st.integers(1, 1_048_576))
def test_ticks_are_apart_and_fit_the_gutter(kind: str, rows: int, n_ctx: int) -> None:
    scale = make_scale(kind, rows, n_ctx, n_ctx)  # type: ignore[arg-type]
    labels = ticks(scale)
    assert labels[0] == "0"
    assert all(later - earlier >= 3 for earlier, later in pairwise(sorted(labels)))
    assert all(len(text) <= 5 for text in labels.values())
