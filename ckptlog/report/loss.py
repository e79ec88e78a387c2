"""What a turn lost: tokens that the server had held and that were processed all the same."""

from __future__ import annotations

from typing import NamedTuple

from ckptlog.records import TurnRecord

#: causes where the tokens were held elsewhere than in the slot: the loss is counted from ``n_known``
_HELD_ELSEWHERE = frozenset({"slot-taken", "slot-swapped", "prompt-cache-evicted"})


class Loss(NamedTuple):
    """``tokens`` lost, the time they took at the turn's own prompt speed, and whether that is all
    (``exact``) or the least it can have been."""

    tokens: int
    ms: float
    exact: bool

    def __str__(self) -> str:
        return f"{self.tokens:,}" if self.exact else f"{self.tokens:,}+"


def n_deleted(turn: TurnRecord) -> int:
    """Tokens that the server threw away: cut out of the prompt on arrival, and by context shifts."""
    cut = 0
    if turn.variant == "input" and None not in (turn.n_prompt, turn.n_cached, turn.n_processed):
        cut = max(0, (turn.n_prompt or 0) - (turn.n_cached or 0) - (turn.n_processed or 0))
    return cut + sum(shift.n_discard for shift in turn.shifts)


def loss(turn: TurnRecord) -> Loss | None:
    """A turn's loss; null where the log tells nothing of it."""
    if turn.outcome == "arrival-rejection":
        return None  # a refused request leaves what the slot holds as it is
    tokens, exact = turn.n_lost, True
    if turn.cause in _HELD_ELSEWHERE and turn.n_known is not None and turn.n_cached is not None:
        tokens = max(turn.n_known - turn.n_cached, tokens or 0)
    elif tokens is None and turn.n_common_range is not None and turn.n_cached is not None:
        tokens, exact = turn.n_common_range[0] - turn.n_cached, False
        if tokens <= 0:
            return None
    if tokens is None:
        return None
    if tokens == turn.n_lost and turn.lost_ms is not None:
        return Loss(tokens, turn.lost_ms, exact)
    ms = 0.0
    if turn.n_processed and turn.prompt_ms is not None:
        ms = turn.prompt_ms * min(tokens, turn.n_processed) / turn.n_processed
    return Loss(tokens, ms, exact)
