"""A server in miniature: its slots and caches, moved by one step of the log after another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from ckptlog.replay.inputs import Adopt, Between, Clear, Load, Op, Run, Save, Turn
from ckptlog.server import policy
from ckptlog.server.memory import PlainMemory, RecurrentMemory, SlotMemory, State
from ckptlog.server.policy import Added, Checkpoint, Settings, Slot, Start, Stored
from ckptlog.server.rules import Rules
from ckptlog.server.swa import SwaCells, SwaMemory, swa_cells


@dataclass(slots=True)
class Played:
    """One turn as the model played it."""

    start: Start
    #: common prefix it was played with
    n_common: int = 0
    #: where its batches began
    batch_starts: list[int] = field(default_factory=list)
    #: for each, the newest checkpoint's n_tokens before the batch made its own (None: empty list)
    newest: list[int | None] = field(default_factory=list)
    #: and the newest checkpoint after it did (None: still an empty list)
    newest_after: list[Checkpoint | None] = field(default_factory=list)
    added: list[Added] = field(default_factory=list)

    @property
    def n_cached(self) -> int:
        """Tokens reused."""
        return self.start.n_past

    def ops(self) -> list[Op]:
        """What was done to the list, in the server's order."""
        start = self.start
        found: list[Op] = []
        if start.n_checked:
            found.append(Op("checked", start.n_checked))
        if start.restored:
            found.append(Op("restored", start.restored.n_tokens))
        if start.forced:
            found.append(Op("forced", 0))
        found += [Op("invalidated", c.n_tokens) for c in start.invalidated]
        for added in self.added:
            found += [Op("thinned", c.n_tokens) for c in added.thinned]
            found += [Op("evicted", c.n_tokens) for c in added.evicted]
            found += [Op("superseded", c.n_tokens) for c in added.superseded]
            found.append(Op("created", added.made.n_tokens))
        return found


class World:
    """The slots of a run under some rules and settings."""

    def __init__(self, run: Run, rules: Rules, settings: Settings) -> None:
        self.rules = rules
        self.settings = settings
        self.makes = policy.makes_any(rules, settings)
        self._shared_cells: SwaCells | None = None
        self.run = run
        self.slots: dict[int, Slot] = {}
        self.stored: dict[Hashable, Stored] = {}

    def slot(self, number: int) -> Slot:
        """The slot of that number; it begins empty."""
        if number not in self.slots:
            self.slots[number] = Slot(self._memory(number))
        return self.slots[number]

    def _memory(self, number: int) -> SlotMemory:
        settings, run = self.settings, self.run
        if settings.memory == "plain":
            return PlainMemory()
        if settings.memory != "swa":
            return RecurrentMemory()
        if run.unified:
            if self._shared_cells is None:
                self._shared_cells = self._cells(run.n_slots)
            return SwaMemory(self._shared_cells, number)
        return SwaMemory(self._cells(1))

    def _cells(self, n_sequences: int) -> SwaCells:
        run, settings = self.run, self.settings
        n_ctx = run.n_ctx_slot or 1 << 20
        if settings.swa_full:
            n_cells = swa_cells(n_ctx, n_ctx, 0)
        elif run.n_cells is not None and not run.settings.swa_full:
            n_cells = run.n_cells
        else:
            n_cells = swa_cells(n_ctx, settings.n_swa, settings.n_ubatch, n_sequences)
        return SwaCells(n_cells, settings.n_swa)

    def other_step(self, step: Between) -> None:
        """Everything between turns."""
        if isinstance(step, Clear):
            policy.clear(self.rules, self.slot(step.slot))
        elif isinstance(step, Save):
            self.stored[step.key] = policy.store(self.rules, self.slot(step.slot))
        elif isinstance(step, Load):
            self._load(step)
        elif isinstance(step, Adopt):
            self._adopt(step)
        else:
            slot = self.slot(step.slot)
            if step.n_after is not None and step.n_after > slot.n_tokens:
                slot.memory.generate(step.n_after - slot.n_tokens)
                slot.n_tokens = step.n_after

    def _load(self, step: Load) -> None:
        stored = self.stored.get(step.key)
        slot = self.slot(step.slot)
        if stored is None:
            policy.clear(self.rules, slot)
        elif step.file:
            policy.load_slot_file(self.rules, self.settings, slot, stored)
        else:
            policy.load_cached(slot, stored)
            # a cache entry that was loaded is gone
            del self.stored[step.key]

    def _adopt(self, step: Adopt) -> None:
        slot = self.slot(step.slot)
        slot.n_tokens = step.n_tokens
        slot.memory.load(self._tail(step.n_tokens), step.n_tokens)
        slot.checkpoints = [
            Checkpoint(n_tokens, pos_min, pos_max, policy.NO_TASK, self._tail(n_tokens))
            for n_tokens, pos_min, pos_max in step.checkpoints
        ]

    def _tail(self, n_tokens: int) -> State:
        """A state of which only the length is known: on SWA memory what a save of it would hold, in order."""
        if self.settings.memory != "swa" or not n_tokens:
            return ()
        width = self.settings.n_swa if self.rules.stores_window_only else self._cells(1).n_cells
        low = max(0, n_tokens - width)
        return ((low, n_tokens - low),)

    def play(
        self,
        turn: Turn,
        n_common: int,
        user_starts: Sequence[int] = (),
        batch_starts: Sequence[int] | None = None,
        foreign_cuts: Sequence[int] = (),
    ) -> Played:
        """A whole turn: reuse point, batches with their checkpoints, the answer.

        ``batch_starts``: cut where the log says; else where the rules say and at ``foreign_cuts``
        (those that the tokens of other slots caused).
        """
        rules, settings = self.rules, self.settings
        slot = self.slot(turn.slot)
        cached = turn.cache_prompt and (turn.completion or not rules.embedding_ignores_cache)
        played = Played(
            policy.start_turn(
                rules, settings, slot, turn.n_prompt, min(n_common, slot.n_tokens), cached=cached
            )
        )
        n_prompt = turn.n_prompt
        n_last = n_prompt if turn.n_ended is None else _left_at(turn, played.n_cached)
        makes = self.makes and turn.completion
        tails = policy.tail_cuts(rules, settings, n_prompt) if makes else ()
        cuts = None if batch_starts is None else [cut for cut in batch_starts[1:] if cut > slot.n_tokens]
        while slot.n_tokens < n_last:
            n0 = slot.n_tokens
            if cuts is None:
                n_end = policy.next_cut(rules, settings, slot, n_prompt, tails, user_starts if makes else ())
                for cut in foreign_cuts:
                    if n0 < cut < n_end:
                        n_end = cut
                        break
            else:
                n_end = cuts.pop(0) if cuts else n_last
            self._batch(turn, slot, played, n_end, user_starts, makes)
        after_prompt = makes and rules.create == "prompt-done" and slot.n_tokens == n_prompt
        if after_prompt and policy.makes_checkpoint(rules, settings, slot, n_prompt, n_prompt):
            played.added.append(policy.add_checkpoint(rules, settings, slot, turn.task))
        for number in turn.copies_to:
            policy.load_cached(self.slot(number), policy.store(rules, slot))
        self._answer(turn, slot)
        return played

    def _batch(
        self, turn: Turn, slot: Slot, played: Played, n_end: int, user_starts: Sequence[int], makes: bool
    ) -> None:
        n0 = slot.n_tokens
        played.batch_starts.append(n0)
        played.newest.append(slot.checkpoints[-1].n_tokens if slot.checkpoints else None)
        if (
            makes
            and n0 not in turn.media_starts  # (policy, section 3: none in the iteration that processed an image)
            and self.rules.create != "prompt-done"
            and policy.makes_checkpoint(self.rules, self.settings, slot, n_end, turn.n_prompt, user_starts)
        ):
            played.added.append(policy.add_checkpoint(self.rules, self.settings, slot, turn.task))
        played.newest_after.append(slot.checkpoints[-1] if slot.checkpoints else None)
        slot.memory.append(n_end - n0, self.settings.n_ubatch)
        slot.n_tokens = n_end

    def _answer(self, turn: Turn, slot: Slot) -> None:
        """Answer tokens one by one, with the shifts where the log has them."""
        for step in turn.shifts:
            if step.at > slot.n_tokens:
                slot.memory.generate(step.at - slot.n_tokens)
                slot.n_tokens = step.at
            policy.shift(self.rules, slot, step.n_keep, step.n_discard)
        if turn.n_after is not None and turn.n_after > slot.n_tokens:
            slot.memory.generate(turn.n_after - slot.n_tokens)
            slot.n_tokens = turn.n_after


def _left_at(turn: Turn, n_cached: int) -> int:
    """Where a request whose client leaves in mid-prompt ends if it begins at ``n_cached``: after as much work as in
    the log, as with a time-out."""
    done = (turn.n_ended or 0) - (n_cached if turn.n_cached is None else turn.n_cached)
    return min(turn.n_prompt, n_cached + max(0, done))
