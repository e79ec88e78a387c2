"""Tables stay short and lose nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ckptlog.report.digest import Numbered
from ckptlog.report.fold import Fold, Row, fold

from .build import a_turn, an_evicted_turn


def items(kinds: str) -> list[Numbered]:
    """``.`` a reused turn, ``x`` an evicted one, ``r`` a restored one."""
    made = {
        ".": lambda n: a_turn(n),
        "x": lambda n: an_evicted_turn(n, n),
        "r": lambda n: a_turn(n, outcome="restored"),
    }
    return [Numbered(n, made[kind](n)) for n, kind in enumerate(kinds, 1)]


def shape(kinds: str, rows: int, keep: tuple[int, ...] = ()) -> list[str]:
    return [
        str(entry.item.number) if isinstance(entry, Row) else f"{len(entry.items)}~{entry.like}"
        for entry in fold(items(kinds), rows, keep)
    ]


def test_few_turns_are_all_shown() -> None:
    assert shape("..x.", 10) == ["1", "2", "3", "4"]


def test_a_stretch_is_its_first_turn_and_a_count() -> None:
    assert shape("......x....", 10) == ["1", "5~1", "7", "8", "3~8"]


def test_a_turn_that_reused_little_is_not_like_one_that_reused_much() -> None:
    turns = [Numbered(n, a_turn(n, 1000, 10 if n > 3 else 900)) for n in range(1, 8)]
    shown = [entry.item.number if isinstance(entry, Row) else len(entry.items) for entry in fold(turns, 10)]
    assert shown == [1, 2, 4, 3]


def test_a_quoted_turn_is_always_shown() -> None:
    assert shape("xxxxxx", 10, keep=(4,)) == ["1", "2~1", "4", "2~1"]
    assert "50" in shape(".x" * 100, 8, keep=(50,))


def test_what_alternates_for_ever_is_one_line() -> None:
    short = shape(".x" * 5000, 12)
    assert len(short) <= 14
    assert short[0] == "1"
    assert short[-1] == "10000"
    assert any(entry.endswith("~None") for entry in short)


def test_a_mixture_counts_its_outcomes() -> None:
    folds = [entry for entry in fold(items(".x" * 500 + "r"), 6) if isinstance(entry, Fold)]
    names = {name for entry in folds for name, _ in entry.outcomes()}
    assert names >= {"reused", "re-prefill (failed)"}


@given(
    st.text("...xr", min_size=1, max_size=300), st.integers(4, 30), st.sets(st.integers(1, 300), max_size=3)
)
def test_every_turn_is_shown_or_counted_once_and_in_order(kinds: str, rows: int, keep: set[int]) -> None:
    entries = fold(items(kinds), rows, keep)
    numbers = [
        number
        for entry in entries
        for number in (
            [entry.item.number] if isinstance(entry, Row) else [item.number for item in entry.items]
        )
    ]
    assert numbers == list(range(1, len(kinds) + 1))
    assert len(entries) <= 2 * rows + 3 * len(keep) + 4
