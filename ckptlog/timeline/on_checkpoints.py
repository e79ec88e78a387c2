"""What happens to a slot's list of checkpoints and to its content: creation, erasure, shifts, clears, files."""

from __future__ import annotations

from ckptlog.events import Event
from ckptlog.timeline.course import refused
from ckptlog.timeline.limits import MAX_BETWEEN, MAX_SAVED
from ckptlog.timeline.lists import CLEARS_LIST_SINCE
from ckptlog.timeline.model import Checkpoint, Shift
from ckptlog.timeline.stream_state import StreamState


class ListMessages(StreamState):
    """Messages that change a list, or empty a slot."""

    def on_created_checkpoint(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None and self._room(turn, e):
            checkpoint = self.lists.created(self._need_run(), state, turn, e)
            self._keep_record(checkpoint)
            self._trim_list(state)

    def on_erased_old(self, e: Event) -> None:
        self._erase(e, "evicted")

    def on_swa_checkpoint_erase(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None and self._room(turn, e):
            self.lists.swa_erased(state, turn, e)

    def on_erased_too_close(self, e: Event) -> None:
        self._erase(e, "thinned")

    def on_superseding(self, e: Event) -> None:
        self._erase(e, "superseded")

    def on_erased_invalidated(self, e: Event) -> None:
        self._erase(e, "invalidated")

    def _erase(self, e: Event, fate: str) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None and self._room(turn, e):
            checkpoint = self.lists.erased(self._need_run(), state, turn, e, fate)
            if checkpoint is not None:
                self._keep_record(checkpoint)

    def on_context_shift(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is None or turn is None:
            return
        run = self._need_run()
        run.context_shift = True
        if not self._room(turn, e):
            return
        f = e.f
        turn.shifts.append(Shift(e.line, e.text or "", f["n_keep"], f["n_left"], f["n_discard"], e.t))
        self.lists.shifted(run, state, turn, e)

    def on_clearing_prompt(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        if state.turn is not None and not state.turn.released and state.turn.task == e.task:
            return  # a child's own clearing comes behind its release
        if e.slot == self.idle_slot:
            # the server makes room in a unified cache: what it saved before is held (or told as too big for that)
            self.idle_slot = None
            self._cleared(state, "cleared", e, lost=None)
            return
        last = state.last_turn
        ended = last is not None and (last.is_child or (last.error is not None and not refused(last)))
        self._cleared(state, "cleared", e, lost="ended" if ended else "cleared")

    def on_lora_cache_clear(self, e: Event) -> None:
        """Comes between the slot's choice and the launch; up to b10001 the list stays, and is swept by the turn."""
        if e.slot is None:
            return
        state = self._slot(e.slot)
        if self._need_run().build_min >= CLEARS_LIST_SINCE:
            state.clear_list("lora", e.line, e.text, None)
        if len(state.list_lost) < MAX_BETWEEN and ("lora", e.line, e.text) not in state.list_lost:
            state.list_lost.append(("lora", e.line, e.text))

    def on_purging_slot(self, e: Event) -> None:
        state = self._slot(e.f["slot"])
        if state.held is None:
            state.held = e.f["n_tokens"]
        self._cleared(state, "purged", e, lost="purged")

    def on_appended_checkpoints(self, e: Event) -> None:
        if e.slot is not None:
            state = self._slot(e.slot)
            self.slot_files[str(e.f.get("path"))] = (state.held, list(state.checkpoints))
            if len(self.slot_files) > MAX_SAVED:
                del self.slot_files[next(iter(self.slot_files))]

    def on_restored_checkpoints_file(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        self._settle(state)
        state.clear_list("slot-file", e.line, e.text, None)
        state.list_lost.clear()
        state.new_content()
        state.maker = None
        state.content_from = "slot-file"
        self.slot_files_read = True
        held, saved = self.slot_files.get(str(e.f.get("path")), (None, []))
        state.held = held
        n = e.f.get("n")
        state.list_known = len(saved) == n
        run = self._need_run()
        for old in saved if len(saved) == n else []:
            copy = Checkpoint(
                old.n_tokens, old.pos_min, old.pos_max, old.size_mib, run.no, state.id, None, e.line, e.text,
                origin="slot-file",
            )  # fmt: skip
            state.checkpoints.append(copy)
            self._keep_record(copy)
