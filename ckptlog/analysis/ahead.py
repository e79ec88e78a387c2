"""One step ahead: while one chunk's events change the timeline, the next chunk is read and cut into events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import chain, islice
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

#: how long one thread may keep the other from running Python: the reading thread calls Polars every few hundred
#: microseconds, and would wait five milliseconds after each call
SWITCH_SECONDS = 0.0003
#: how long is waited before looking whether there was an interrupt
LOOK_SECONDS = 0.2


def ahead(
    items: Iterator[Item], work: Callable[[Item], Made], left: Event
) -> Generator[Made, None, None]:
    """``work`` of each item, in order. With more items than one a thread does it (and takes the item), one item ahead.

    Worth it where most of the work is done outside the interpreter, as in Polars. What ``items`` or ``work``
    raises is raised here. ``left`` is set when no more is wanted, because of an interrupt, say: ``items`` must
    not wait for anything then, for the thread is waited for.
    """

    def step() -> list[Made]:
        return [work(item) for item in islice(items, 1)]

    begin = list(islice(items, 2))
    if len(begin) < 2:
        yield from map(work, begin)
        return
    items = chain(begin, items)
    with _switching_often(), ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        try:
            coming = thread.submit(step)
            while made := _result(coming):
                coming = thread.submit(step)
                yield made[0]
        finally:
            left.set()


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _result(coming: Future[Made]) -> Made:
    # not one long wait, which can't be interrupted: Polars' handler of SIGINT makes it go on
    while not wait([coming], LOOK_SECONDS).done:
        pass
    return coming.result()
