"""One step ahead: while one chunk's events change the timeline, the next chunk is read and cut into events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def ahead(items: Iterator[Item], work: Callable[[Item], Made]) -> Iterator[Made]:
    """``work`` of each item, in order. With more items than one a thread does it (and takes the item), one item ahead.

    Worth it where most of the work is done outside the interpreter, as in Polars. What ``items`` or ``work``
    raises is raised here.
    """

    def step() -> list[Made]:
        return [work(item) for item in islice(items, 1)]

    begin = list(islice(items, 2))
    if len(begin) < 2:
        yield from map(work, begin)
        return
    items = chain(begin, items)
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        coming = thread.submit(step)
        while True:
            made = coming.result()
            if not made:
                return
            coming = thread.submit(step)
            yield made[0]
