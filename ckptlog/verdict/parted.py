"""A prompt that parts from what the slot held in its middle and is about as long: not new, but rewritten."""

from __future__ import annotations

from ckptlog.verdict.case import Case
from ckptlog.verdict.returning import WORTH_TELLING

_PARTED = "what follows, the slot held in another version"
#: tokens behind the change; of fewer nobody asks
LEAST_BEHIND = 512
#: how much longer one version of what follows may be than the other
ALIKE = 2


def parted_hint(case: Case) -> str:
    """A sentence on where they part; empty if what was evaluated adds to what the slot held, or has nothing to do with it."""
    turn = case.turn
    if case.common is None or not turn.n_held or turn.n_prompt is None or (turn.n_processed or 0) < WORTH_TELLING:
        return ""
    high = case.common[1]
    old, new = turn.n_held - high, turn.n_prompt - high
    if min(old, new) < LEAST_BEHIND or not old <= new * ALIKE or not new <= old * ALIKE:
        return ""
    if high * 10 < turn.n_held:
        return ""  # hardly anything in common: another conversation, or its beginning changed
    quote = turn.selected_quote or turn.memory_state_quote or turn.restored_quote
    if quote is not None:
        case.quote(quote.line, quote.text, f"the prompts part at {case.parting}; {_PARTED}", "parted")
    return (
        f"The prompt ({turn.n_prompt:,} tokens) parts from what the slot held ({turn.n_held:,}) in its middle, at "
        f"{case.parting}: {_PARTED} (or it is another conversation that begins alike)."
    )
