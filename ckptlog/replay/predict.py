"""What every turn of a followed run would have reused under other flags or another build.

The conversation is the log's: prompt lengths, common prefixes, answers. Where the answer hangs on a
user start that the log never cut, it is a range; each checkpoint that may or may not have been there
is tracked as a doubt, so that a range holds the truth and a number is one. One coincidence is beyond
that: a last message of just such a length that its start falls on a cut near the prompt's end looks
like that cut alone, and the message before it is taken for the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptlog.replay.content import Span
from ckptlog.replay.follow import Followed, Learned, agrees
from ckptlog.replay.inputs import Adopt, Between, Clear, Load, Save, Turn
from ckptlog.replay.world import Played, World
from ckptlog.server import policy
from ckptlog.server.policy import Checkpoint, Settings, Slot
from ckptlog.server.rules import Rules
from ckptlog.server.swa import NoFreeCell


@dataclass(slots=True)
class Predicted:
    """One turn under other flags: ``n_cached`` if certain, else ``low``/``high`` bound it.

    ``likely``: with the user starts that are known and no others, inside the bounds; ``restored``:
    n_tokens of the checkpoint it resumes from then; ``n_common`` as replayed. ``as_logged``: asked of the
    log's own flags only: whether the reuse and the list came out as the log shows them, with the batches cut
    where the rules say and not where the log does.
    """

    turn: Turn
    n_common: int | None
    likely: int
    low: int
    high: int
    restored: int | None = None
    as_logged: bool = True

    @property
    def n_cached(self) -> int | None:
        return self.low if self.low == self.high else None


@dataclass(slots=True)
class Prediction:
    """All turns, and what the checkpoints would have cost: the most held at once, by slot."""

    rules: Rules
    settings: Settings
    turns: list[Predicted] = field(default_factory=list)
    bounded: bool = True
    #: by slot: most checkpoints at once, and most cells in them (SWA)
    n_most: dict[int, int] = field(default_factory=dict)
    cells_most: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Doubt:
    """What is uncertain about one slot: checkpoints that may not exist (by identity), and stretches in
    which the log's silence may hide further ones."""

    shaky: dict[int, Checkpoint] = field(default_factory=dict)
    maybe: list[Span] = field(default_factory=list)
    #: the live memory itself may differ (SWA after a restore that is only bounded)
    memory: bool = False

    def copy(self) -> Doubt:
        return Doubt(dict(self.shaky), list(self.maybe), self.memory)


def predict(
    followed: Followed, settings: Settings, rules: Rules | None = None, *, bounds: bool = True
) -> Prediction:
    """Replay the run under ``settings`` (and another build's ``rules``); see ``Predicted``.

    Without ``bounds`` only ``likely`` is worked out: enough to rank settings, and faster.
    """
    return _Predictor(followed, settings, rules or followed.rules, bounds).play()


def _open(learned: Learned) -> Predicted:
    """A turn of which nothing can be said: as likely as it was, anything in common might be reused."""
    turn = learned.turn
    most = turn.n_prompt if learned.n_common is None else learned.n_common
    return Predicted(turn, learned.n_common, turn.n_cached or 0, 0, most, as_logged=False)


class _Predictor:
    def __init__(self, followed: Followed, settings: Settings, rules: Rules, bounds: bool) -> None:
        self.followed = followed
        self.bounds = bounds
        self.world = World(followed.run, rules, settings)
        self.rules = rules
        self.settings = settings
        self.result = Prediction(rules, settings, bounded=bounds)
        self.doubts: dict[int, Doubt] = {}
        self.stored: dict[object, Doubt] = {}
        #: by slot: the tokens that a request left in mid-prompt had in the log, where it comes further here
        self.left_at: dict[int, int] = {}
        self.is_swa = settings.memory == "swa"
        self.is_own = settings == followed.run.settings and self.rules is followed.rules

    def play(self) -> Prediction:
        learned = iter(self.followed.learned)
        try:
            for step in self.followed.run.steps:
                if isinstance(step, Turn):
                    self._turn(next(learned))
                else:
                    self._between(step)
        except NoFreeCell:
            # what the server would do then hangs on more than the log shows
            for left in self.followed.learned[len(self.result.turns) :]:
                self.result.turns.append(_open(left))
        return self.result

    def _between(self, step: Between) -> None:
        self.world.other_step(step)
        if not isinstance(step, Save):
            self.left_at.pop(step.slot, None)
        if isinstance(step, Clear | Adopt):
            if not self.world.slot(step.slot).checkpoints:
                self.doubts.pop(step.slot, None)
        elif isinstance(step, Save):
            if step.slot in self.doubts:
                self.stored[step.key] = self.doubts[step.slot].copy()
        elif isinstance(step, Load):
            self.doubts.pop(step.slot, None)
            if step.key in self.stored:
                self.doubts[step.slot] = self.stored[step.key].copy()

    def _turn(self, learned: Learned) -> None:
        turn = learned.turn
        if learned.unseen is not None:
            self._adopt_unseen(learned.unseen)
        slot = self.world.slot(turn.slot)
        doubt = self.doubts.get(turn.slot)
        unsure = learned.n_common is None
        n_common = learned.n_common
        if n_common is None:
            n_common = turn.n_cached or 0
        left_at = self.left_at.pop(turn.slot, None)
        if left_at is not None and (unsure or n_common < left_at):
            left_at = None
        if left_at is not None:
            # the prompt has all that was there in the log: as a rule it is the request that was left, sent again
            n_common = min(slot.n_tokens, turn.n_prompt)
        # the doubts need the list as it was before the turn
        before = list(slot.checkpoints) if doubt or unsure or left_at is not None else []
        held = slot.n_tokens
        pos_min = slot.memory.pos_min() if doubt and doubt.memory else -1
        played = self.world.play(turn, n_common, learned.user_starts, None, learned.foreign_cuts)
        n_cached = played.n_cached
        predicted = Predicted(turn, learned.n_common, n_cached, n_cached, n_cached)
        if self.is_own:
            predicted.as_logged = agrees(self.rules, turn, played)
        if played.start.restored:
            predicted.restored = played.start.restored.n_tokens
        if self.bounds and not turn.list_known and played.start.threshold is not None:
            predicted.low, predicted.high = 0, max(n_cached, n_common)
        if unsure and self.bounds:
            low, high = turn.n_common_range or (0, min(held, turn.n_prompt))
            predicted.low, predicted.high = 0, min(high, turn.n_prompt)
            doubt = self.doubts.setdefault(turn.slot, Doubt())
            doubt.shaky.update({id(c): c for c in before if c.n_tokens > low})
        elif left_at is not None and self.bounds:
            predicted.low, predicted.high = left_at if self.settings.memory == "plain" else 0, turn.n_prompt
            doubt = self.doubts.setdefault(turn.slot, Doubt())
            doubt.shaky.update({id(c): c for c in before if c.n_tokens > left_at})
        elif doubt:
            self._bound(predicted, played, doubt, before, n_common, held, pos_min)
        self.result.turns.append(predicted)
        if self.bounds and (doubt or learned.hidden):
            self._doubts_after(learned, played, predicted, slot)
        self._cost(turn.slot, slot)
        if turn.n_ended is not None and slot.n_tokens > turn.n_ended:
            self.left_at[turn.slot] = turn.n_ended

    def _adopt_unseen(self, unseen: Adopt) -> None:
        """A slot file came in; the checkpoints the slot keeps (old builds) are those of this replay."""
        kept: tuple[tuple[int, int, int], ...] = ()
        if self.rules.slot_file == "keep":
            kept = tuple((c.n_tokens, c.pos_min, c.pos_max) for c in self.world.slot(unseen.slot).checkpoints)
        self.world.other_step(Adopt(unseen.slot, unseen.n_tokens, kept))
        self.doubts.pop(unseen.slot, None)

    def _bound(
        self,
        predicted: Predicted,
        played: Played,
        doubt: Doubt,
        before: list[Checkpoint],
        n_common: int,
        held: int,
        pos_min: int,
    ) -> None:
        """Widen the prediction by what may be missing, and by what may be there unseen."""
        start = played.start
        rules, settings = self.rules, self.settings
        if doubt.memory and 0 < n_common < held and pos_min < n_common:
            predicted.low, predicted.high = 0, max(predicted.high, n_common)
            return
        if start.threshold is None:
            return
        limit = start.threshold
        if start.restored is not None and id(start.restored) in doubt.shaky:
            firm = [c for c in before if id(c) not in doubt.shaky and policy.fits(rules, c, limit, n_common)]
            predicted.low = policy.resume_point(rules, firm[-1], n_common) if firm else 0
        # an unseen checkpoint must be usable: at most the common prefix (or the threshold's position)
        top = n_common if settings.memory == "swa" or n_common < predicted.turn.n_prompt else n_common - 1
        for low, high in doubt.maybe:
            point = min(high - 1, top)
            if point >= low:
                predicted.high = max(predicted.high, point)
                if self.is_swa:
                    # newest first: an unseen one may also stand before a better one that was found
                    predicted.low = min(predicted.low, max(0, low - 1))

    def _doubts_after(self, learned: Learned, played: Played, predicted: Predicted, slot: Slot) -> None:
        """Carry the doubts over the turn and add those it raises."""
        number = learned.turn.slot
        doubt = self.doubts.get(number) or Doubt()
        alive = {id(c) for c in slot.checkpoints}
        doubt.shaky = {key: c for key, c in doubt.shaky.items() if key in alive}
        reach = predicted.high + 1 if self.rules.invalidate == "beyond" else max(predicted.high, 0) + 1
        doubt.maybe = [(low, min(high, reach + 1)) for low, high in doubt.maybe if low <= reach]
        if predicted.high == 0 and learned.n_common == 0:
            doubt.maybe, doubt.shaky, doubt.memory = [], {}, False
        made = [added.made for added in played.added]
        if predicted.low != predicted.high:
            # whatever was made at or before the highest possible reuse point may not have been
            doubt.shaky.update({id(c): c for c in made if c.n_tokens <= predicted.high})
            if self.is_swa:
                # evaluation began one token before whichever checkpoint it was, and may have made one there
                doubt.maybe.append((max(1, predicted.low), predicted.high + 1))
            doubt.memory = self.is_swa
        doubt.maybe += self._hidden_cuts(learned, played, doubt)
        if doubt.maybe:
            self._crowding(doubt, slot, made, learned)
        doubt.shaky = {key: c for key, c in doubt.shaky.items() if key in {id(c) for c in slot.checkpoints}}
        if learned.turn.shifts and self.rules.clear_drops_list:
            doubt.maybe, doubt.shaky = [], {}
        if doubt.maybe or doubt.shaky or doubt.memory:
            self.doubts[number] = doubt
        else:
            self.doubts.pop(number, None)

    def _hidden_cuts(self, learned: Learned, played: Played, doubt: Doubt) -> list[Span]:
        """Stretches evaluated in this turn in which an unseen user start would have made a checkpoint."""
        rules = self.rules
        if not learned.hidden or not self.world.makes or rules.user_cuts == "none":
            return []
        last = learned.user_starts[-1] if rules.user_cuts == "last" and learned.user_starts else 0
        spans: list[Span] = []
        starts = played.batch_starts
        ends = [*starts[1:], learned.turn.n_prompt]
        for n0, n_end, newest in zip(starts, ends, played.newest_after, strict=True):
            if n_end <= last:
                continue
            # beyond the distance test of the newest checkpoint that is sure to be there
            far = -1
            if newest is not None and id(newest) not in doubt.shaky:
                far = newest.n_tokens + self.settings.min_step
            for low, high in learned.hidden:
                # an unseen last message obeys no distance
                is_free = not learned.user_starts or high > learned.user_starts[-1]
                low = max(low, n0 + 1, last + 1, 0 if is_free else far + 1)
                high = min(high, n_end)
                if low < high:
                    spans.append((low, high))
        return spans

    def _crowding(self, doubt: Doubt, slot: Slot, made: list[Checkpoint], learned: Learned) -> None:
        """Unseen checkpoints may have crowded out known ones: by the distance test, by thinning, by the cap."""
        settings, rules = self.settings, self.rules
        step = settings.min_step
        n_prompt = learned.turn.n_prompt
        last = learned.user_starts[-1] if learned.user_starts else None
        if step > 0:
            for checkpoint in made:
                n0 = checkpoint.n_tokens
                always = n0 == last or n0 >= n_prompt - 4 - settings.n_ubatch
                if not (always and rules.near_end_ignores_step) and any(
                    low < n0 and n0 <= high - 1 + step for low, high in doubt.maybe
                ):
                    doubt.shaky[id(checkpoint)] = checkpoint
        n_unseen = sum((high - low) // max(2, step) + 1 for low, high in doubt.maybe)
        crowded = len(slot.checkpoints) + n_unseen + 1 >= settings.max_checkpoints
        if crowded or (rules.thin == "always" and step > 0):
            newest = made[-1:] if made else []
            for checkpoint in slot.checkpoints:
                if checkpoint not in newest:
                    doubt.shaky[id(checkpoint)] = checkpoint

    def _cost(self, number: int, slot: Slot) -> None:
        most = self.result.n_most
        n = len(slot.checkpoints)
        if n > most.get(number, 0):
            most[number] = n
        if self.is_swa:
            n_cells = sum(length for c in slot.checkpoints for _, length in c.state)
            cells = self.result.cells_most
            cells[number] = max(cells.get(number, 0), n_cells)
