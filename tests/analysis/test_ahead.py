"""One step ahead: the same items in order, and nothing that hangs when they are not wanted any more."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, current_thread

import pytest

from ckptlog.analysis.ahead import ahead


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_all_items_in_order(count: int) -> None:
    assert list(ahead(iter(range(count)), lambda n: 2 * n, Event())) == [2 * n for n in range(count)]


def test_what_an_item_raises_comes_behind_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no more")

    coming = ahead(items(), lambda n: n, Event())
    assert [next(coming) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(coming)


def test_items_that_wait_are_told_that_no_more_is_wanted() -> None:
    """As a pipe without news does: it looks now and then whether it should end."""
    left, waited = Event(), Event()

    def items() -> Iterator[str]:
        yield from "abc"
        assert current_thread().name.startswith("ahead")
        waited.set()
        left.wait()

    coming = ahead(items(), str.upper, left)
    assert [next(coming), next(coming), next(coming)] == ["A", "B", "C"]
    assert waited.wait(60)
    coming.close()
    assert left.is_set()
