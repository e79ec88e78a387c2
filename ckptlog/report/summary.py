"""The totals over a set of turns, by the contract's definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ckptlog.records import Summary, TurnRecord


def summarise(turns: Sequence[TurnRecord]) -> Summary:
    """Count turns by outcome and cause, and sum their tokens.

    Rejected requests and child tasks (``child_of``) are left out of the prompt sums: the first
    were never processed, the second only copy their parent's state. ``reuse`` is over the turns
    in which both the prompt and the cached part are known; null if there is none.
    """
    summary = Summary(
        turns=len(turns),
        failed=sum(turn.failed for turn in turns),
        by_outcome=dict(Counter[str](turn.outcome for turn in turns)),
        by_cause=dict(Counter(turn.cause for turn in turns if turn.cause is not None)),
    )
    known_prompt = known_cached = 0
    for turn in turns:
        summary.n_lost += turn.n_lost or 0
        summary.lost_ms += turn.lost_ms or 0.0
        if turn.outcome == "arrival-rejection" or turn.child_of is not None:
            continue
        summary.n_prompt += turn.n_prompt or 0
        summary.n_cached += turn.n_cached or 0
        summary.n_processed += turn.n_processed or 0
        if turn.n_prompt is not None and turn.n_cached is not None:
            known_prompt += turn.n_prompt
            known_cached += turn.n_cached
    summary.reuse = known_cached / known_prompt if known_prompt else None
    return summary
