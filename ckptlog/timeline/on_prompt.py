"""A turn's beginning: the prompt, the search of the checkpoints, the reuse point, the batches."""

from __future__ import annotations

import re

from ckptlog.events import Event
from ckptlog.timeline.batches import ends
from ckptlog.timeline.model import Check, Checkpoint, Turn
from ckptlog.timeline.slot import SlotState, quote
from ckptlog.timeline.stream_state import StreamState


class PromptMessages(StreamState):
    """From "processing task" to the last batch of the prompt."""

    def on_processing_task(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        if state.turn is not None and state.turn.task == e.task and e.task is not None:
            self._touch(state.turn, e)
            return
        known = self.tasks.get(e.task) if e.task is not None and e.task >= 0 else None
        if known is not None and known.start_seen:
            self.tracker.torn.append(e.line)  # a server gives each number once
        turn = self._open(state, e, start_seen=True)
        if e.f.get("is_child"):
            turn.is_child = True
        else:
            self._adopt(turn)
        self.selection = None
        self._another_turn()

    def _adopt(self, parent: Turn) -> None:
        """Tell the children of a request with n > 1 whose they are.

        They are launched just before their parent, and their task ids follow its own (source: launch_slots).
        """
        if parent.task is None:
            return
        for state in self.slots.values():
            child = state.turn
            if child is None or not child.is_child or child.child_of is not None or child.task is None:
                continue
            if parent.task < child.task <= parent.task + len(self.slots):
                child.child_of = parent.task

    def on_copying_to_child(self, e: Event) -> None:
        child = self.slots.get(e.f.get("child", -1))
        if child is None or child.turn is None or e.task is None:
            return
        turn = child.turn
        turn.child_of = e.task
        turn.is_child = True
        parent = self.slots.get(e.slot) if e.slot is not None else None
        if parent is not None:
            if parent.turn is not None and parent.turn.n_prompt is not None:
                turn.n_prompt = parent.turn.n_prompt
                turn.basis["n_prompt"] = "derived"
            turn.cleared.extend(child.clear_list("copied", e.line, None, turn))
            child.list_lost.clear()
            child.held = parent.held
            child.list_known = parent.list_known
            for old in parent.checkpoints:
                copy = Checkpoint(
                    old.n_tokens, old.pos_min, old.pos_max, old.size_mib, turn.run, child.id, old.task, e.line,
                    origin="copied", turn_no=old.turn_no,
                )  # fmt: skip
                child.checkpoints.append(copy)
                self._keep_record(copy)

    def on_new_prompt(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        self._another_turn()
        turn.n_ctx_slot = e.f.get("n_ctx_slot")
        turn.n_keep = e.f.get("n_keep")
        turn.n_prompt = e.f.get("n_prompt")
        turn.new_prompt_line = e.line
        if self.run is not None:
            self.run.n_new_prompts += 1
            self.run.n_ctx_slot = self.run.n_ctx_slot or turn.n_ctx_slot
        turn.basis["n_prompt"] = "observed"

    def on_empty_prompt(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.empty_prompt = True

    def on_init_sampler(self, e: Event) -> None:
        _, turn = self._turn(e, begin=False)
        if turn is not None:
            if not turn.sampled and turn.n_prompt is not None:
                ends(turn, turn.n_prompt)
            turn.prompt_done = turn.sampled = True

    def on_input_truncated(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.input_truncated = quote(e.line, e.text)
            turn.error_fields.update(e.f)

    def on_memory_state(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            f = e.f
            turn.memory_state = (f["n_past"], f["n_cached_tokens"], f["pos_min"], f.get("n_swa"))
            turn.memory_state_quote = quote(e.line, e.text)
            if turn.n_held is None:
                turn.n_held = f["n_cached_tokens"]
            run = self._need_run()
            if run.n_swa is None and (f.get("n_swa") or 0) > 1:
                run.n_swa = f["n_swa"]

    def on_checking_checkpoint(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None and self._room(turn, e):
            self.lists.memory_hint(self._need_run(), e)
            turn.checks.append(Check(e.line, e.text or "", e.f["pos_min"], e.f["pos_max"], e.f["thold"]))

    def on_restored_checkpoint(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None and self._room(turn, e):
            unknown = self.lists.restored(self._need_run(), state, turn, e)
            if unknown is not None:
                self._keep_record(unknown)
                self._trim_list(state)

    def on_restore_failed(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.restore_failed = quote(e.line, e.text)

    def on_forcing_full(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None:
            turn.forced = quote(e.line, e.text)
            state.list_known = True  # no checkpoint fitted, and the sweep takes them all

    def on_need_one_token(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.need_one_token = quote(e.line, e.text)
            n_prompt = e.f.get("n_prompt")
            if turn.n_prompt is None and isinstance(n_prompt, int):
                turn.n_prompt = n_prompt
                turn.basis["n_prompt"] = "observed"

    def on_truncate_failed(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None and e.of.wording == "clearing":
            turn.memory_cleared = quote(e.line, e.text)

    def on_reusing_chunk(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.chunk_moves += 1
            turn.chunk_end = e.f.get("to1")

    def on_batch_start(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        n_tokens = e.f.get("n_tokens")
        if isinstance(n_tokens, int) and self._room(turn, e):
            if turn.n_alone is not None:
                self.sharing.begins(turn, n_tokens, self._answers_beside(turn))
            turn.batch_starts.append(n_tokens)

    def _answers_beside(self, turn: Turn) -> int:
        """How many other slots generate now."""
        beside = 0
        for state in self.slots.values():
            other = state.turn
            if other is not None and other.sampled and other is not turn:
                beside += 1
        return beside

    def on_media_batch(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None and self._room(turn, e):
            _cut_by_media(turn)

    def on_media_processed(self, e: Event) -> None:
        """The older message names no slot."""
        for state in self.slots.values():
            if state.turn is not None and self._room(state.turn, e):
                _cut_by_media(state.turn)

    def on_prompt_progress(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        f = e.f
        end = f.get("n_past") if f.get("n_past") is not None else f.get("n_tokens")
        if isinstance(end, int):
            turn.progress_end = end

    def on_prompt_done(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        turn.prompt_done = True
        end = e.f.get("n_past") if e.f.get("n_past") is not None else e.f.get("n_tokens")
        if isinstance(end, int):
            turn.progress_end = end
            if turn.n_prompt is None:
                turn.n_prompt = end
                turn.basis["n_prompt"] = "observed"

    def on_prompt_processing(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.progress = [*turn.progress[-3:], (e.f["n_tokens"], e.f["progress"])]

    def on_mismatch_old(self, e: Event) -> None:
        _, turn = self._mismatch_turn(e)
        if turn is not None:
            turn.mismatch_seen = True

    def on_mismatch_new(self, e: Event) -> None:
        _, turn = self._mismatch_turn(e)
        if turn is not None:
            turn.mismatch_seen = True
            self._mismatch = (turn, e)
            turn.mismatch_old = e.f.get("old_after")
            turn.mismatch_new = e.f.get("new_after")

    def _mismatch_turn(self, e: Event) -> tuple[SlotState | None, Turn | None]:
        if e.slot is None:  # the head was trimmed away: the slot that began last
            state = self.last_slot
            return state, state.turn if state is not None else None
        return self._turn(e)

    def on_token_ids(self, e: Event) -> None:
        _, turn = self._turn(e, begin=False)
        if turn is None or not turn.mismatch_seen:
            return
        if self._mismatch is not None and self._mismatch[0] is turn:
            # the windows' texts are complete only when the id rows come
            turn.mismatch_old = self._mismatch[1].f.get("old_after")
            turn.mismatch_new = self._mismatch[1].f.get("new_after")
        if len(turn.mismatch_ids) < 2:
            turn.mismatch_ids.append(token_ids(e.f.get("ids")))


def _cut_by_media(turn: Turn) -> None:
    """An image ends the batch before it, and its own tokens are no part of the next batch's size."""
    turn.cut_by_media = True
    turn.media_starts.extend(turn.batch_starts[-1:])
    alone = max(0, len(turn.batch_starts) - 2)
    turn.n_alone = alone if turn.n_alone is None else min(turn.n_alone, alone)


#: llama_token is 32 bits wide
_TOKEN_ID = re.compile(r"-?[0-9]{1,10}")


def token_ids(text: object) -> list[int]:
    """The ids in a row of them; none if it is damaged."""
    words = str(text).split() if text is not None else []
    return [int(word) for word in words] if all(_TOKEN_ID.fullmatch(word) for word in words) else []
