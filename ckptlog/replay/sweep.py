"""Which checkpoint count and spacing would have served a conversation best, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ckptlog.replay.follow import Followed
from ckptlog.replay.loss import is_costly_turn
from ckptlog.replay.predict import Predicted, Prediction, predict
from ckptlog.server.policy import Settings
from ckptlog.server.rules import Rules

#: counts tried for --ctx-checkpoints, and spacings for --checkpoint-min-step
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
STEPS = (0, 64, 256, 512, 1024, 2048, 4096, 8192)
#: up to so many turns a needed count is found to the unit
EXACT_UP_TO = 1000
#: a setting is as good as the best if it reuses at least this share of its tokens
AS_GOOD = 0.99


@dataclass(slots=True)
class Totals:
    """A setting's outcome over a run. ``n_cached``: tokens reused, with the user starts the log shows;
    ``n_saved``/``ms_saved``: against what the log shows; ``ram_mib``: the most the checkpoints of all
    slots held, None if the log shows no size; ``n_costly``: turns that stay costly re-prefills;
    ``n_open``: turns of which only a range is certain (None: not worked out)."""

    settings: Settings
    n_cached: int = 0
    n_saved: int = 0
    ms_saved: float = 0.0
    ram_mib: float | None = None
    n_costly: int = 0
    n_open: int | None = None


@dataclass(slots=True)
class Sweep:
    """``tried``: every setting replayed; ``now``: the log's own; ``cheapest``: the least RAM within 1 %
    of the best; ``saving_all``: the least RAM that leaves no costly turn, None if none does; ``best``."""

    now: Totals
    best: Totals
    cheapest: Totals
    saving_all: Totals | None
    tried: list[Totals] = field(default_factory=list)

    @property
    def helps(self) -> bool:
        """Whether any setting saves tokens worth mentioning."""
        return self.best.n_cached > self.now.n_cached / AS_GOOD


def ms_per_token(turn_ms: float | None, n_prompt: int, n_cached: int | None) -> float | None:
    """A turn's own prompt speed; None if the log has no time or it evaluated nothing."""
    if turn_ms is None or n_cached is None or n_prompt <= n_cached:
        return None
    return turn_ms / (n_prompt - n_cached)


def ram_mib(followed: Followed, prediction: Prediction) -> float | None:
    """The most the checkpoints held at once, added up over the slots: from the sizes in the log."""
    run = followed.run
    if prediction.settings.memory == "swa":
        if run.cell_mib is None:
            return None
        return run.cell_mib * sum(prediction.cells_most.values())
    if run.checkpoint_mib is None:
        return None
    return run.checkpoint_mib * sum(prediction.n_most.values())


def is_costly(turn: Predicted) -> bool:
    """Whether it would still be a costly re-prefill, with the user starts the log shows."""
    if turn.n_common is None or not turn.turn.completion:
        return False
    return is_costly_turn(turn.n_common, turn.likely, turn.turn.n_prompt)


def totals(followed: Followed, prediction: Prediction) -> Totals:
    """Add up a prediction against what the log shows."""
    result = Totals(prediction.settings, ram_mib=ram_mib(followed, prediction))
    if prediction.bounded:
        result.n_open = sum(predicted.low != predicted.high for predicted in prediction.turns)
    for predicted in prediction.turns:
        turn = predicted.turn
        if not turn.completion:
            continue
        result.n_cached += predicted.likely
        result.n_costly += is_costly(predicted)
        if turn.n_cached is None:
            continue
        saved = predicted.likely - turn.n_cached
        result.n_saved += saved
        speed = ms_per_token(turn.prompt_ms, turn.n_prompt, turn.n_cached)
        if speed is not None:
            result.ms_saved += saved * speed
    return result


def steps_to_try(followed: Followed, rules: Rules, own: Settings) -> list[Settings]:
    """The spacings that can differ: none longer than the longest prompt but one."""
    longest = max((turn.n_prompt for turn in followed.run.turns), default=0)
    if rules.create in ("last-user", "user-start"):
        steps = sorted({*STEPS, own.min_step})
        useful = [step for step in steps if step < longest]
        useful += [own.min_step if own.min_step >= longest else step for step in steps if step >= longest][:1]
        return [replace(own, min_step=step) for step in sorted({*useful, own.min_step})]
    if rules.create in ("near-end", "near-end-n0"):
        spacings = {-1, own.every_nt, *(step for step in STEPS if 64 < step < longest)}
        return [replace(own, every_nt=spacing) for spacing in sorted(spacings)]
    return [own]


class Alternatives:
    """A followed run under other settings, each replayed once."""

    def __init__(self, followed: Followed, rules: Rules | None = None) -> None:
        self.followed = followed
        self.rules = rules or followed.rules
        self._done: dict[Settings, Prediction] = {}
        self._totals: dict[Settings, Totals] = {}

    @property
    def own(self) -> Settings:
        """The run's own settings."""
        return self.followed.run.settings

    def under(self, settings: Settings) -> Prediction:
        """The prediction for these settings, without bounds."""
        if settings not in self._done:
            self._done[settings] = predict(self.followed, settings, self.rules, bounds=False)
        return self._done[settings]

    def totals(self, settings: Settings) -> Totals:
        """The same, added up."""
        if settings not in self._totals:
            self._totals[settings] = totals(self.followed, self.under(settings))
        return self._totals[settings]

    def tried(self) -> list[Totals]:
        """All settings added up so far, cheapest first."""
        return sorted(self._totals.values(), key=_price)

    def needed_count(self, index: int) -> Needed | None:
        """The smallest ``--ctx-checkpoints`` above the log's own under which turn ``index`` (in the
        order of the run) is no costly re-prefill any more; None if none up to 64 does that.

        This is the number behind "raise it to N". The rule of thumb, length / min step + 1, knows
        nothing of thinning, of turns that make three checkpoints, or of several chats on a slot. In a
        long log only the counts of the ladder are tried, so that many turns share the replays.
        """
        own = self.own
        counts: Sequence[int] = range(own.max_checkpoints + 1, max(COUNTS[-1], own.max_checkpoints) + 1)
        if len(self.followed.learned) > EXACT_UP_TO:
            counts = [count for count in COUNTS if count > own.max_checkpoints]
        if not counts or is_costly(self._turn(counts[-1], index)):
            return None
        low, high = 0, len(counts) - 1
        while low < high:
            middle = (low + high) // 2
            if is_costly(self._turn(counts[middle], index)):
                low = middle + 1
            else:
                high = middle
        return self._needed(replace(own, max_checkpoints=counts[low]), index)

    def needed_step(self, index: int) -> Needed | None:
        """The largest ``--checkpoint-min-step`` below the log's own under which turn ``index`` is no
        costly re-prefill any more; None if none does that or the build has no such option."""
        if self.rules.create not in ("last-user", "user-start"):
            return None
        for step in sorted((step for step in STEPS if step < self.own.min_step), reverse=True):
            settings = replace(self.own, min_step=step)
            if not is_costly(self.under(settings).turns[index]):
                return self._needed(settings, index)
        return None

    def needed(self, index: int) -> Needed | None:
        """What would have saved turn ``index``: a larger count, else a smaller spacing, else both; None
        if no setting would."""
        found = self.needed_count(index) or self.needed_step(index)
        if found is not None or self.rules.create not in ("last-user", "user-start"):
            return found
        for step in sorted((step for step in STEPS if step < self.own.min_step), reverse=True):
            settings = replace(self.own, max_checkpoints=COUNTS[-1], min_step=step)
            if not is_costly(self.under(settings).turns[index]):
                return self._needed(settings, index)
        return None

    def _turn(self, count: int, index: int) -> Predicted:
        return self.under(replace(self.own, max_checkpoints=count)).turns[index]

    def _needed(self, settings: Settings, index: int) -> Needed:
        prediction = self.under(settings)
        return Needed(settings, prediction.turns[index].likely, ram_mib(self.followed, prediction))


@dataclass(frozen=True, slots=True)
class Needed:
    """The settings a turn needs, what it would have reused, and the host RAM they hold (MiB)."""

    settings: Settings
    n_cached: int
    ram_mib: float | None


def sweep(alternatives: Alternatives) -> Sweep:
    """Try counts and spacings. For each spacing the count is searched, not listed: a count larger than
    the list ever grew to changes nothing, one that costs more than the best so far is of no use, and the
    smallest that is good enough is found by halving."""
    own = alternatives.own
    now = alternatives.totals(own)
    roomy: list[tuple[Settings, list[int]]] = []
    for spacing in steps_to_try(alternatives.followed, alternatives.rules, own):
        settings = replace(spacing, max_checkpoints=COUNTS[-1])
        most = max(alternatives.under(settings).n_most.values(), default=0)
        alternatives.totals(settings)
        roomy.append((settings, [count for count in COUNTS if count <= most + 1]))
    best = max([now, *(alternatives.totals(settings) for settings, _ in roomy)], key=_worth)

    def first(pair: tuple[Settings, list[int]]) -> tuple[int, float, bool]:
        # of equals the log's own spacing: one flag to change is better than two
        settings = pair[0]
        same = replace(settings, max_checkpoints=own.max_checkpoints) == own
        return (*_worth(alternatives.totals(settings)), same)

    roomy.sort(key=first, reverse=True)
    return Sweep(
        now=now,
        best=best,
        cheapest=_cheapest(alternatives, roomy, now, lambda t: t.n_cached >= AS_GOOD * best.n_cached) or best,
        saving_all=_cheapest(alternatives, roomy, now, lambda t: t.n_costly == 0),
        tried=alternatives.tried(),
    )


def _cheapest(
    alternatives: Alternatives,
    roomy: Sequence[tuple[Settings, list[int]]],
    now: Totals,
    enough: Callable[[Totals], bool],
) -> Totals | None:
    """The least count (then RAM) that is enough, over all spacings; the log's own setting competes."""
    found = now if enough(now) else None
    for settings, counts in roomy:
        if not enough(alternatives.totals(settings)):
            continue
        if found is not None:
            limit = found.settings.max_checkpoints
            counts = [count for count in counts if count < limit]
            top = replace(settings, max_checkpoints=counts[-1]) if counts else None
            if top is None or not enough(alternatives.totals(top)):
                continue
        found = _least(alternatives, settings, counts, enough)
    if found is None or found is now:
        return found
    # between two counts of the ladder there may be a smaller one that will do
    ladder = [count for count in COUNTS if count < found.settings.max_checkpoints]
    between = list(range((ladder[-1] if ladder else 0) + 1, found.settings.max_checkpoints))
    return _least(alternatives, found.settings, between, enough)


def _least(
    alternatives: Alternatives, roomy: Settings, counts: Sequence[int], enough: Callable[[Totals], bool]
) -> Totals:
    """The smallest count of the ladder that is enough, given that the roomiest is."""
    found = alternatives.totals(roomy)
    low, high = 0, len(counts)
    while low < high:
        middle = (low + high) // 2
        tried = alternatives.totals(replace(roomy, max_checkpoints=counts[middle]))
        if enough(tried):
            found, high = tried, middle
        else:
            low = middle + 1
    return found


def _price(found: Totals) -> tuple[float, int, int]:
    """RAM first; without sizes the count; a longer spacing before a shorter one."""
    ram = found.ram_mib if found.ram_mib is not None else float(found.settings.max_checkpoints)
    return ram, found.settings.max_checkpoints, -found.settings.min_step


def _worth(found: Totals) -> tuple[int, float]:
    return found.n_cached, -_price(found)[0]
