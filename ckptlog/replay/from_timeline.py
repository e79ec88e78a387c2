"""A run of the timeline as input of the replay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from statistics import median

from ckptlog.replay.inputs import Adopt, Answer, Clear, Load, Op, OpKind, Run, Save, ShiftStep, Step, Turn
from ckptlog.server.policy import MemoryKind, Settings
from ckptlog.server.rules import Rules, rules_for
from ckptlog.timeline import model
from ckptlog.timeline.ranges import HALF_DIGIT

#: the server's own defaults where the log does not show them
N_BATCH, N_UBATCH = 2048, 512
#: so many named checkpoints tell one cache entry from another
MANY = 4


class NotReplayable(Exception):
    """The log does not show what a replay needs; the text says what, in one sentence."""


def run_from_timeline(run: model.Run) -> Run:
    """The run's settings and its turns in the order of the log.

    NotReplayable if the kind of memory, or a sliding window's size, is not known.
    """
    rules = rules_for(run.build_min or None, run.build_max)
    settings = _settings(run, rules[-1])
    result = Run(
        settings,
        rules,
        n_slots=run.n_slots or 1,
        n_ctx_slot=run.n_ctx_slot,
        n_cells=run.swa_cells,
        unified=bool(run.kv_unified),
    )
    if settings.memory == "swa":
        result.cell_mib = cell_mib(run, rules[-1])
    else:
        result.checkpoint_mib = run.cp_size_mib
    result.steps = _Steps(run, settings).build()
    return result


def _settings(run: model.Run, rules: Rules) -> Settings:
    memory = run.memory
    if run.fork is not None:
        raise NotReplayable("it is of a fork (or of 2024), whose rules for checkpoints are not llama.cpp's")
    if memory == "unknown":
        raise NotReplayable(
            "the log does not show what kind of memory the model has (its loading lines need -lv 4)"
        )
    n_swa = run.n_swa or 0
    if memory == "swa" and not n_swa:
        raise NotReplayable("the log does not show the size of the sliding window (n_swa; -lv 4 does)")
    kind: MemoryKind = memory
    count = run.checkpoints_max
    if run.checkpoints_enabled is False or (count is None and _makes_none(run)):
        count = 0
    settings = Settings(
        kind,
        rules.default_max if count is None else count,
        min_step=rules.default_min_step if run.checkpoints_min_step is None else run.checkpoints_min_step,
        every_nt=rules.default_every_nt,
        n_swa=n_swa,
        swa_full=run.swa_full,
        n_batch=run.n_batch or max(N_BATCH, run.cuts.largest if run.cuts is not None else 0),
        n_ubatch=run.n_ubatch or N_UBATCH,
    )
    if rules.create in ("near-end", "near-end-n0"):
        return replace(settings, every_nt=_every_nt(run, settings))
    return settings


def _makes_none(run: model.Run) -> bool:
    """Builds that print no setting: not one checkpoint, and no cut before a prompt's end, in several
    visible turns."""
    visible = [turn for turn in run.turns if turn.list_visible and turn.batch_starts and turn.n_prompt]
    if len(visible) < 2 or any(turn.created for turn in visible):
        return False
    return not any(
        turn.n_prompt - 4 in turn.batch_starts[1:] for turn in visible if turn.n_prompt is not None
    )


def _every_nt(run: model.Run, settings: Settings) -> int:
    """--checkpoint-every-n-tokens, which no line prints: the least distance at which a checkpoint was
    made in mid-prompt, else the default."""
    found = []
    for turn in run.turns:
        if turn.n_prompt is None or turn.before is None:
            continue
        newest = max((c.n_tokens for c in turn.before if c not in turn.invalidated), default=0)
        ends = dict(pairwise(turn.batch_starts))
        for checkpoint in turn.created:
            n_end = ends.get(checkpoint.n_tokens, turn.n_prompt)
            if turn.n_prompt >= n_end + settings.n_ubatch:
                found.append(checkpoint.n_tokens - newest)
            newest = checkpoint.n_tokens
    return min(found, default=settings.every_nt)


def cell_mib(run: model.Run, rules: Rules) -> float | None:
    """MiB of one cell of sliding-window memory, as in its stored checkpoints; null where the log has no size."""
    sizes = []
    for checkpoint in run.checkpoints[:1000]:
        if checkpoint.size_mib and checkpoint.pos_min is not None and checkpoint.pos_max is not None:
            n_cells = checkpoint.pos_max - checkpoint.pos_min + 1
            if rules.stores_window_only and run.n_swa:
                n_cells = min(n_cells, run.n_swa)
            if n_cells > 0:  # (not in a damaged log)
                sizes.append(checkpoint.size_mib / n_cells)
    return median(sizes) if sizes else None


class _Steps:
    """Builds the steps of a run: its turns, and between them where a slot's content came from.

    The timeline says that content was loaded, not which; it is the content of a slot at the end of an
    earlier turn, of that length and with those checkpoints.
    """

    def __init__(self, run: model.Run, settings: Settings) -> None:
        self.run = run
        self.settings = settings
        self.held: dict[int, int] = {}
        self.by_slot: dict[int, list[model.Turn]] = {}
        #: slots whose checkpoints are not known, neither from the log nor by replay from an empty slot
        self.unknown: set[int] = set()
        #: ends of turns by the tokens then held, in order
        self.ends: dict[int, list[model.Turn]] = {}
        self.loaded: set[int] = set()
        self.parents: dict[int, list[int]] = {}

    def build(self) -> list[Step]:
        turns = sorted(self.run.turns, key=lambda turn: turn.no)
        for turn in turns:
            if turn.slot is not None:
                self.by_slot.setdefault(turn.slot, []).append(turn)
            if turn.child_of is not None and turn.slot is not None:
                self.parents.setdefault(turn.child_of, []).append(turn.slot)
        busy = _overlapping(turns)
        steps: list[Step] = []
        origins: dict[int, int] = {}
        for turn in turns:
            if turn.slot is None:
                continue
            if turn.is_child:
                if turn.task is not None:
                    steps.append(Answer(turn.slot, turn.task, turn.n_released))
                self._ended(turn)
                continue
            if not self.run.start_seen and turn.slot not in self.held and not turn.before_known:
                self.unknown.add(turn.slot)
            self._origin(turn, steps)
            converted = self._turn(turn, turn.no in busy)
            if converted is not None:
                steps.append(converted)
                origins[turn.no] = len(steps)
                if converted.n_common == 0:
                    # nothing in common: whatever the list held is gone
                    self.unknown.discard(turn.slot)
                self._ended(turn)
        return _with_saves(steps, origins)

    def _ended(self, turn: model.Turn) -> None:
        assert turn.slot is not None
        if turn.n_released is None:
            self.held.pop(turn.slot, None)
            return
        self.held[turn.slot] = turn.n_released
        self.ends.setdefault(turn.n_released, []).append(turn)

    def _origin(self, turn: model.Turn, steps: list[Step]) -> None:
        """Steps that bring the slot to the content this turn found."""
        assert turn.slot is not None
        slot, held = turn.slot, self.held.get(turn.slot, 0 if self.run.start_seen else None)
        known = _positions(turn.before) if turn.before is not None else ()
        if turn.cache_loaded or turn.content_from == "slot-file":
            n_tokens = self._n_loaded(turn)
            source = self._source(n_tokens, turn)
            if source is not None:
                steps.append(Load(slot, source.no, file=not turn.cache_loaded))
                self.unknown.discard(slot)
            else:
                n_tokens = _n_held(turn) if n_tokens is None else n_tokens
                steps.append(Adopt(slot, n_tokens, known))
                self._adopted(turn)
            self._now_holds(slot, n_tokens)
            return
        if _more_than_held(turn):
            # more than the slot held: a cache entry or file came in without a visible line
            steps.append(Adopt(slot, turn.n_cached or 0))
            self.unknown.add(slot)
            self._now_holds(slot, turn.n_cached)
            return
        if turn.was_empty or turn.n_held_slot == 0:
            if held != 0:
                slept = any(why == "sleep" for why, _, _ in turn.list_lost)
                # a slot that is cleared may keep its list (up to b10001), a new one has none
                steps.append(Adopt(slot, 0) if slept else Clear(slot))
                self._now_holds(slot, 0)
            self.unknown.discard(slot)
            return
        if turn.n_held_slot is not None and turn.n_held_slot != held:
            if held is not None and any(
                why in ("cleared", "purged", "sleep") for why, _, _ in turn.list_lost
            ):
                steps.append(Clear(slot))
            steps.append(Adopt(slot, turn.n_held_slot, known))
            self._adopted(turn)
            self._now_holds(slot, turn.n_held_slot)

    def _adopted(self, turn: model.Turn) -> None:
        assert turn.slot is not None
        if turn.before_known:
            self.unknown.discard(turn.slot)
        else:
            self.unknown.add(turn.slot)

    def _n_loaded(self, turn: model.Turn) -> int | None:
        """Tokens of what was loaded. Where the common prefix contradicts the length that was noted, the
        one length that gives the printed f_keep."""
        n_tokens = turn.n_held if turn.n_held is not None else turn.n_held_slot
        found = turn.selection.found if turn.selection is not None else None
        if not turn.cache_loaded or found is None or not turn.n_common:
            return n_tokens

        def fits(n: int) -> bool:
            return n > 0 and abs((turn.n_common or 0) / n - found[0]) <= HALF_DIGIT

        if n_tokens is not None and fits(n_tokens):
            return n_tokens
        fitting = [n for n in self.ends if fits(n)]
        return fitting[0] if len(fitting) == 1 else n_tokens

    def _now_holds(self, slot: int, n_tokens: int | None) -> None:
        if n_tokens is None:
            self.held.pop(slot, None)
        else:
            self.held[slot] = n_tokens

    def _source(self, n_tokens: int | None, turn: model.Turn) -> model.Turn | None:
        """The turn at whose end some slot held what this turn was given."""
        if n_tokens is None:
            return None
        candidates = [end for end in reversed(self.ends.get(n_tokens, [])) if end.no not in self.loaded]
        if len(candidates) > 1:
            # several of that length: later lines name checkpoints that came with the content
            named = self._came_with(turn)
            fitting = [end for end in candidates if named <= {c.n_tokens for c in end.after or ()}]
            candidates = fitting or candidates
            if turn.before is not None and turn.before_known and not named:
                wanted = [c.n_tokens for c in turn.before]
                fitting = [end for end in candidates if [c.n_tokens for c in end.after or ()] == wanted]
                candidates = fitting or candidates
        if not candidates:
            return None
        if turn.cache_loaded:
            self.loaded.add(candidates[0].no)
        return candidates[0]

    def _came_with(self, turn: model.Turn) -> set[int]:
        """n_tokens of checkpoints that the slot's next turns name and that none of them made."""
        assert turn.slot is not None
        named: set[int] = set()
        made: set[int] = set()
        own = self.by_slot[turn.slot]
        for later in own[bisect_left(own, turn.no, key=lambda other: other.no) :]:
            if later is not turn and (
                later.cache_loaded or later.content_from == "slot-file" or later.was_empty
            ):
                break
            lists = (later.invalidated, later.thinned, later.evicted, later.superseded)
            named.update(c.n_tokens for gone in lists for c in gone if c.task != later.task)
            if later.restored is not None:
                named.add(later.restored.n_tokens)
            named -= made
            made.update(c.n_tokens for c in later.created)
            if len(named) >= MANY:
                break
        return named

    def _turn(self, turn: model.Turn, shared: bool) -> Turn | None:
        """None for a refused request, and for a turn whose prompt size is unknown."""
        if turn.n_prompt is None or turn.slot is None or turn.task is None:
            return None
        if not turn.batch_starts and turn.n_cached is None:
            return None
        if turn.error_reason is not None and not turn.batch_starts:
            return None
        n_common = turn.n_common
        if turn.chunk_end is not None:
            n_common = turn.chunk_end
        list_known = self.settings.memory == "plain" or turn.before_known or turn.slot not in self.unknown
        if turn.swapped is not None:
            self.unknown.add(turn.slot)  # no rule tells what a slot holds that was swapped in the middle of its work
        if _more_than_held(turn) or turn.swapped is not None:
            n_common, list_known = None, False
        n_ended = None
        if turn.n_released is not None and turn.n_released < turn.n_prompt and not turn.shifts:
            n_ended = turn.n_released
        visible = bool(turn.list_visible)
        return Turn(
            slot=turn.slot,
            task=turn.task,
            n_prompt=turn.n_prompt,
            n_common=n_common,
            n_common_range=turn.n_common_range,
            n_cached=turn.n_cached,
            n_after=turn.n_released,
            cache_prompt=not _ignores_cache(turn),
            completion=not _is_embedding(turn),
            batch_starts=tuple(turn.batch_starts) if turn.batch_starts else None,
            shared=shared or bool(turn.media_starts),
            media_starts=tuple(turn.media_starts),
            ops=_ops(turn) if visible and turn.batch_starts else None,
            shifts=tuple(ShiftStep(s.n_keep + s.n_left, s.n_keep, s.n_discard) for s in turn.shifts),
            n_ended=n_ended,
            copies_to=tuple(self.parents.get(turn.task, ())),
            list_known=list_known,
            prompt_ms=turn.prompt_ms,
        )


def _n_held(turn: model.Turn) -> int:
    """How many tokens the slot held, where only the ratio ``f_keep`` of the slot's choice tells; else the
    common prefix, or one more if the turn had to search."""
    n_common = turn.n_common or turn.n_cached or 0
    f_keep = turn.selection.f_keep if turn.selection is not None else None
    if f_keep:
        return max(n_common, round(n_common / f_keep))
    return n_common + (turn.forced is not None or bool(turn.checks))


def _more_than_held(turn: model.Turn) -> bool:
    """Did it reuse more than its prompt shared with the slot (and no restore explains it)?"""
    if turn.n_common is None or turn.n_cached is None or turn.chunk_end is not None:
        return False
    return turn.n_cached > turn.n_common and turn.restored is None


def _with_saves(steps: list[Step], origins: dict[int, int]) -> list[Step]:
    """Put a save behind every turn whose end is loaded later."""
    wanted = {step.key for step in steps if isinstance(step, Load)}
    behind = {at: no for no, at in origins.items() if no in wanted}
    result: list[Step] = []
    for at, step in enumerate(steps, 1):
        result.append(step)
        if at in behind and isinstance(step, Turn):
            result.append(Save(step.slot, behind[at]))
    return result


def _is_embedding(turn: model.Turn) -> bool:
    """Embeddings and rerank evaluate a prompt and sample nothing."""
    if not turn.batch_starts or turn.prompt_done or turn.created or turn.n_generated:
        return False
    return turn.ended == "release" and turn.n_released == turn.n_prompt


def _ignores_cache(turn: model.Turn) -> bool:
    """``cache_prompt: false``: something in common, nothing reused, and neither a search nor a
    ``forcing`` line."""
    if not turn.list_visible or not turn.batch_starts or turn.batch_starts[0] != 0:
        return False
    return bool(turn.n_common) and turn.forced is None and turn.restored is None and not turn.checks


def _positions(checkpoints: Iterable[model.Checkpoint]) -> tuple[tuple[int, int, int], ...]:
    return tuple(
        (
            c.n_tokens,
            c.pos_min if c.pos_min is not None else c.n_tokens - 1,
            c.pos_max if c.pos_max is not None else c.n_tokens - 1,
        )
        for c in checkpoints
    )


def _ops(turn: model.Turn) -> tuple[Op, ...]:
    """What the log shows of the list in this turn, kind by kind."""
    found: list[Op] = []
    if turn.checks:
        found.append(Op("checked", len(turn.checks)))
    if turn.restored is not None:
        found.append(Op("restored", turn.restored.n_tokens))
    if turn.forced is not None:
        found.append(Op("forced", 0))
    kinds: list[tuple[OpKind, list[model.Checkpoint]]] = [
        ("invalidated", turn.invalidated),
        ("thinned", turn.thinned),
        ("evicted", turn.evicted),
        ("superseded", turn.superseded),
        ("created", turn.created),
    ]
    for kind, checkpoints in kinds:
        found += [Op(kind, c.n_tokens) for c in checkpoints]
    return tuple(found)


def _overlapping(turns: list[model.Turn]) -> set[int]:
    """Numbers of the turns during which another slot was at work."""
    found: set[int] = set()
    running: list[model.Turn] = []
    for turn in sorted(turns, key=lambda turn: turn.first_line):
        running = [other for other in running if other.last_line > turn.first_line]
        if running:
            found.add(turn.no)
            found.update(other.no for other in running)
        running.append(turn)
    return found
