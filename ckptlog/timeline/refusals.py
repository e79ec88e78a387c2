"""Errors by which the server refuses a request at admission (the grammar's wordings of ``send_error``)."""

from __future__ import annotations

#: a completion's prompt against the slot's context
TOO_LONG = frozenset({"exceeds_context", "exceeds_context_old"})
#: an embedding, a rerank or a decision: the whole input must fit in one batch
ONE_BATCH = frozenset(
    {"too_large", "too_large_old", "larger_than_context", "larger_than_context_old", "question_too_large"}
)
REFUSALS = TOO_LONG | ONE_BATCH


def reason_of(wording: str) -> str:
    """The reason's name: the wording without its prefix."""
    return wording.removeprefix("error_")
