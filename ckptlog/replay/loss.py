"""When a turn that processed known tokens again is worth a person's attention (docs: outcome, exactly)."""

from __future__ import annotations

#: below these a loss is harmless: tokens, or tokens and share of the prompt
HARMLESS = 128
HARMLESS_SHARE = (512, 0.05)
#: a turn that reused at most so many tokens started over
STARTED_OVER = 8


def is_costly_loss(n_lost: int, n_prompt: int) -> bool:
    """Whether losing ``n_lost`` tokens of a prompt of ``n_prompt`` is costly."""
    below, share = HARMLESS_SHARE
    return n_lost >= HARMLESS and not (n_lost < below and n_lost < share * n_prompt)


def is_costly_turn(n_common: int, n_cached: int, n_prompt: int) -> bool:
    """Whether the turn is a costly re-prefill: full, or partial by more than half of what was common."""
    n_lost = n_common - n_cached
    if n_lost <= 0 or not is_costly_loss(n_lost, n_prompt):
        return False
    return n_cached <= STARTED_OVER or n_lost > n_common / 2
