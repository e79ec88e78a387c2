"""A turn as proportions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlog.records import TurnRecord
from ckptlog.report.picture import picture, pieces

from .build import a_turn


def drawn(turn: TurnRecord, width: int) -> str:
    return "".join(piece.glyph * piece.width for piece in picture(turn, width))


def test_parts_are_in_the_prompts_order_and_in_proportion() -> None:
    turn = a_turn(n_prompt=800, n_cached=400, n_common=600, n_lost=200, n_generated=200)
    assert drawn(turn, 10) == "====xx..++"


def test_what_is_lost_is_never_more_than_what_was_processed() -> None:
    turn = a_turn(n_prompt=100, n_cached=50, n_lost=500, n_generated=0)
    assert pieces(turn) == [("=", 50), ("x", 50)]


def test_a_tiny_part_is_still_seen() -> None:
    turn = a_turn(n_prompt=100_000, n_cached=99_999, n_lost=0, n_generated=1)
    assert drawn(turn, 20) == "=" * 18 + ".+"


def test_unknown_reuse_is_no_guess() -> None:
    assert drawn(a_turn(n_prompt=900, n_cached=None, n_generated=100), 10) == "?" * 9 + "+"
    assert drawn(a_turn(n_prompt=None, n_cached=None, n_generated=None), 10) == ""


def test_a_turn_without_tokens_has_no_picture() -> None:
    assert picture(a_turn(n_prompt=None, n_cached=None, n_generated=0), 10) == []


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_no_room_no_picture(width: int) -> None:
    assert picture(a_turn(n_prompt=100, n_cached=50, n_lost=10, n_generated=5), width) == []


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(4, 200),
)
def test_it_fills_its_width_exactly(cached: int, lost: int, new: int, generated: int, width: int) -> None:
    turn = a_turn(n_prompt=cached + lost + new, n_cached=cached, n_lost=lost, n_generated=generated)
    parts = picture(turn, width)
    if cached + lost + new + generated:
        assert sum(piece.width for piece in parts) == width
        assert all(piece.width >= 1 for piece in parts)
    else:
        assert parts == []
