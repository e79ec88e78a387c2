"""Which checkpoint count and spacing would have served a conversation best, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ckptlog.replay.follow import Followed
from ckptlog.replay.loss import is_costly_turn
from ckptlog.replay.predict import Predicted, Prediction, predict
from ckptlog.server.policy import Settings
from ckptlog.server.rules import Rules

#: counts tried for --ctx-checkpoints, and spacings for --checkpoint-min-step
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
STEPS = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
#: up to so many turns a needed count is found to the unit
EXACT_UP_TO = 1000
#: a setting is as good as the best if it reuses at least this share of its tokens
AS_GOOD = 0.99


@dataclass(slots=True)
class Totals:
    """A setting's outcome over a run. ``n_cached``: tokens reused, with the user starts the log shows;
    ``n_saved``/``ms_saved``: against what the log shows; ``ram_mib``: the most the checkpoints of all
    slots held, None if the log shows no size; ``n_costly``: turns that stay costly re-prefills;
    ``n_open``: turns of which only a range is certain (None: not worked out). The totals of what is certain
    take the lower end of each range, ``n_saved_most`` the upper."""

    settings: Settings
    n_cached: int = 0
    n_saved: int = 0
    ms_saved: float = 0.0
    ram_mib: float | None = None
    n_costly: int = 0
    n_open: int | None = None
    n_saved_most: int = 0


@dataclass(slots=True)
class Sweep:
    """``tried``: every setting replayed; ``now``: the log's own; ``cheapest``: the least RAM within 1 %
    of the best; ``saving_all``: the least RAM that leaves no costly turn, None if none does; ``best``;
    ``count_alone``: the least count that leaves none at the log's own spacing, None if none does. Of
    settings of which the log does not tell everything, what is certain about them is compared."""

    now: Totals
    best: Totals
    cheapest: Totals
    saving_all: Totals | None
    count_alone: Totals | None = None
    tried: list[Totals] = field(default_factory=list)
    #: what is certain of those settings of which it was worked out
    certain: dict[Settings, Totals] = field(default_factory=dict)

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
    return is_costly_with(turn, turn.likely)


def is_costly_with(turn: Predicted, n_cached: int) -> bool:
    """Whether it would be a costly re-prefill if it reused so many tokens."""
    if turn.n_common is None or not turn.turn.completion:
        return False
    return is_costly_turn(turn.n_common, n_cached, turn.turn.n_prompt)


def totals(
    followed: Followed, prediction: Prediction, own: Prediction, *, certain: bool = False
) -> Totals:
    """Add up a prediction against what the log shows; left out are turns that come out otherwise than in the
    log under its ``own`` flags already. ``certain``: only what is saved whatever the log hides."""
    result = Totals(prediction.settings, ram_mib=ram_mib(followed, prediction))
    if prediction.bounded:
        result.n_open = sum(predicted.low != predicted.high for predicted in prediction.turns)
    for predicted, known in zip(prediction.turns, own.turns, strict=True):
        turn = predicted.turn
        if not turn.completion or not known.as_logged:
            continue
        n_cached = predicted.low if certain else predicted.likely
        result.n_cached += n_cached
        result.n_costly += is_costly_with(predicted, n_cached)
        if turn.n_cached is None:
            continue
        result.n_saved_most += predicted.high - turn.n_cached
        saved = n_cached - turn.n_cached
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
        # beyond the longest prompt all do the same: the log's own stands for them, else the widest
        useful += [own.min_step if own.min_step >= longest else step for step in steps if step >= longest][
            -1:
        ]
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
        self._certain: dict[Settings, Totals] = {}
        self._with_bounds: dict[Settings, Prediction] = {}

    @property
    def own(self) -> Settings:
        """The run's own settings."""
        return self.followed.run.settings

    def trusts(self, settings: Settings) -> bool:
        """Whether the log shows all user starts that count under these settings: at its own spacing, and at a
        wider one, the server cuts where it did in the log; at a smaller one, or with checkpoints where there
        were none, messages that were never cut make checkpoints, too, and push out what the replay knows of."""
        return settings == self.own or not self._hides or (
            self.own.max_checkpoints > 0 and settings.min_step >= self.own.min_step
        )

    @cached_property
    def _hides(self) -> bool:
        return any(known.hidden for known in self.followed.learned)

    def under(self, settings: Settings) -> Prediction:
        """The prediction for these settings, without bounds."""
        if settings not in self._done:
            self._done[settings] = predict(self.followed, settings, self.rules, bounds=False)
        return self._done[settings]

    def totals(self, settings: Settings) -> Totals:
        """The same, added up."""
        if settings not in self._totals:
            self._totals[settings] = totals(self.followed, self.under(settings), self.under(self.own))
        return self._totals[settings]

    def certain(self, settings: Settings) -> Totals:
        """What is saved even if messages begin where the log does not show them; the totals where it does."""
        if self.trusts(settings):
            return self.totals(settings)
        if settings not in self._certain:
            prediction = self._bounded(settings)
            self._certain[settings] = totals(self.followed, prediction, self.under(self.own), certain=True)
        return self._certain[settings]

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
        return self.needed_under(replace(own, max_checkpoints=counts[low]), index)

    def needed_step(self, index: int) -> Needed | None:
        """The largest ``--checkpoint-min-step`` below the log's own under which turn ``index`` is no
        costly re-prefill any more; None if none does that or the build has no such option."""
        if self.rules.create not in ("last-user", "user-start"):
            return None
        for step in sorted((step for step in STEPS if step < self.own.min_step), reverse=True):
            settings = replace(self.own, min_step=step)
            if self._enough(settings, index):
                return self.needed_under(settings, index)
        return None

    def _enough(self, settings: Settings, index: int) -> bool:
        """Whether turn ``index`` is no costly re-prefill: certainly, or, where messages may begin that the log does
        not show, with no less room than the server gives by default."""
        found = self.under(settings).turns[index]
        if is_costly(found):
            return False
        if self.trusts(settings) or settings.max_checkpoints >= self.rules.default_max:
            return True
        return not is_costly_with(found, self._bounded(settings).turns[index].low)

    def needed_both(self, index: int) -> Needed | None:
        """The largest spacing below the log's own, with the smallest count above its own, under which turn ``index``
        is no costly re-prefill any more; None if none does that, or the build has no such spacing."""
        if self.rules.create not in ("last-user", "user-start") or len(self.followed.learned) > EXACT_UP_TO:
            return None
        default = max(self.rules.default_max, self.own.max_checkpoints + 1)
        for step in sorted((step for step in STEPS if step < self.own.min_step), reverse=True):
            spaced = replace(self.own, min_step=step)
            if is_costly(self.under(replace(spaced, max_checkpoints=COUNTS[-1])).turns[index]):
                continue
            for count in (*(c for c in COUNTS if self.own.max_checkpoints < c < default), default, COUNTS[-1]):
                settings = replace(spaced, max_checkpoints=count)
                if self._enough(settings, index):
                    return self.needed_under(settings, index)
        return None

    def _bounded(self, settings: Settings) -> Prediction:
        """The prediction with bounds."""
        if settings not in self._with_bounds:
            self._with_bounds[settings] = predict(self.followed, settings, self.rules)
        return self._with_bounds[settings]

    def _turn(self, count: int, index: int) -> Predicted:
        return self.under(replace(self.own, max_checkpoints=count)).turns[index]

    def needed_under(self, settings: Settings, index: int) -> Needed:
        """What turn ``index`` comes to under these settings."""
        prediction = self.under(settings)
        return Needed(settings, prediction.turns[index].likely, ram_mib(self.followed, prediction))


@dataclass(frozen=True, slots=True)
class Needed:
    """The settings a turn needs, what it would have reused, and the host RAM they hold (MiB)."""

    settings: Settings
    n_cached: int
    ram_mib: float | None


class Together:
    """Several runs of one log under one change of flags: what a setting comes to over all of them.

    A setting is written as the first run's with the change in it. Its count holds for every run; a
    spacing that is the first run's own leaves every run its own spacing.
    """

    def __init__(self, parts: Sequence[Alternatives]) -> None:
        self.parts = list(parts)
        self.own = self.parts[0].own
        self._totals: dict[Settings, Totals] = {}
        self._now: Totals | None = None
        self.certain: dict[Settings, Totals] = {}

    @property
    def now(self) -> Totals:
        """Every run under its own flags."""
        if self._now is None:
            alike = all(self.of(part, self.own) == part.own for part in self.parts)
            each = [part.totals(part.own) for part in self.parts]
            self._now = self.totals(self.own) if alike else self._sum(self.own, each)
        return self._now

    def of(self, part: Alternatives, settings: Settings) -> Settings:
        """What a run has under the change that makes ``settings`` of the first run's own."""
        own = part.own
        return replace(
            own,
            max_checkpoints=settings.max_checkpoints,
            min_step=settings.min_step if settings.min_step != self.own.min_step else own.min_step,
            every_nt=settings.every_nt if settings.every_nt != self.own.every_nt else own.every_nt,
        )

    def totals(self, settings: Settings) -> Totals:
        """A setting added up over the runs."""
        if settings not in self._totals:
            each = [(part, self.of(part, settings)) for part in self.parts]
            self._totals[settings] = self._sum(settings, [part.totals(own) for part, own in each])
        return self._totals[settings]

    def surely(self, settings: Settings) -> Totals:
        """The same, of what is certain."""
        if settings not in self.certain:
            each = [(part, self.of(part, settings)) for part in self.parts]
            self.certain[settings] = self._sum(settings, [part.certain(own) for part, own in each])
        return self.certain[settings]

    def trusts(self, settings: Settings) -> bool:
        """Whether all runs' logs show what counts under these settings."""
        return all(part.trusts(self.of(part, settings)) for part in self.parts)

    def n_most(self, settings: Settings) -> int:
        """The most checkpoints that a slot of any run comes to hold."""
        predictions = (part.under(self.of(part, settings)) for part in self.parts)
        return max((max(found.n_most.values(), default=0) for found in predictions), default=0)

    def spacings(self) -> list[Settings]:
        """The spacings that can differ in any of the runs."""
        found = {self.own: None}
        for part in self.parts:
            for settings in steps_to_try(part.followed, part.rules, part.own):
                change = self.own
                if settings.min_step != part.own.min_step:
                    change = replace(change, min_step=settings.min_step)
                if settings.every_nt != part.own.every_nt:
                    change = replace(change, every_nt=settings.every_nt)
                found[change] = None
        return list(found)

    def tried(self) -> list[Totals]:
        """All settings added up so far, cheapest first."""
        return sorted(self._totals.values(), key=_price)

    @staticmethod
    def _sum(settings: Settings, each: Sequence[Totals]) -> Totals:
        total = Totals(settings, n_open=0)
        for found in each:
            total.n_cached += found.n_cached
            total.n_saved += found.n_saved
            total.n_saved_most += found.n_saved_most
            total.ms_saved += found.ms_saved
            total.n_costly += found.n_costly
            total.n_open = (
                None if total.n_open is None or found.n_open is None else total.n_open + found.n_open
            )
            # the runs follow each other, so their RAM does not add up
            if found.ram_mib is not None:
                total.ram_mib = max(total.ram_mib or 0.0, found.ram_mib)
        return total


def sweep(*runs: Alternatives) -> Sweep:
    """Try counts and spacings, added up over the runs. For each spacing the count is searched, not listed:
    a count larger than the list ever grew to changes nothing, one that costs more than the best so far is of
    no use, and the smallest that is good enough is found by halving."""
    together = Together(runs)
    own = together.own
    now = together.now
    roomy: list[tuple[Settings, list[int]]] = []
    for spacing in together.spacings():
        settings = replace(spacing, max_checkpoints=COUNTS[-1])
        most = together.n_most(settings)
        together.totals(settings)
        # (the list may grow to more than the replay knows of)
        trusts = together.trusts(settings)
        roomy.append((settings, [count for count in COUNTS if count <= most + 1 or not trusts]))
    best = max([now, *(together.surely(settings) for settings, _ in roomy)], key=_worth)

    def first(pair: tuple[Settings, list[int]]) -> tuple[int, float, bool]:
        # of equals the log's own spacing: one flag to change is better than two
        settings = pair[0]
        same = replace(settings, max_checkpoints=own.max_checkpoints) == own
        return (*_worth(together.surely(settings)), same)

    roomy.sort(key=first, reverse=True)
    all_saved = _SavesAll(together, [settings for settings, _ in roomy])
    cheapest = _cheapest(
        together,
        roomy,
        now,
        lambda t: t.n_cached >= AS_GOOD * best.n_cached
        and (t is now or together.surely(t.settings).n_cached >= AS_GOOD * best.n_cached),
    )
    saving_all = _widest(
        together,
        [settings for settings, _ in roomy],
        _cheapest(together, roomy, now, all_saved),
        all_saved,
    )
    count_alone = _count_alone(together, now, all_saved)
    tried = together.tried()
    for total in worth_their_price(tried):
        together.surely(total.settings)
    return Sweep(
        now=now,
        best=best,
        cheapest=cheapest or together.totals(best.settings),
        saving_all=saving_all,
        count_alone=count_alone,
        tried=tried,
        certain=together.certain,
    )


def worth_their_price(tried: Sequence[Totals]) -> list[Totals]:
    """Of settings in the order of their price those that save more than all cheaper ones."""
    found: list[Totals] = []
    for total in tried:
        if not found or total.n_saved > found[-1].n_saved:
            found.append(total)
    return found


class _SavesAll:
    """Whether a setting leaves no costly turn, with the user starts that the log shows; and of what hangs on
    others, it may leave open no more turns than the log's own spacing does with room enough, or, where that
    does not save all, than the best of the spacings."""

    def __init__(self, together: Together, roomy: Sequence[Settings]) -> None:
        self.together = together
        good = [settings for settings in roomy if not together.totals(settings).n_costly]
        own = replace(together.own, max_checkpoints=COUNTS[-1])
        n_open = (together.surely(settings).n_costly for settings in ([own] if own in good else good))
        self.n_open = min(n_open, default=0)
        #: of what is not certain under a setting, no less room than the server gives by default
        self.default = max(part.rules.default_max for part in together.parts)

    def __call__(self, found: Totals) -> bool:
        if found.n_costly or found is self.together.now:
            return not found.n_costly
        n_open = self.together.surely(found.settings).n_costly
        return n_open <= self.n_open and (not n_open or found.settings.max_checkpoints >= self.default)


def _widest(
    together: Together,
    spacings: Sequence[Settings],
    found: Totals | None,
    enough: Callable[[Totals], bool],
) -> Totals | None:
    """Of the spacings that are as good at the count found, the widest: thinning then takes the fewest, and
    it is the one that ``diagnose`` names."""
    if found is None or found is together.now or found.settings.min_step == together.own.min_step:
        return found
    count = found.settings.max_checkpoints
    each = [together.totals(replace(settings, max_checkpoints=count)) for settings in spacings]
    good = [total for total in each if enough(total)]
    return max(
        [found, *good],
        key=lambda total: (*_worth(together.surely(total.settings)), total.settings.min_step),
    )


def _count_alone(
    together: Together, now: Totals, enough: Callable[[Totals], bool]
) -> Totals | None:
    """The least count that leaves no costly turn at the log's own spacing: the number of ``diagnose``."""
    if not now.n_costly:
        return None
    least, most = min(part.own.max_checkpoints for part in together.parts), COUNTS[-1]
    top = replace(together.own, max_checkpoints=most)
    if least >= most or not enough(together.totals(top)):
        return None
    return _least(together, top, range(least + 1, most + 1), enough)


def _cheapest(
    together: Together,
    roomy: Sequence[tuple[Settings, list[int]]],
    now: Totals,
    enough: Callable[[Totals], bool],
) -> Totals | None:
    """The least count (then RAM) that is enough, over all spacings; the log's own setting competes."""
    found = now if enough(now) else None
    for settings, counts in roomy:
        if not enough(together.totals(settings)):
            continue
        if found is not None:
            limit = found.settings.max_checkpoints
            counts = [count for count in counts if count < limit]
            top = replace(settings, max_checkpoints=counts[-1]) if counts else None
            if top is None or not enough(together.totals(top)):
                continue
        found = _least(together, settings, counts, enough)
    if found is None or found is now:
        return found
    # between two counts of the ladder there may be a smaller one that will do
    ladder = [count for count in COUNTS if count < found.settings.max_checkpoints]
    between = list(range((ladder[-1] if ladder else 0) + 1, found.settings.max_checkpoints))
    return _least(together, found.settings, between, enough)


def _least(
    together: Together, roomy: Settings, counts: Sequence[int], enough: Callable[[Totals], bool]
) -> Totals:
    """The smallest count of the ladder that is enough, given that the roomiest is."""
    found = together.totals(roomy)
    low, high = 0, len(counts)
    while low < high:
        middle = (low + high) // 2
        tried = together.totals(replace(roomy, max_checkpoints=counts[middle]))
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
