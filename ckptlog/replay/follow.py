"""Replay a run under its own flags, compare with what the log shows, and learn what only cuts tell.

Two things come out: how many turns the model reproduces (the licence for any what-if), and for each
turn the user starts known and the stretches in which the log hides some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ckptlog.replay.content import EMPTY, Content, Contents, Span, shifted
from ckptlog.replay.inputs import Adopt, Between, Clear, Load, Op, Run, Save, Turn
from ckptlog.replay.world import Played, World
from ckptlog.server import policy
from ckptlog.server.policy import Slot
from ckptlog.server.rules import Rules
from ckptlog.server.swa import NoFreeCell


@dataclass(slots=True)
class Learned:
    """What the replay of one turn needs under other flags."""

    turn: Turn
    #: common prefix used; None if neither the log nor the outcome gives it
    n_common: int | None
    user_starts: tuple[int, ...] = ()
    hidden: tuple[Span, ...] = ()
    #: cuts that the tokens of other slots caused
    foreign_cuts: tuple[int, ...] = ()
    #: a change of the slot that left no line, inferred because only it explains the turn
    unseen: Adopt | None = None


@dataclass(slots=True)
class Mismatch:
    """Where the model and the log part: the turn and both sides."""

    turn: Turn
    #: by the model; None if it could not go on (its sliding-window cache was full)
    n_cached: int | None
    expected: tuple[Op, ...] | None
    found: tuple[Op, ...]


@dataclass(slots=True)
class Followed:
    """The outcome of ``follow``: ``n_right`` of ``n_judged`` turns reproduced under ``rules``."""

    run: Run
    rules: Rules
    learned: list[Learned] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    n_judged: int = 0

    @property
    def n_right(self) -> int:
        return self.n_judged - len(self.mismatches)

    @property
    def reproduced(self) -> bool:
        """Whether every turn that can be judged came out as in the log."""
        return not self.mismatches


def follow(run: Run) -> Followed:
    """Replay under the run's own flags; of several possible builds the one that reproduces the most
    turns, the newest of equals."""
    return follow_all(run)[0]


def follow_all(run: Run) -> list[Followed]:
    """The same with every set of rules that reproduces as many turns as the best does, newest first:
    where the log's wording and its lists leave several builds open, they may differ under other flags."""
    found = [follow_with(run, rules) for rules in distinct(run)]
    most = max(followed.n_right for followed in found)
    return [followed for followed in found if followed.n_right == most]


def distinct(run: Run) -> list[Rules]:
    """The run's possible rules, newest first, without those that differ only in what this run never does."""
    loads = any(isinstance(step, Load) and step.file for step in run.steps)
    embeds = any(not turn.completion for turn in run.turns)
    found: dict[Rules, Rules] = {}
    for rules in reversed(run.rules):
        plain = replace(
            rules,
            first=0,
            default_max=0,
            default_every_nt=0,
            default_min_step=0,
            embedding_ignores_cache=embeds and rules.embedding_ignores_cache,
            slot_file="clear" if rules.slot_file == "carry" and not loads else rules.slot_file,
        )
        found.setdefault(plain, rules)
    return list(found.values())


def follow_with(run: Run, rules: Rules) -> Followed:
    """The same for one set of rules."""
    world = World(run, rules, run.settings)
    contents = Contents()
    result = Followed(run, rules)
    for step in run.steps:
        try:
            if isinstance(step, Turn):
                _turn(world, contents, step, result)
            else:
                world.other_step(step)
                _other(contents, step)
        except NoFreeCell:
            break
    # what the server threw out, or failed to restore, when its cells were full is not in the log
    for turn in run.turns[len(result.learned) :]:
        result.learned.append(Learned(turn, turn.n_common))
        if is_judged(turn, turn.n_common):
            result.n_judged += 1
            result.mismatches.append(Mismatch(turn, None, turn.ops, ()))
    return result


def _other(contents: Contents, step: Between) -> None:
    if isinstance(step, Clear | Adopt):
        contents.slots[step.slot] = EMPTY
    elif isinstance(step, Save):
        contents.stored[step.key] = contents.of(step.slot)
    elif isinstance(step, Load):
        contents.slots[step.slot] = contents.stored.get(step.key, EMPTY)


def _turn(world: World, contents: Contents, turn: Turn, result: Followed) -> None:
    n_common = turn.n_common
    if n_common is None:
        n_common = _common_from_outcome(world, turn)
    old = contents.of(turn.slot).head(n_common if n_common is not None else turn.n_cached or 0)
    starts, foreign = _user_starts(world, turn, old)
    slot = world.slot(turn.slot)
    before = (slot.n_tokens, list(slot.checkpoints), slot.memory.mark())
    played = world.play(turn, n_common or 0, starts, turn.batch_starts)
    learned = Learned(turn, n_common, starts, foreign_cuts=foreign)
    if not agrees(world.rules, turn, played) and turn.list_known and n_common is not None:
        # slot files come and go without a line up to b11434: would one explain it?
        after = (slot.n_tokens, slot.checkpoints, slot.memory.mark())
        slot.n_tokens, slot.checkpoints = before[0], before[1]
        slot.memory.undo(before[2])
        unseen = _unseen_file(world, turn, slot)
        world.other_step(unseen)
        again = world.play(turn, n_common, starts, turn.batch_starts)
        if agrees(world.rules, turn, again):
            played, learned.unseen = again, unseen
        else:
            slot.n_tokens, slot.checkpoints = after[0], after[1]
            slot.memory.undo(after[2])
    learned.hidden = _hidden(world, turn, old, starts, played)
    result.learned.append(learned)
    content = Content(starts, learned.hidden)
    for shift in turn.shifts:
        content = shifted(content, shift.n_keep, shift.n_discard)
    contents.slots[turn.slot] = content
    for number in turn.copies_to:
        contents.slots[number] = Content(starts, learned.hidden)
    _judge(turn, n_common, played, result)


def _unseen_file(world: World, turn: Turn, slot: Slot) -> Adopt:
    """The slot file that the turn appended to: just the common prefix, with what the build does to the
    list then."""
    kept = slot.checkpoints if world.rules.slot_file == "keep" else []
    return Adopt(turn.slot, turn.n_common or 0, tuple((c.n_tokens, c.pos_min, c.pos_max) for c in kept))


def _common_from_outcome(world: World, turn: Turn) -> int | None:
    """A plain reuse tells the common prefix: without a search the reuse point is it (or one less)."""
    if turn.n_cached is None:
        return None
    if turn.n_common_range is not None and turn.n_common_range[0] == turn.n_common_range[1]:
        return turn.n_common_range[0]
    searched = turn.ops is not None and any(op.kind in ("restored", "forced", "checked") for op in turn.ops)
    if turn.ops is not None and not searched and turn.n_cached > 0:
        return turn.n_cached
    return None


def _judge(turn: Turn, n_common: int | None, played: Played, result: Followed) -> None:
    if not is_judged(turn, n_common):
        return
    result.n_judged += 1
    if not agrees(result.rules, turn, played):
        result.mismatches.append(Mismatch(turn, played.n_cached, turn.ops, tuple(played.ops())))


def is_judged(turn: Turn, n_common: int | None) -> bool:
    """Does the log show enough of a turn to hold the model against it?"""
    return n_common is not None and turn.list_known and not (turn.n_cached is None and turn.ops is None)


def agrees(rules: Rules, turn: Turn, played: Played) -> bool:
    """Same reuse point and same list operations; the log's are kept kind by kind, and within a kind the
    order counts."""
    if turn.n_cached is not None and played.n_cached != turn.n_cached:
        return False
    if turn.ops is None:
        return True
    ops = [op for op in played.ops() if rules.prints_checks or op.kind != "checked"]
    return sorted(ops, key=_kind) == sorted(turn.ops, key=_kind)


def _kind(op: Op) -> str:
    return op.kind


def _user_starts(world: World, turn: Turn, old: Content) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The user starts of the prompt as far as known, and the cuts that other slots caused."""
    rules, settings = world.rules, world.settings
    if turn.chat is False or not turn.completion:
        return (), ()
    if turn.batch_starts is None:
        return old.starts, ()
    made = {op.n_tokens for op in turn.ops or () if op.kind == "created"}
    inherited = set(old.starts)
    new: list[int] = []
    foreign: list[int] = []
    either: list[int] = []
    starts = turn.batch_starts
    ends = [*starts[1:], turn.n_prompt if turn.n_ended is None else turn.n_ended]
    explained = _explained(world, turn)
    for at, (n0, n_end) in enumerate(zip(starts, ends, strict=True)):
        near_end = turn.n_prompt < n_end + settings.n_ubatch
        is_cut = at > 0 and n0 not in explained
        if n0 in inherited:
            continue
        if rules.user_cuts == "none":
            if is_cut:
                foreign.append(n0)
        elif n0 in made and not near_end:
            new.append(n0)
        elif is_cut and turn.shared and near_end and n0 in made:
            either.append(n0)
        elif is_cut and turn.shared and n0 not in made:
            foreign.append(n0)
        elif is_cut:
            new.append(n0)
    if either:
        # near the end a cut makes a checkpoint whoever caused it; a chat's last message always cuts
        if not new:
            new.append(either.pop(0))
        foreign = sorted(foreign + either)
    if not new and inherited and _was_raw(world, turn, old):
        return (), tuple(foreign)
    return tuple(sorted(inherited.union(new))), tuple(foreign)


def _explained(world: World, turn: Turn) -> set[int]:
    """Batch starts that n_batch and the cuts near the end account for."""
    rules, settings = world.rules, world.settings
    found: set[int] = set()
    starts = turn.batch_starts or ()
    for before, n0 in pairwise(starts):
        if n0 == before + settings.n_batch:
            found.add(n0)
    if world.makes and turn.completion:
        found.update(policy.tail_cuts(rules, settings, turn.n_prompt))
    return found


def _was_raw(world: World, turn: Turn, old: Content) -> bool:
    """A prompt that evaluates its last known user start again without a cut there, or begins exactly
    there without a checkpoint, has none: it did not go through a chat template."""
    starts = turn.batch_starts or ()
    if not starts or starts[0] > old.starts[-1]:
        return False
    if starts[0] < old.starts[-1]:
        return old.starts[-1] not in starts
    if not world.makes or turn.ops is None or world.rules.create != "user-start":
        return False
    n_end = starts[1] if len(starts) > 1 else turn.n_prompt
    near_end = turn.n_prompt < n_end + world.settings.n_ubatch
    return not near_end and not any(op == Op("created", starts[0]) for op in turn.ops)


def _hidden(
    world: World, turn: Turn, old: Content, starts: Sequence[int], played: Played
) -> tuple[Span, ...]:
    """Stretches of the prompt in which user messages may begin unseen."""
    if turn.chat is False or not turn.completion:
        return ()
    rules = world.rules
    begin = played.start.n_past if turn.batch_starts is None else turn.batch_starts[0]
    n_common = played.n_common
    if turn.batch_starts is None or not world.makes or rules.user_cuts == "none":
        # nothing evaluated in this turn shows any: what was unknown stays so, the rest is new
        return _joined([*old.hidden, (max(begin + 1, n_common), turn.n_prompt)])
    # what is evaluated again shows its user starts again, under another list
    spans = [(low, min(high, begin + 1)) for low, high in old.hidden if low <= begin]
    for low, high in _unseen(world, turn, starts, played):
        spans += [(max(low, a), min(high, b)) for a, b in (*old.hidden, (n_common, turn.n_prompt))]
    return _joined(spans)


def _unseen(world: World, turn: Turn, starts: Sequence[int], played: Played) -> list[Span]:
    """Stretches evaluated in this turn in which the build's rules would not cut at a user start."""
    cuts = world.rules.user_cuts
    if not starts or not played.batch_starts or cuts == "every":
        return []
    if cuts == "last":
        return [(played.batch_starts[0] + 1, starts[-1])]
    # "useful": within min_step of the newest checkpoint, unless it is the last message
    found: list[Span] = []
    ends = [*played.batch_starts[1:], turn.n_prompt]
    for n0, n_end, newest in zip(played.batch_starts, ends, played.newest, strict=True):
        if newest is not None and n0 < starts[-1]:
            found.append((n0 + 1, min(n_end, newest + world.settings.min_step + 1, starts[-1])))
    return found


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if low >= high:
            continue
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)
