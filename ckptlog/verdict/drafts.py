"""Drafted tokens behind an answer's end: what the slot holds beyond all that the client has seen."""

from __future__ import annotations

from ckptlog.timeline.model import Turn


def seen_by_client(turn: Turn) -> int | None:
    """How many of the slot's tokens are the last prompt and answer, where drafts left more behind them; else null.

    A slot ends with the token before the last one sampled: ``n_prompt + n_generated - 1`` (formats: questions, B.1).
    Accepted drafts come in as a block, and those behind the stop token stay.
    """
    previous = turn.previous
    if previous is None or not previous.has_draft or turn.cache_loaded or turn.content_from != "slot":
        return None
    if previous.n_prompt is None or previous.n_generated is None or previous.shifts or previous.input_truncated:
        return None
    if turn.n_held is None or turn.n_held != previous.n_released:
        return None
    seen = previous.n_prompt + previous.n_generated - 1
    return seen if seen < turn.n_held <= seen + (previous.n_accepted or 0) else None


def only_appended(turn: Turn, low: int, high: int) -> bool:
    """Does the prompt (``low`` to ``high`` tokens in common) part within those left-over tokens?"""
    seen = seen_by_client(turn)
    return seen is not None and turn.n_held is not None and seen <= low <= high < turn.n_held
