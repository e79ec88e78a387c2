"""A table of turns kept short: stretches of like turns become one row and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ckptlog.report.digest import Numbered
from ckptlog.report.words import label


@dataclass(frozen=True)
class Row:
    """One turn, shown."""

    item: Numbered


@dataclass(frozen=True)
class Fold:
    """Turns not shown. ``like`` is the shown turn they resemble; without it they are a mixture."""

    items: list[Numbered]
    like: int | None

    def outcomes(self) -> list[tuple[str, int]]:
        """The outcomes in it and how many of each, the most frequent first."""
        return Counter(
            f"{label(item.turn)} (failed)" if item.turn.failed else label(item.turn) for item in self.items
        ).most_common()

    def prompts(self) -> tuple[int, int] | None:
        """The smallest and the largest prompt in it, in tokens."""
        sizes = [item.turn.n_prompt for item in self.items if item.turn.n_prompt is not None]
        return (min(sizes), max(sizes)) if sizes else None


def _signature(item: Numbered) -> tuple[object, ...]:
    turn = item.turn
    # a turn that reused a tenth is not like one that reused nearly all
    mostly_reused = None
    if turn.n_cached is not None and turn.n_prompt is not None:
        mostly_reused = 2 * turn.n_cached >= turn.n_prompt
    return turn.outcome, turn.variant, turn.cause, turn.severity, turn.failed, mostly_reused


def _stretches(items: Sequence[Numbered]) -> list[list[Numbered]]:
    stretches: list[list[Numbered]] = []
    for item in items:
        if stretches and _signature(stretches[-1][0]) == _signature(item):
            stretches[-1].append(item)
        else:
            stretches.append([item])
    return stretches


def fold(items: Sequence[Numbered], rows: int, keep: Collection[int] = ()) -> list[Row | Fold]:
    """At most about ``rows`` rows for ``items`` (the turns of one slot, in order).

    A stretch of like turns is its first turn and "n more like it". If that is still too long,
    the first stretches, the last, and those with a turn in ``keep`` (turn numbers that the
    findings quote) stay, and what lies between becomes one line that counts outcomes.
    """
    stretches = _stretches(items)
    shown = [_rows(stretch, keep) for stretch in stretches]
    if sum(map(len, shown)) <= rows:
        return [row for group in shown for row in group]
    wanted = [
        index for index, stretch in enumerate(stretches) if any(item.number in keep for item in stretch)
    ]
    order = [0, len(stretches) - 1, *wanted]
    for distance in range(1, len(stretches)):
        order += [distance, len(stretches) - 1 - distance] if distance % 3 == 0 else [distance]
        if len(order) > 2 * rows + len(wanted):
            break
    chosen: set[int] = set()
    used = 0
    for index in order:
        if index in chosen:
            continue
        if used + len(shown[index]) + 1 > rows and used:
            break
        chosen.add(index)
        used += len(shown[index])
    result: list[Row | Fold] = []
    hidden: list[Numbered] = []
    for index, stretch in enumerate(stretches):
        if index in chosen:
            if hidden:
                result.append(Fold(hidden, None))
                hidden = []
            result += shown[index]
        else:
            hidden += stretch
    if hidden:
        result.append(Fold(hidden, None))
    return result


def _rows(stretch: list[Numbered], keep: Collection[int]) -> list[Row | Fold]:
    """A stretch of like turns: up to two are shown, of more the first and those in ``keep``."""
    if len(stretch) <= 2:
        return [Row(item) for item in stretch]
    result: list[Row | Fold] = [Row(stretch[0])]
    hidden: list[Numbered] = []
    for item in stretch[1:]:
        if item.number in keep:
            if hidden:
                result.append(Fold(hidden, stretch[0].number))
                hidden = []
            result.append(Row(item))
        else:
            hidden.append(item)
    if hidden:
        result.append(Fold(hidden, stretch[0].number))
    return result
