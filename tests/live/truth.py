"""What the client saw: one record a request, kept beside the log as ``SCENARIO.truth.json``.

Nothing in here is read from the log. Figures come from the answer (``timings``, ``stop_type``,
``truncated``, the error body) and from token ids: the prompt's, tokenized by a second server
whose log is thrown away, and the answer's, as returned or (on builds that do not return them)
tokenized again.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Request(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request; token counts, times in seconds of the client's clock. None: not known to the client."""

    seq: int
    step: str
    endpoint: str
    server: int
    t0: float
    t1: float = 0.0
    status: int | None = None
    error: Any = None
    #: the answer's ``timings``: reused, evaluated and generated tokens
    cache_n: int | None = None
    prompt_n: int | None = None
    predicted_n: int | None = None
    slot: int | None = None
    #: the whole prompt: cache_n + prompt_n, and as the client tokenized it
    n_prompt: int | None = None
    n_prompt_client: int | None = None
    stop_type: str | None = None
    truncated: bool | None = None
    finish_reason: str | None = None
    #: number of answers asked for, if more than one
    choices: int | None = None
    cancelled: bool | None = None
    #: whether the request allowed reuse, where it said so
    cache_prompt: bool | None = None
    #: "returned" or "tokenized again": where the answer's token ids come from
    gen_tokens: str | None = None
    #: common prefix with what the slot held just before, and the best one with anything seen so far
    lcp_slot: int | None = None
    lcp_best: int | None = None
    #: why it ended: eos, limit (budget), limit stop, context shift, rejected, error, cancelled
    end: str | None = None
    #: what became of the common prefix: cold, reused, part again, all again, more than this slot held
    prefill: str | None = None
    n_ctx_slot: int | None = None
    #: slot actions: save, restore, erase
    action: str | None = None
    file: str | None = None
    expect: dict[str, Any] = {}
    verdict: dict[str, Any] = {}
    #: ids of prompt and answer; used here, not stored
    prompt_ids: list[int] | None = None
    answer_ids: list[int] | None = None


class Server(msgspec.Struct, kw_only=True):
    """One start of the server: what was asked for, what this release does not know, what was in effect."""

    flags: dict[str, Any]
    missing: list[str]
    params: dict[str, Any]
    env: dict[str, str]
    exit: int | None = None


class Truth(msgspec.Struct, kw_only=True):
    """A played scenario. ``release`` is the xllamacpp version, its last number the llama.cpp build."""

    scenario: str
    doc: str
    model: str
    release: str
    build: str
    servers: list[Server] = []
    requests: list[Request] = []
    #: that the order of requests on a slot is not certain: several clients at once
    concurrent: bool = False

    def turns(self) -> list[Request]:
        """The requests that a server's log shows as turns (not the slot actions)."""
        return [r for r in self.requests if r.action is None]

    def surprises(self) -> list[str]:
        """Where the server did not do what the scenario expects of it."""
        return [
            f"{self.scenario} on {self.model} ({self.build}), request {r.seq} ({r.step}): "
            f"{name} is {getattr(r, name)!r}, expected {wanted!r}"
            for r in self.requests
            for name, wanted in r.expect.items()
            if getattr(r, name) != wanted
        ]

    def lines(self) -> list[str]:
        """A line a request, for a person."""
        return [
            f"{r.seq:3} {r.step[:50]:50} slot {r.slot} prompt {r.n_prompt_client} = {r.cache_n} + {r.prompt_n}"
            f" common {r.lcp_slot} answer {r.predicted_n}: {r.prefill}, {r.end}"
            for r in self.requests
        ]


def common_prefix(a: list[int], b: list[int]) -> int:
    """Length of the longest common prefix of two token lists."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n


class SlotContents:
    """Follows what each slot holds, as far as the client can know it; None is "not known".

    ``ram_cache``: before a request is judged (and perhaps refused) its slot may be filled from the
    RAM prompt cache. ``unified``: with the cache on, slots of a unified KV cache are emptied when
    another one starts.
    """

    def __init__(self, *, ram_cache: bool = False, unified: bool = False) -> None:
        self._ram_cache, self._unified = ram_cache, unified
        self._held: dict[int, list[int] | None] = {}
        self._files: dict[str, list[int] | None] = {}
        self._seen: list[list[int]] = []
        self._server = 0

    def follow(self, requests: list[Request]) -> None:
        """Fill ``lcp_slot``, ``lcp_best`` and ``prefill`` in, going through the requests as they ended."""
        for r in sorted(requests, key=lambda r: r.t1):
            if r.server != self._server:
                self._held.clear()
                self._server = r.server
            if r.action is not None:
                self._slot_action(r)
            elif r.prompt_ids is not None:
                self._turn(r)

    def _slot_action(self, r: Request) -> None:
        slot, file = r.slot or 0, r.file or ""
        if r.action == "save":
            self._files[file] = self._held.get(slot, [])
        elif r.action == "erase":
            self._held[slot] = []
        elif r.status == 200:
            self._held[slot] = self._files.get(file)
        else:
            self._held[slot] = None

    def _turn(self, r: Request) -> None:
        prompt = r.prompt_ids or []
        r.lcp_best = max((common_prefix(prompt, s) for s in self._seen), default=0)
        if r.slot is not None:
            before = self._held.get(r.slot, [])
            if before is not None:
                r.lcp_slot = common_prefix(prompt, before)
        r.prefill = _prefill(r)
        if r.end == "rejected" and not self._ram_cache:
            return
        if r.slot is None or (self._ram_cache and self._unified):
            # some slot has changed, and the client does not know which
            self._held = dict.fromkeys(range(64))
        if r.slot is None:
            return
        unknown = r.end in ("context shift", "cancelled", "error", "rejected") or r.choices is not None
        if unknown or r.answer_ids is None or r.predicted_n is None:
            self._held[r.slot] = None
            return
        # the last token of an answer is sampled but never evaluated
        content = prompt + r.answer_ids[: max(0, r.predicted_n - 1)]
        self._held[r.slot] = content
        self._seen.append(content)


def _prefill(r: Request) -> str | None:
    if r.cache_n is None or r.lcp_slot is None or r.n_prompt is None:
        return None
    if r.lcp_slot == 0:
        return "cold" if r.cache_n == 0 else "more than this slot held"
    if r.cache_n > r.lcp_slot:
        return "more than this slot held"
    if r.cache_n in (r.lcp_slot, r.n_prompt - 1):
        return "reused"
    return "part again" if r.cache_n else "all again"
