"""What only forks and the tagged form print, or say otherwise than llama.cpp does now."""

from __future__ import annotations

from ckptlog.events import Event
from ckptlog.timeline.model import Turn
from ckptlog.timeline.on_prompt import PromptMessages
from ckptlog.timeline.slot import quote
from ckptlog.timeline.starts import UNSURE_STARTS


class ForkMessages(PromptMessages):
    """ik_llama.cpp, llamafile, and builds of 2024."""

    def on_fork_cache(self, e: Event) -> None:
        """What a slot holds and how much of it the prompt shares: of the slot that begins a batch next."""
        self.fork_cache = (e.f["n_cached_tokens"], e.f["n_past"])

    def on_fork_batch_start(self, e: Event) -> None:
        if self.fork_cache is not None:
            _, turn = self._turn(e)
            if turn is not None:
                _compared(turn, *self.fork_cache)
            self.fork_cache = None
        self.on_batch_start(e)

    def on_fork_input_truncated(self, e: Event) -> None:
        """Some builds name no slot: the one launched last."""
        state = self.last_slot
        if e.slot is None and state is not None and state.turn is not None:
            e.slot = state.id
        self.on_input_truncated(e)

    def on_fork_decode_failed(self, e: Event) -> None:
        """Every request at work ends; their errors are printed without a head, if at all."""
        for state in self.slots.values():
            turn = state.turn
            if turn is not None and turn.error is None:
                turn.error = quote(e.line, e.text)
                turn.error_reason = "context_exceeded" if e.of.wording == "full" else "decode_failed"


def _compared(turn: Turn, n_held: int, n_common: int) -> None:
    """The fork's own word on the slot's content and the common prefix."""
    turn.n_common_printed = n_common
    if turn.n_held_slot is not None and n_held != turn.n_held_slot:
        # a saved prompt was loaded: no line of that names the slot
        turn.cache_loaded, turn.cache_lcp, turn.content_from = True, n_common, "prompt-cache"
        turn.previous, turn.starts, turn.before_known = None, UNSURE_STARTS, False
    turn.n_held = n_held
