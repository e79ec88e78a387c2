"""What is known about the tokens a slot holds: where user messages begin, and where one may hide.

The server prints no user starts. They show as batch starts that nothing else explains; from b9940 a
start that could not have led to a checkpoint is not cut at all and stays hidden.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

#: half-open stretch of token positions
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Content:
    """``starts``: known user starts, ascending; ``hidden``: stretches that may hold more."""

    starts: tuple[int, ...] = ()
    hidden: tuple[Span, ...] = ()

    def head(self, n_tokens: int) -> Content:
        """The same for its first ``n_tokens``."""
        return Content(
            tuple(start for start in self.starts if start < n_tokens),
            tuple((low, min(high, n_tokens)) for low, high in self.hidden if low < n_tokens),
        )


EMPTY = Content()


class Contents:
    """The content of every slot and of everything put away, moved along with the steps."""

    def __init__(self) -> None:
        self.slots: dict[int, Content] = {}
        self.stored: dict[Hashable, Content] = {}

    def of(self, slot: int) -> Content:
        return self.slots.get(slot, EMPTY)


def shifted(content: Content, n_keep: int, n_discard: int) -> Content:
    """After a context shift: starts behind the hole move down with their tokens."""
    end = n_keep + n_discard

    def moved(pos: int) -> int:
        return pos if pos <= n_keep else max(n_keep, pos - n_discard)

    return Content(
        tuple(
            start if start < n_keep else start - n_discard
            for start in content.starts
            if start < n_keep or start >= end
        ),
        tuple((moved(low), moved(high)) for low, high in content.hidden if moved(low) < moved(high)),
    )
