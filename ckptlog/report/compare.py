"""Two logs side by side: which turns got worse, which better, what changed in flags or build.

Turns correspond when they come in the same order with the same prompt sizes; where two logs differ in
that, the turns between are compared in sum only.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ckptlog.report.matching import matching
from ckptlog.report.snapshot import BAD_OUTCOMES, SUMS, Snapshot, TurnSnapshot

#: a difference of fewer lost tokens than this is none (the contract's bound for a partial re-prefill)
LOST_TOKENS = 128
Better = Literal["less", "more", "neither"]
#: every figure that is compared, and which direction is better
METRICS: dict[str, Better] = {
    "turns": "neither",
    "failed": "less",
    **dict.fromkeys(BAD_OUTCOMES, "less"),
    "reuse": "more",
    **dict.fromkeys(SUMS, "less"),
    "n_prompt": "neither",
}

Change = Literal["worse", "better", "same"]


class Metric(msgspec.Struct, frozen=True):
    """One figure of both logs; None where a log does not have it. ``unknown``: turns left out of it."""

    name: str
    old: float | None
    new: float | None
    change: Change
    unknown_old: int = 0
    unknown_new: int = 0


class TurnChange(msgspec.Struct, frozen=True):
    """A turn of the new log and the one it corresponds to."""

    change: Change
    old: TurnSnapshot
    new: TurnSnapshot


class Setting(msgspec.Struct, frozen=True):
    """A flag, build or model that differs; ``run`` counts the servers of a log from 0."""

    run: int
    name: str
    old: str | None
    new: str | None


class Comparison(msgspec.Struct, frozen=True):
    """``matched`` turns correspond; of the others, ``only_old`` and ``only_new`` are the turn numbers."""

    old: str
    new: str
    metrics: list[Metric]
    settings: list[Setting]
    matched: int
    only_old: list[int]
    only_new: list[int]
    worse: list[TurnChange]
    better: list[TurnChange]

    @property
    def aligned(self) -> bool:
        """Whether every turn of both logs has its counterpart."""
        return not self.only_old and not self.only_new

    def metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)


def compare(old: Snapshot, new: Snapshot) -> Comparison:
    """Everything that differs between two snapshots that has a meaning."""
    pairs = matching([turn.n_prompt for turn in old.turns], [turn.n_prompt for turn in new.turns])
    changes = [_turn_change(old.turns[i], new.turns[j]) for i, j in pairs]
    left, right = {i for i, _ in pairs}, {j for _, j in pairs}
    return Comparison(
        old=old.path,
        new=new.path,
        metrics=[_metric(name, old, new) for name in METRICS],
        settings=list(_settings(old.settings, new.settings)),
        matched=len(pairs),
        only_old=[turn.turn for i, turn in enumerate(old.turns) if i not in left],
        only_new=[turn.turn for j, turn in enumerate(new.turns) if j not in right],
        worse=[change for change in changes if change.change == "worse"],
        better=[change for change in changes if change.change == "better"],
    )


def _turn_change(old: TurnSnapshot, new: TurnSnapshot) -> TurnChange:
    harm = _harm(old, new)
    return TurnChange("worse" if harm > 0 else "better" if harm < 0 else "same", old, new)


def _harm(old: TurnSnapshot, new: TurnSnapshot) -> int:
    """Above 0: the new turn is worse. First by verdict, then by tokens lost, then by tokens reused."""
    if old.failed != new.failed:
        return 1 if new.failed else -1
    unjudged = ("error", "unknown")
    if (old.outcome in unjudged) != (new.outcome in unjudged):
        return 1 if new.outcome in unjudged else -1
    if old.n_lost is not None and new.n_lost is not None:
        tokens = new.n_lost - old.n_lost
    elif old.n_cached is not None and new.n_cached is not None:
        tokens = old.n_cached - new.n_cached
    else:
        return 0
    return tokens if abs(tokens) >= LOST_TOKENS else 0


def _value(snapshot: Snapshot, name: str) -> float | None:
    if name == "turns":
        return snapshot.turns_total
    if name == "failed":
        return snapshot.failed
    if name == "reuse":
        return snapshot.reuse
    if name in BAD_OUTCOMES:
        return snapshot.outcomes.get(name, 0)
    return snapshot.sums.get(name)


def _metric(name: str, old: Snapshot, new: Snapshot) -> Metric:
    a, b = _value(old, name), _value(new, name)
    change: Change = "same"
    if a is not None and b is not None and a != b and METRICS[name] != "neither":
        change = "better" if (b < a) == (METRICS[name] == "less") else "worse"
    return Metric(name, a, b, change, old.unknown.get(name, 0), new.unknown.get(name, 0))


def _settings(old: list[dict[str, str]], new: list[dict[str, str]]) -> list[Setting]:
    found = []
    if len(old) != len(new):
        # of a server that only one of them has there is nothing to compare
        found.append(Setting(0, "server starts", str(len(old)), str(len(new))))
    for run, (a, b) in enumerate(zip(old, new, strict=False)):
        found += [
            Setting(run, name, a.get(name), b.get(name))
            for name in dict.fromkeys([*a, *b])
            if a.get(name) != b.get(name)
        ]
    return found
