"""Python's cycle collector, kept from looking at everything again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collector() -> Iterator[None]:
    """Without the cycle collector: an analysis makes millions of objects and hardly a cycle, and the
    collector would look at all of them again and again (a quarter of the time)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
