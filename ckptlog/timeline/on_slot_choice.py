"""How the server chose a slot for a request."""

from __future__ import annotations

from ckptlog.events import Event
from ckptlog.timeline.elsewhere import held_by_slot
from ckptlog.timeline.limits import MAX_BETWEEN
from ckptlog.timeline.model import Selection
from ckptlog.timeline.ranges import HALF_DIGIT
from ckptlog.timeline.slot import quote
from ckptlog.timeline.stream_state import StreamState


class SlotChoice(StreamState):
    """"checking sim", "selected slot by ..." """

    def on_check_slot_sim(self, e: Event) -> None:
        if e.slot is None:
            return
        chosen = self.selection
        if chosen is not None and chosen.how == "id" and chosen.slot == e.slot:
            # a slot asked for by number is compared behind the line that names it
            chosen.slot_lcp[e.slot] = e.f["lcp"]
            chosen.n_prompt = e.f["n_tokens"]
            chosen.thold = e.f.get("thold")
            return
        if self.slot_lcp and (self.checked_prompt != e.f["n_tokens"] or e.slot in self.slot_lcp):
            self._forget_comparisons()  # of another choice, whose own line is missing
        if len(self.slot_lcp) < MAX_BETWEEN:
            self.slot_lcp[e.slot] = e.f["lcp"]
            held = held_by_slot(self.slots.get(e.slot), e.f["lcp"])
            if held is not None:
                self.held[e.slot] = held
        self.checked_prompt = e.f["n_tokens"]
        self.checked_thold = e.f.get("thold")

    def _select(self, e: Event, how: str) -> Selection | None:
        if e.slot is None:
            return None
        self.cache.settle()
        self.loaded_entry = None
        self.idle_slot = None
        selection = Selection(e.slot, e.line, how, text=e.text)
        selection.slot_lcp, self.slot_lcp = self.slot_lcp, {}
        selection.held, self.held = self.held, {}
        selection.n_prompt, self.checked_prompt = self.checked_prompt, None
        selection.thold, self.checked_thold = self.checked_thold, None
        self.selection = selection
        state = self._slot(e.slot)
        state.selection = selection
        self._settle(state)
        return selection

    def on_selected_lcp(self, e: Event) -> None:
        selection = self._select(e, "lcp")
        if selection is not None:
            selection.sim = e.f.get("sim")
            selection.f_keep = e.f.get("f_keep")
            selection.thold = e.f.get("thold")
            if not _compared_for(selection):
                selection.slot_lcp, selection.n_prompt = {}, None

    def on_selected_lcs(self, e: Event) -> None:
        selection = self._select(e, "lcs")
        if selection is not None:
            selection.lcs_len = e.f.get("lcs_len")
            selection.sim = e.f.get("sim")

    def on_selected_lru(self, e: Event) -> None:
        selection = self._select(e, "lru")
        if selection is not None and e.f.get("t_last") == -1:
            # a slot that was never used holds nothing (unless a slot file was loaded into it)
            state = self._slot(selection.slot)
            if state.held is None:
                state.held, state.list_known = 0, True

    def on_selected_id(self, e: Event) -> None:
        if e.task is None or e.task < 0:
            self._select(e, "id")
            return
        # the slot is at work (its task is told): the request waits, and chooses again when the slot is free
        state, turn = self._turn(e, begin=False)
        if state is not None and turn is not None:
            turn.disturbed = turn.disturbed or quote(e.line, e.text)
            self.selection = Selection(state.id, e.line, "id", busy=turn, text=e.text)


def _compared_for(selection: Selection) -> bool:
    """Are the comparisons those of this choice (some lines of it may be missing, and another's be there)?"""
    sim, n_prompt = selection.sim, selection.n_prompt
    if sim is None or not n_prompt:
        return True
    of_chosen = selection.slot_lcp.get(selection.slot)
    if of_chosen is not None:
        return abs(of_chosen / n_prompt - sim) <= 2 * HALF_DIGIT
    return all(lcp / n_prompt <= sim + 2 * HALF_DIGIT for lcp in selection.slot_lcp.values())
