"""The RAM prompt cache's messages: saves, drops, listings, loads."""

from __future__ import annotations

from typing import Any

from ckptlog.events import Event
from ckptlog.timeline.cache import CANDIDATE_FIELDS, ENTRY_FIELDS, CacheEntry
from ckptlog.timeline.elsewhere import held_by_entries
from ckptlog.timeline.limits import MAX_BETWEEN
from ckptlog.timeline.model import NO_SLOT, Dropped, Selection
from ckptlog.timeline.ranges import has_share
from ckptlog.timeline.slot import quote
from ckptlog.timeline.stream_state import StreamState


def rows_of(e: Event, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The fields of each line of a block; of a single line, one tuple in the order of ``names``."""
    rows: list[tuple[Any, ...]] | None = e.f.get("rows")
    return rows if rows is not None else [tuple(e.f.get(name) for name in names)]


class RamCacheMessages(StreamState):
    """What is saved, dropped and loaded between a slot's choice and the launch of its task."""

    def on_cache_updating(self, e: Event) -> None:
        self.idle_slot = None

    def on_saving_idle_slot(self, e: Event) -> None:
        self.idle_slot = e.slot

    def on_cache_saving(self, e: Event) -> None:
        slot_id = self.idle_slot
        if slot_id is None and self.selection is not None:
            slot_id = self.selection.slot
            self.selection.saved_line = e.line
        state = self.slots.get(slot_id) if slot_id is not None else None
        n_tokens = e.f["n_tokens"]
        if self.idle_slot is None and self.selection is not None and self.selection.busy is not None:
            state = None  # what a slot holds in the middle of its work
        if state is None:
            self.cache.save(CacheEntry(n_tokens, None, saved_line=e.line))
            return
        if state.held is None or state.held != n_tokens:
            if state.held is not None:
                state.list_known, state.maker = False, None
            state.held = n_tokens
        known = list(state.checkpoints) if state.list_known else None
        self.cache.save(CacheEntry(n_tokens, known, list(state.dead[-256:]), e.line, state.starts, state.maker))

    def on_cache_already(self, e: Event) -> None:
        self.cache.skip_pending()

    def on_cache_state_too_big(self, e: Event) -> None:
        self._need_run().prompt_cache_dropped += 1
        entry = self.cache.skip_pending()
        if entry is not None:
            self.cache.drop(Dropped(entry.n_tokens, e.line, e.text, "too-big"))

    def on_cache_alloc_failed(self, e: Event) -> None:
        """What was to be saved goes with the slot's next prompt (and the server lowers the cache's limit)."""
        entry = self.cache.skip_pending()
        if entry is not None:
            self.cache.drop(Dropped(entry.n_tokens, e.line, e.text, "no-memory"))

    def on_cache_removing_obsolete(self, e: Event) -> None:
        self.cache.remove_obsolete(e.f["n_tokens"])

    def on_cache_making_room(self, e: Event) -> None:
        self._let_go(e, "making-room")

    def on_cache_size_limit(self, e: Event) -> None:
        self._let_go(e, "size-limit")

    def on_cache_token_limit(self, e: Event) -> None:
        self._let_go(e, "token-limit")

    def _let_go(self, e: Event, why: str) -> None:
        self._need_run().prompt_cache_dropped += 1
        self.cache.drop_oldest(e.line, e.text, why)

    def on_cache_looking(self, e: Event) -> None:
        self.cache.settle()
        if self.selection is None:
            # the line that names the slot is missing: it is the one that is launched next
            self.selection = Selection(NO_SLOT, e.line)
        self.selection.base_f_keep = e.f.get("f_keep")
        self.selection.base_sim = e.f.get("sim")

    def on_cache_candidate(self, e: Event) -> None:
        if self.selection is not None:
            candidates, held = self.selection.candidates, self.selection.held_saved
            rows = rows_of(e, CANDIDATE_FIELDS)
            held += held_by_entries(self.cache.entries, rows, len(candidates))
            candidates.extend(rows)
            del candidates[MAX_BETWEEN:], held[MAX_BETWEEN:]

    def on_cache_found(self, e: Event) -> None:
        selection = self.selection
        if selection is None:
            return
        f_keep, sim = e.f["f_keep"], e.f["sim"]
        selection.found = (-1.0 if f_keep is None else f_keep, -1.0 if sim is None else sim)
        selection.found_line, selection.found_text = e.line, e.text
        if selection.busy is not None:
            busy = selection.busy
            busy.swapped = busy.swapped or quote(e.line, e.text)
            if busy.new_prompt_line is None and not (busy.batch_starts or busy.checks or busy.forced):
                busy.spoilt_start, busy.before_known = True, False
            self._slot(selection.slot).list_known = False
        at = selection.chosen
        if at is not None:
            self.loaded_entry = self.cache.take(selection.candidates[at][0], at, len(selection.candidates))

    def on_cache_restore_failed(self, e: Event) -> None:
        self._load_failed(e)

    def on_prompt_load_failed(self, e: Event) -> None:
        self._load_failed(e)

    def _load_failed(self, e: Event) -> None:
        """The server then clears the slot: nothing is held."""
        selection = self.selection
        if selection is None:
            return
        selection.found = None
        selection.load_failed_line, selection.load_failed_text = e.line, e.text
        if selection.slot == NO_SLOT:
            return
        state = self._slot(selection.slot)
        state.held = 0
        state.clear_list("cache-load-failed", e.line, e.text, None)

    def on_cache_state(self, e: Event) -> None:
        self.cache.begin_listing()

    def on_cache_entry(self, e: Event) -> None:
        self.cache.listed(rows_of(e, ENTRY_FIELDS))

    def on_cache_update_took(self, e: Event) -> None:
        known = self.cache.complete
        gone = self.cache.end_listing()
        selection = self.selection
        if selection is not None:
            selection.listed = True
        if known and selection is not None and selection.found is not None and self.loaded_entry is None:
            fitting = [entry for entry in gone if has_share(entry.n_tokens, selection.found[0])]
            if len(fitting) == 1:
                self.loaded_entry = fitting[0]
