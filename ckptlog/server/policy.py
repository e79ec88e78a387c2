"""What llama-server does to a slot's context checkpoints: pure rules over a slot's state.

Nothing here knows a log. The functions change the slot they are given and return what they did, in
the order in which the server does it: ``start_turn`` (reuse point, restore, invalidation),
``next_cut`` (where a batch ends), ``makes_checkpoint``/``add_checkpoint`` (creation, thinning,
eviction, superseding), and the events between turns (shift, clear, slot file, prompt cache).
Every choice by build comes from ``Rules``; the builds each holds for stand in builds.toml.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ckptlog.server.memory import SlotMemory, State
from ckptlog.server.rules import Rules
from ckptlog.server.swa import NoFreeCell

MemoryKind = Literal["plain", "swa", "hybrid", "recurrent"]

#: owner of a checkpoint that came out of a slot file
NO_TASK = -1


@dataclass(slots=True)
class Checkpoint:
    """A stored state of a slot: the first ``n_tokens`` tokens; never changed once made.

    ``pos_min``/``pos_max`` are what the server prints; ``task`` is the task that made it.
    """

    n_tokens: int
    pos_min: int
    pos_max: int
    task: int
    state: State = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags and model facts the rules look at. ``min_step``, ``every_nt``: tokens; ``n_swa``: the
    model's window (0: none); ``max_checkpoints``: ``--ctx-checkpoints``."""

    memory: MemoryKind
    max_checkpoints: int
    min_step: int = 0
    every_nt: int = -1
    n_swa: int = 0
    swa_full: bool = False
    n_batch: int = 2048
    n_ubatch: int = 512


@dataclass(slots=True)
class Slot:
    """One slot: its memory, how many tokens it holds, its checkpoints in the server's own order
    (that of creation; on SWA not always that of positions)."""

    memory: SlotMemory
    n_tokens: int = 0
    checkpoints: list[Checkpoint] = field(default_factory=list)


@dataclass(slots=True)
class Start:
    """How a turn began: ``n_past`` tokens reused; ``threshold`` and ``n_checked`` (checkpoints looked
    at) if the list was searched; what was restored, whether everything is processed again, and the
    checkpoints erased as invalidated."""

    n_past: int
    threshold: int | None = None
    n_checked: int = 0
    restored: Checkpoint | None = None
    forced: bool = False
    invalidated: list[Checkpoint] = field(default_factory=list)
    one_token: bool = False


@dataclass(slots=True)
class Added:
    """What making one checkpoint did to the list; ``size`` is its length afterwards."""

    made: Checkpoint
    thinned: list[Checkpoint]
    evicted: list[Checkpoint]
    superseded: list[Checkpoint]
    size: int


def makes_any(rules: Rules, settings: Settings) -> bool:
    """Whether completion tasks make checkpoints: only memories that can't drop a tail do, and SWA
    not under ``--swa-full``. Plain ones never (the log still says ``context checkpoints enabled``)."""
    if settings.max_checkpoints <= 0 or settings.memory == "plain":
        return False
    if settings.memory == "swa":
        return not settings.swa_full
    return rules.memories == "swa-recurrent"


def window(rules: Rules, settings: Settings) -> int:
    """W as the threshold uses it."""
    return 0 if settings.swa_full and rules.swa_full_drops_window else settings.n_swa


def threshold(rules: Rules, settings: Settings, n_past: int, n_prompt: int) -> int:
    """The position a state must reach back to (exclusive or inclusive: see ``match``)."""
    width = window(rules, settings)
    if rules.threshold == "tokens-window-at-least-1":
        width = max(1, width)
    elif rules.threshold == "position-less-1" or (
        rules.threshold == "position-less-1-if-whole" and n_past >= n_prompt
    ):
        width += 1
    return max(0, n_past - width)


def start_turn(
    rules: Rules, settings: Settings, slot: Slot, n_prompt: int, n_common: int, *, cached: bool = True
) -> Start:
    """Find the reuse point of a prompt of ``n_prompt`` tokens that shares ``n_common`` with the slot.

    ``cached`` False: the request says ``cache_prompt: false`` (nothing is reused or searched). The
    slot keeps its first ``n_past`` tokens and the checkpoints that survive.
    """
    n_past = n_common if cached else 0
    start = Start(n_past)
    limit = threshold(rules, settings, n_past, n_prompt)
    if 0 < n_past < slot.n_tokens or (0 < n_past == slot.n_tokens and rules.checks_whole_slot):
        pos_min = slot.memory.pos_min()
        # otherwise the live memory itself still reaches back far enough
        if pos_min > limit or (rules.search_at_threshold and pos_min == limit):
            _search(rules, slot, start, limit)
    _invalidate(rules, settings, slot, start, limit)
    return _finish(settings, slot, start, n_prompt)


def _search(rules: Rules, slot: Slot, start: Start, limit: int) -> None:
    """Newest first, the first that fits is restored; none: everything is processed again."""
    start.threshold = limit
    pos_next = start.n_past
    for checkpoint in reversed(slot.checkpoints):
        start.n_checked += 1
        if fits(rules, checkpoint, limit, pos_next):
            try:
                slot.memory.load(checkpoint.state, checkpoint.n_tokens)
            except NoFreeCell:
                break  # a failed restore counts as none found (or ends the process: see "restore-aborts")
            start.restored = checkpoint
            start.n_past = min(resume_point(rules, checkpoint, pos_next), slot.n_tokens)
            return
    start.forced = True
    start.n_past = 0
    if rules.invalidate == "window":
        # these builds drop the whole list here, without a line about it
        slot.checkpoints.clear()


def fits(rules: Rules, checkpoint: Checkpoint, limit: int, pos_next: int) -> bool:
    """Whether a checkpoint may be restored for a prompt that parts from the slot at ``pos_next``."""
    if rules.match_within_prefix and checkpoint.pos_max > pos_next:
        return False
    pos_min = checkpoint.pos_min
    if rules.match == "at-most":
        return pos_min <= limit
    return pos_min < limit or (pos_min == 0 and rules.match == "below-or-start")


def resume_point(rules: Rules, checkpoint: Checkpoint, n_past: int) -> int:
    """Tokens reused after a restore. On SWA one less than the checkpoint's n_tokens (its pos_max)."""
    if rules.resume == "pos-max":
        return min(n_past, checkpoint.pos_max)
    point = min(n_past, max(checkpoint.pos_min + 1, checkpoint.pos_max))
    if rules.resume == "n-tokens":
        return min(point, checkpoint.n_tokens)
    return point + 1 if rules.resume == "past-pos-max" else point


def _invalidate(rules: Rules, settings: Settings, slot: Slot, start: Start, limit: int) -> None:
    """The sweep: checkpoints that no longer belong to the slot's tokens (or, up to b8352, to its window)."""
    if rules.invalidate == "window":
        if settings.n_swa <= 0:
            return
        low = max(0, start.n_past - settings.n_swa)
        gone = [c for c in slot.checkpoints if c.pos_min > low]
        gone.reverse()
    elif rules.invalidate == "threshold":
        gone = [c for c in slot.checkpoints if c.pos_min > limit]
    else:
        n_past = start.n_past
        gone = [c for c in slot.checkpoints if c.pos_max > n_past]
    if gone:
        start.invalidated = gone
        dead = {id(c) for c in gone}
        slot.checkpoints = [c for c in slot.checkpoints if id(c) not in dead]


def _finish(settings: Settings, slot: Slot, start: Start, n_prompt: int) -> Start:
    """At least one token is evaluated; what lies behind the reuse point is dropped."""
    if start.n_past > 0 and start.n_past == n_prompt:
        start.n_past -= 1
        start.one_token = True
        if settings.memory in ("hybrid", "recurrent"):
            start.n_past = 0  # a recurrent state can't be cut back by a token: the memory is cleared
    slot.n_tokens = start.n_past
    slot.memory.drop_tail(start.n_past)
    return start


def tail_cuts(rules: Rules, settings: Settings, n_prompt: int) -> tuple[int, ...]:
    """Where a prompt is cut so that checkpoints can be made near its end, ascending: at T - 64, at
    T - min(n_batch, 512), or at T - min(n_batch, 4 + n_ubatch) and T - min(n_batch, 4)."""
    if rules.tail_cuts == "ubatch-and-4":
        return (
            n_prompt - min(settings.n_batch, 4 + settings.n_ubatch),
            n_prompt - min(settings.n_batch, 4),
        )
    if rules.tail_cuts == "512":
        return (n_prompt - min(settings.n_batch, 512),)
    return (n_prompt - 64,) if rules.tail_cuts == "64" else ()


def next_cut(
    rules: Rules,
    settings: Settings,
    slot: Slot,
    n_prompt: int,
    tails: Sequence[int] = (),
    user_starts: Sequence[int] = (),
) -> int:
    """Where the batch that begins at the slot's end will end, if no other slot shares it.

    ``tails``: see ``tail_cuts`` (empty where no checkpoints are made). ``user_starts``: ascending token
    indices at which user messages begin, as far as the server knows them (chat requests only). A cut at
    a user start is decided with the list as it is before this batch's own checkpoint (b9940 and later),
    so one that makes nothing can follow the first of a list.
    """
    n0 = slot.n_tokens
    end = min(n0 + settings.n_batch, n_prompt)
    for cut in tails:
        if n0 < cut < end:
            end = cut
    if not user_starts or rules.user_cuts == "none":
        return end
    last = user_starts[-1]
    if rules.user_cuts == "last":
        return last if n0 < last < end else end
    for at in range(bisect_right(user_starts, n0), len(user_starts)):
        cut = user_starts[at]
        if cut >= end:
            break
        if rules.user_cuts == "every" or _far_enough(settings, slot, cut, last):
            return cut
    return end


def _far_enough(settings: Settings, slot: Slot, n0: int, last_user: int | None) -> bool:
    """The distance test of a user start: the last message, an empty list, or min_step passed."""
    if n0 == last_user or not slot.checkpoints:
        return True
    return n0 > slot.checkpoints[-1].n_tokens + settings.min_step


def makes_checkpoint(
    rules: Rules,
    settings: Settings,
    slot: Slot,
    n_end: int,
    n_prompt: int,
    user_starts: Sequence[int] = (),
) -> bool:
    """Whether the state before the batch [slot.n_tokens, n_end) becomes a checkpoint.

    "Near the end" looks at where the batch ends (n_prompt < n_end + n_ubatch), not where it begins.
    Memory that holds nothing makes none. ``prompt-done`` builds (up to b6628) ask with
    n_end = n_prompt = slot.n_tokens, after the whole prompt.
    """
    n0 = slot.n_tokens
    if n0 <= 0:
        return False
    kind = rules.create
    newest = slot.checkpoints[-1] if slot.checkpoints else None
    if kind == "prompt-done":
        return n0 == n_prompt
    near_end = n_prompt < n_end + settings.n_ubatch
    if kind == "user-start":
        last = user_starts[-1] if user_starts else None
        if not near_end and not _is_in(user_starts, n0):
            return False
        return (near_end and rules.near_end_ignores_step) or _far_enough(settings, slot, n0, last)
    if kind == "last-user":
        last = user_starts[-1] if user_starts else None
        allowed = near_end if last is None else n0 == last or (near_end and n0 > last)
        return allowed and (newest is None or n0 > newest.n_tokens + settings.min_step)
    if kind == "final-batch":
        wanted = n_end == n_prompt
    else:
        since = n0 - (newest.n_tokens if newest else 0)
        wanted = near_end or (settings.every_nt > 0 and since >= settings.every_nt)
    if kind == "near-end-n0":
        return wanted and n_end >= 64 and (newest is None or n0 > newest.n_tokens + 64)
    pos_max = n0 - 1
    return wanted and pos_max >= 64 and (newest is None or pos_max > newest.pos_max + 64)


def _is_in(ascending: Sequence[int], value: int) -> bool:
    at = bisect_left(ascending, value)
    return at < len(ascending) and ascending[at] == value


def add_checkpoint(rules: Rules, settings: Settings, slot: Slot, task: int) -> Added:
    """Store the slot's state as its newest checkpoint, making room first.

    Thinning goes through the list in its own order and drops a checkpoint of ANOTHER task that lies
    within min_step of the last one kept; the first is the anchor. From b10865 it happens only while
    the list is one below full or more. Then the oldest go, until there is room; only then is one at the
    same n_tokens replaced, so a full list loses its oldest even where it would not have grown.
    """
    thinned: list[Checkpoint] = []
    evicted: list[Checkpoint] = []
    superseded: list[Checkpoint] = []
    room = settings.max_checkpoints
    if rules.thin == "always" or (rules.thin == "nearly-full" and len(slot.checkpoints) + 1 >= room):
        thinned = _thin(slot, task, settings.min_step, room if rules.thin == "nearly-full" else 0)
    n_over = len(slot.checkpoints) - room + 1
    if n_over > 0:
        evicted = slot.checkpoints[:n_over]
        del slot.checkpoints[:n_over]
    n_tokens = slot.n_tokens
    if rules.supersede:
        for checkpoint in slot.checkpoints:
            if checkpoint.n_tokens == n_tokens:
                superseded = [c for c in slot.checkpoints if c.n_tokens == n_tokens]
                slot.checkpoints = [c for c in slot.checkpoints if c.n_tokens != n_tokens]
                break
    memory = slot.memory
    made = Checkpoint(n_tokens, memory.pos_min(), n_tokens - 1, task, memory.store(rules.stores_window_only))
    slot.checkpoints.append(made)
    return Added(made, thinned, evicted, superseded, len(slot.checkpoints))


def _thin(slot: Slot, task: int, min_step: int, room: int) -> list[Checkpoint]:
    """Drop those too close to an earlier one; with ``room`` stop as soon as size + 1 < room."""
    size = len(slot.checkpoints)
    last = -1
    gone: list[Checkpoint] = []
    kept: list[Checkpoint] = []
    for at, checkpoint in enumerate(slot.checkpoints):
        if room and size + 1 < room:
            kept.extend(slot.checkpoints[at:])
            break
        if checkpoint.task != task and last >= 0 and checkpoint.n_tokens <= last + min_step:
            gone.append(checkpoint)
            size -= 1
        else:
            kept.append(checkpoint)
            last = checkpoint.n_tokens
    if gone:
        slot.checkpoints = kept
    return gone


def shift(rules: Rules, slot: Slot, n_keep: int, n_discard: int) -> None:
    """Context shift: tokens [n_keep, n_keep + n_discard) are deleted. From b10012 the checkpoints go
    too, silently; before, they stay as they are although the positions behind them have moved."""
    slot.memory.shift(n_keep, n_discard)
    slot.n_tokens -= n_discard
    if rules.clear_drops_list:
        slot.checkpoints = []


def clear(rules: Rules, slot: Slot) -> None:
    """The slot is emptied (erase action, purge, idle clear, failed loads). Up to b10001 its
    checkpoints stay and die at the next turn's sweep."""
    slot.memory.clear()
    slot.n_tokens = 0
    if rules.clear_drops_list:
        slot.checkpoints = []


@dataclass(frozen=True, slots=True)
class Stored:
    """A slot put away: in the RAM prompt cache, in a slot file, or for the copies of a prompt."""

    n_tokens: int
    state: State
    checkpoints: tuple[Checkpoint, ...]


def store(rules: Rules, slot: Slot) -> Stored:
    """What a save of the slot holds; the slot keeps everything."""
    return Stored(slot.n_tokens, slot.memory.store(rules.stores_window_only), tuple(slot.checkpoints))


def load_cached(slot: Slot, stored: Stored) -> None:
    """A prompt-cache hit, or the copy of a shared prompt: tokens, state and checkpoints come over,
    the slot's own are gone."""
    slot.memory.load(stored.state, stored.n_tokens)
    slot.n_tokens = stored.n_tokens
    slot.checkpoints = list(stored.checkpoints)


def load_slot_file(rules: Rules, settings: Settings, slot: Slot, stored: Stored) -> None:
    """A slot file is restored: up to b10001 the slot keeps its own (foreign) checkpoints, then none,
    from b11549 those of the file, the oldest dropped above the maximum, owned by no task."""
    slot.memory.load(stored.state, stored.n_tokens)
    slot.n_tokens = stored.n_tokens
    if rules.slot_file == "clear":
        slot.checkpoints = []
    elif rules.slot_file == "carry":
        room = max(0, settings.max_checkpoints)
        kept = stored.checkpoints[max(0, len(stored.checkpoints) - room) :] if room else ()
        slot.checkpoints = [Checkpoint(c.n_tokens, c.pos_min, c.pos_max, NO_TASK, c.state) for c in kept]
