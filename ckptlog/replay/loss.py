"""When a turn that processed known tokens again is worth a person's attention (docs: outcome, exactly)."""

from __future__ import annotations

#: a re-prefill that lost fewer tokens than this is harmless ...
HARMLESS_TOKENS = 128
#: ... or fewer than this, if they are less than this share of the prompt
HARMLESS_TOKENS_OF_LONG = 512
HARMLESS_SHARE = 0.05
#: a reuse point up to here counts as "from token 0" (BOS, a template's first header)
NOTHING_CACHED = 8


def is_costly_loss(n_lost: int, n_prompt: int | None) -> bool:
    """Whether losing ``n_lost`` tokens of a prompt of ``n_prompt`` (null: unknown) is costly."""
    if n_lost < HARMLESS_TOKENS:
        return False
    small_part = n_prompt is not None and n_lost < HARMLESS_SHARE * n_prompt
    return not (n_lost < HARMLESS_TOKENS_OF_LONG and small_part)


def is_costly_turn(n_common: int, n_cached: int, n_prompt: int) -> bool:
    """Whether the turn is a costly re-prefill: full, or partial by more than half of what was common."""
    n_lost = n_common - n_cached
    if n_lost <= 0 or not is_costly_loss(n_lost, n_prompt):
        return False
    return n_cached <= NOTHING_CACHED or n_lost > n_common / 2
