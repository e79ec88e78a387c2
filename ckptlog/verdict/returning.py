"""A conversation that may have come back after the server had let go of it.

The log shows lengths, not identities. On real logs with the true prefixes at hand, matching a prompt to lost
content by its size was wrong more often than right; so it is told as a possibility, with the lines, and
never made the cause.
"""

from __future__ import annotations

from ckptlog.timeline.model import Dropped
from ckptlog.verdict.case import Case

#: below this many tokens the loss is not worth a sentence
WORTH_TELLING = 512

_WHERE = {
    "overwritten": "were overwritten by another prompt",
    "cleared": "were cleared from a slot",
    "purged": "were purged from a slot for room",
    "size-limit": "were dropped from the RAM prompt cache, which was full",
    "token-limit": "were dropped from the RAM prompt cache, which was full",
    "making-room": "were dropped from the RAM prompt cache, which was full",
    "too-big": "were too large for the RAM prompt cache",
}


def lost_before(case: Case) -> Dropped | None:
    """The latest content that was let go and that this prompt may be the continuation of."""
    turn = case.turn
    if turn.n_prompt is None or (turn.n_processed or 0) < WORTH_TELLING:
        return None
    for lost in reversed(turn.dropped):
        if lost.line < turn.first_line and turn.n_prompt / 2 <= lost.n_tokens <= turn.n_prompt * 1.02:
            return lost
    return None


def returning_hint(case: Case) -> str:
    """A sentence on what may have been lost before this turn; empty if there is nothing to tell."""
    lost = lost_before(case)
    if lost is None:
        return ""
    case.quote(lost.line, lost.text, f"{lost.n_tokens:,} tokens {_WHERE.get(lost.why, 'were let go')}")
    return (
        f"If this conversation had been here before: {lost.n_tokens:,} tokens {_WHERE.get(lost.why, 'were let go')} "
        f"(line {lost.line}). A slot for each conversation (--parallel) or more room for the RAM prompt cache "
        "(--cache-ram) would keep it."
    )
