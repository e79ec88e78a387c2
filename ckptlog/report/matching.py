"""Which turns of two logs correspond: an order-keeping match of two sequences of prompt sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

#: how many turns may be inserted or left out at one place where no prompt size is unique
_REACH = 20
#: steps forward on both sides, the fewest first, an even share of both before one side alone
_STEPS = [
    (i, skipped - i)
    for skipped in range(_REACH + 1)
    for i in sorted(range(skipped + 1), key=lambda i: abs(2 * i - skipped))
]

Keys = Sequence[int | None]


def matching(old: Keys, new: Keys) -> list[tuple[int, int]]:
    """Pairs of indices with equal keys, both rising.

    Equal ends first, then the sizes that occur once on both sides (most prompts of a growing
    conversation do) as anchors, and so on between them; where none is unique, the next pair that
    leaves out the fewest turns.
    """
    return list(_match(old, new, 0, len(old), 0, len(new)))


def _match(old: Keys, new: Keys, a: int, a_end: int, b: int, b_end: int) -> Iterator[tuple[int, int]]:
    while a < a_end and b < b_end and old[a] == new[b]:
        yield a, b
        a, b = a + 1, b + 1
    tail = 0
    while tail < min(a_end - a, b_end - b) and old[a_end - 1 - tail] == new[b_end - 1 - tail]:
        tail += 1
    a_end, b_end = a_end - tail, b_end - tail
    anchors = _anchors(old, new, a, a_end, b, b_end)
    if anchors:
        # the gaps between anchors, the last one closed by the ends; what occurs twice here may occur
        # once in a gap and anchor that in its turn
        for x, y in [*anchors, (a_end, b_end)]:
            yield from _match(old, new, a, x, b, y)
            if x < a_end:
                yield x, y
            a, b = x + 1, y + 1
    else:
        yield from _nearest(old, new, a, a_end, b, b_end)
    yield from ((a_end + k, b_end + k) for k in range(tail))


def _nearest(old: Keys, new: Keys, a: int, a_end: int, b: int, b_end: int) -> Iterator[tuple[int, int]]:
    """Walk both sides; at a difference go on with the equal pair that is the fewest steps away."""
    if not set(old[a:a_end]) & set(new[b:b_end]):
        return
    while a < a_end and b < b_end:
        steps = ((i, j) for i, j in _STEPS if a + i < a_end and b + j < b_end and old[a + i] == new[b + j])
        i, j = next(steps, (1, 1))
        a, b = a + i, b + j
        if a < a_end and b < b_end and old[a] == new[b]:
            yield a, b
            a, b = a + 1, b + 1


def _anchors(old: Keys, new: Keys, a: int, a_end: int, b: int, b_end: int) -> list[tuple[int, int]]:
    """Keys that occur once on both sides, as the longest list of pairs in which both indices rise."""
    once_old = {key for key, count in Counter(old[a:a_end]).items() if count == 1 and key is not None}
    once_new = {key for key, count in Counter(new[b:b_end]).items() if count == 1 and key in once_old}
    place = {new[j]: j for j in range(b, b_end) if new[j] in once_new}
    pairs = [(i, place[old[i]]) for i in range(a, a_end) if old[i] in once_new]
    # longest rising subsequence by patience sorting: `tops` are the least ends of runs of each length
    tops: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for index, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(ends[pile - 1] if pile else None)
        tops[pile : pile + 1] = [j]
        ends[pile : pile + 1] = [index]
    chain = []
    at = ends[-1] if ends else None
    while at is not None:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
