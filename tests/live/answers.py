"""Puts what an answer of the server says into the truth record."""

from __future__ import annotations

from typing import Any

from tests.live.client import Reply
from tests.live.truth import Request
from tests.live.vocabulary import THINK

#: how the server words a refusal at admission: too long for the context, or for one batch
_REFUSALS = ("exceeds the available context size", "exceed_context", "too large to process")


def record_answer(request: Request, reply: Reply, *, raw: bool) -> str:
    """Fill in the figures of a completion; returns the answer's text.

    ``answer_ids`` stays None where the build does not return them in a chat (before b10068 or so);
    there ``slot``, ``stop_type`` and ``truncated`` are not known either.
    """
    body: dict[str, Any] = reply.body
    content: str
    if raw:
        content, detail = body["content"], body
    else:
        choice = body["choices"][0]
        # the server puts the part of the answer that the template wrote in front again
        content = (choice["message"].get("content") or "").removeprefix(THINK)
        detail = body.get("__verbose", {})
        request.finish_reason = choice["finish_reason"]
    timings = body["timings"]
    cached, processed = int(timings["cache_n"]), int(timings["prompt_n"])
    request.status = reply.status
    request.cache_n, request.prompt_n = cached, processed
    request.predicted_n = int(timings["predicted_n"])
    request.n_prompt = cached + processed
    request.slot = detail.get("id_slot", request.slot)
    request.stop_type, request.truncated = detail.get("stop_type"), detail.get("truncated")
    request.gen_tokens = "returned" if detail.get("tokens") else "tokenized again"
    request.answer_ids = detail.get("tokens") or None
    request.end = _end(request, request.n_prompt + request.predicted_n)
    return content


def record_embedding(request: Request, reply: Reply) -> None:
    request.status, request.end = reply.status, "embedding"
    request.n_prompt = int(reply.body["usage"]["prompt_tokens"])


def record_error(request: Request, reply: Reply) -> None:
    """An HTTP error: refused at admission, or failed later."""
    request.status, request.error = reply.status, reply.body
    refused = any(words in str(reply.body) for words in _REFUSALS)
    request.end = "rejected" if refused else "error"


def _end(request: Request, total: int) -> str:
    """Why the answer ended, from the client's figures alone: a shift lets it outgrow the context."""
    if request.n_ctx_slot is not None:
        if total > request.n_ctx_slot:
            return "context shift"
        if total == request.n_ctx_slot and request.truncated is not False:
            return "limit stop"
    if request.stop_type == "eos" or (request.stop_type is None and request.finish_reason == "stop"):
        return "eos"
    return "limit"
