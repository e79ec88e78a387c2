"""Findings for turns that failed in another way than by re-processing: refusal, limit, shift, error."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.timeline.model import Quote, Turn
from ckptlog.verdict import faults, fixes
from ckptlog.verdict.case import Case
from ckptlog.verdict.crash import crashed, fix_for_thrown
from ckptlog.verdict.outcomes import Judged
from ckptlog.verdict.room import ANSWER, fewer_slots, larger_context, no_more
from ckptlog.verdict.rule import Finding
from ckptlog.verdict.showing import present
from ckptlog.verdict.triggers import ONE_MESSAGE

#: what is said of the line by which a client's leaving is told
_GONE = "the client had gone (closed connection or time-out)"
#: and of the line that ends a request whose own client did not leave
_BROKEN_OFF = "the decoding was broken off"
#: and of the line that tells of the server's stop
_STOPPED = "the server was told to stop"


def _round_up(n: int, step: int = 1024) -> int:
    return -(-n // step) * step


def rejection(case: Case, judged: Judged) -> Finding:
    turn, run = case.turn, case.run
    assert turn.error is not None
    n_prompt = turn.n_prompt
    limit = turn.error_fields.get("n_ctx") or turn.error_fields.get("n_batch")
    case.quote(turn.error.line, turn.error.text, "the server refused the request; nothing was processed")
    if judged.variant == "one-batch":
        return _one_batch(case, n_prompt, limit)
    if not isinstance(limit, int):
        limit = turn.n_ctx_slot
    if n_prompt is not None and isinstance(limit, int) and limit:
        ratio = n_prompt / limit
        text = (
            f"The prompt has {n_prompt:,} tokens, the slot's context {limit:,} ({ratio:.2f} x), of which one must stay "
            "free for the answer. The request was refused (HTTP 400) and nothing was processed."
        )
    else:
        text = "The prompt is longer than the slot's context. The request was refused (HTTP 400), nothing was processed."
    near = judged.variant == "near-miss"
    compact = "Let the client compact or cut its history a little earlier: this was a near miss."
    if not near:
        compact = "Or let the client compact its history before it reaches the limit."
    shorter = Fix("shorten-history", compact)
    if n_prompt is None:
        todo, not_todo = [shorter], []
    else:
        larger = larger_context(run, n_prompt + ANSWER, n_prompt + 1, n_prompt + 1)
        todo = present(shorter, larger) if near else present(larger, shorter)
        not_todo = present(no_more(run, n_prompt + 1))
    todo = present(fewer_slots(run, None if n_prompt is None else n_prompt + 1, limit), *todo)
    not_todo.append(
        Fix("checkpoints", "Checkpoint flags: a refused prompt never gets that far.", ["--ctx-checkpoints"])
    )
    return Finding("prompt-too-long", text, "observed", todo, not_todo)


def _one_batch(case: Case, n_prompt: int | None, limit: object) -> Finding:
    """An input that is not read piece by piece; ``limit``: what it must fit in, if the error names it."""
    run = case.run
    beyond_context = (case.turn.error_reason or "").startswith("larger_than_context")
    what, where = "An embedding or rerank input must fit in one physical batch", "batch"
    if beyond_context:
        what, where = "An embedding or rerank input must fit in the slot's context, and in one physical batch", "context"
    elif limit is None:
        limit = run.n_ubatch  # the old wording names no size
    text = what
    if n_prompt is not None:
        text += f": it has {n_prompt:,} tokens"
        if isinstance(limit, int) and 0 < limit < n_prompt:
            text += f", the {where} holds {limit:,} ({n_prompt / limit:.2f} x)"
    size = str(_round_up(n_prompt or 4096, 512))
    batch = Fix("larger-batch", f"Raise the physical batch to {size}, or split the input.", ["-ub", size, "-b", size])
    if beyond_context:
        room = larger_context(run, n_prompt + ANSWER, n_prompt + 1, n_prompt + 1) if n_prompt is not None else None
        return Finding("one-batch", text + ".", "observed", present(room, batch))
    context = Fix("larger-context", "A larger -c alone: the limit here is the batch, not the context.", ["-c"])
    return Finding("one-batch", text + ".", "observed", [batch], [context])


def limit_stop(case: Case, judged: Judged) -> Finding:
    turn, run = case.turn, case.run
    limit = turn.n_ctx_slot or run.n_ctx_slot
    q = turn.release_quote
    if q is not None:
        case.quote(q.line, q.text, "the slot was full to the last token when generation ended")
    generated = f" after {turn.n_generated:,} token{'s' if turn.n_generated != 1 else ''}" if turn.n_generated is not None else ""
    full = f"the slot's {limit:,} tokens" if limit else "the slot"
    text = (
        f"The answer was cut off{generated}: prompt and answer filled {full}. The client saw only "
        '"finish_reason": "length", as with max_tokens.'
    )
    if run.shift_unsupported:
        text += " Context shift can't be used with this model's memory."
    per_slot = (limit or 4096) + max(2048, (turn.n_generated or 0) * 2)
    least = (limit or 0) + 1
    todo = present(
        larger_context(run, per_slot, least),
        Fix("shorten-history", "Or leave more room for the answer: compact the history earlier."),
    )
    not_todo = present(
        Fix("max-tokens", "A larger max_tokens: the context was full, not the budget."), no_more(run, least)
    )
    if run.shift_unsupported or run.memory in ("hybrid", "recurrent"):
        not_todo.append(Fix("context-shift", "--context-shift: this memory can't be shifted.", ["--context-shift"]))
    else:
        not_todo.append(
            Fix("context-shift", "--context-shift would go on, but by deleting a part of the prompt in silence.", ["--context-shift"])
        )
    return Finding("context-full", text, judged.confidence, todo, not_todo)


#: shift lines shown; an answer with a huge n_keep can shift a thousand times
QUOTED_SHIFTS = 3

#: fewer tokens than this at the beginning are a template's header, and no system prompt
FEW_KEPT = 32

_HOLE_WORDS = {
    "head": "at the very beginning, so the system prompt went first",
    "history": "inside the prompt, behind the tokens that were kept",
    "generated": "behind the prompt, so only earlier parts of the answer went",
}


def _hole_words(variant: str | None, n_keep: int | None) -> str:
    """Where the hole begins, in words."""
    if n_keep is not None and 1 < n_keep < FEW_KEPT and variant in ("history", "input"):
        return f"behind the first {n_keep} tokens, so the system prompt went first"
    if variant == "input":
        if n_keep is None:
            return "at a place that this log does not show"
        return _HOLE_WORDS["head" if n_keep <= 1 else "history"]
    if variant is None and n_keep is not None:
        return f"behind the first {n_keep:,} tokens (how long the prompt was is not in the log)"
    return _HOLE_WORDS.get(variant or "", "at a place that this log does not show exactly")


def context_shift(case: Case, judged: Judged) -> Finding:
    turn, run = case.turn, case.run
    if turn.input_truncated is not None:
        case.quote(turn.input_truncated.line, turn.input_truncated.text, "the prompt itself was cut")
    for i, shift in enumerate(turn.shifts[:QUOTED_SHIFTS]):
        low, high = shift.hole
        more = len(turn.shifts) - QUOTED_SHIFTS
        rest = f"; {more} more shifts follow" if i == QUOTED_SHIFTS - 1 and more > 0 else ""
        case.quote(shift.line, shift.text, f"tokens {low:,} to {high - 1:,} were deleted{rest}")
    gone = sum(s.n_discard for s in turn.shifts)
    times = f"{len(turn.shifts)} times" if len(turn.shifts) > 1 else "once"
    n_keep = turn.error_fields.get("n_keep") if turn.input_truncated is not None else turn.shifts[0].n_keep
    where = _hole_words(judged.variant, n_keep if isinstance(n_keep, int) else None)
    if turn.input_truncated is not None:
        text = f"The prompt was longer than the context; before it was processed the server cut {_cut_on_arrival(turn)} and went on: {where}."
        if turn.shifts:
            text += f" While it answered it deleted {gone:,} tokens more."
    else:
        text = f"The context was full; in this turn the server deleted a slice {times} ({gone:,} tokens) and went on: {where}."
    if turn.ended != "error":
        text += " The model answered without it, and nothing told the client."
    if turn.shifts and judged.variant != "generated":
        text += f" What the slot holds now fits the conversation only up to token {turn.shifts[-1].n_keep:,}: the next turn is processed anew from there."
    limit = turn.n_ctx_slot or run.n_ctx_slot or (turn.shifts[0].n_keep + turn.shifts[0].n_left + 1 if turn.shifts else 4096)
    # what the turn would have needed without a shift: its prompt, all of its answer, and a token to spare
    known = turn.n_prompt is not None and turn.n_generated is not None
    needed = (turn.n_prompt or 0) + (turn.n_generated or 0) + 1 if known else None
    room = needed if needed is not None else max(limit * 2, (turn.n_prompt or limit) + gone + 256)
    todo = present(fewer_slots(run, needed, limit), larger_context(run, room, limit + 1, needed), fixes.no_shift(run))
    if judged.variant != "input" and turn.shifts[0].n_keep < FEW_KEPT:
        todo.append(Fix("keep-the-prompt", 'Or keep the prompt: "n_keep": -1 in the request (or --keep -1).', ["--keep", "-1"]))
    return Finding(
        "context-full", text, judged.confidence, todo,
        present(
            no_more(run, limit + 1),
            Fix("checkpoints", "Checkpoint flags: they don't give the context more room.", ["--ctx-checkpoints"]),
        ),
    )  # fmt: skip


def _cut_on_arrival(turn: Turn) -> str:
    """How much of the prompt went before it was processed."""
    left = turn.error_fields.get("n_prompt")
    if turn.n_prompt is None or not isinstance(left, int) or left >= turn.n_prompt:
        return "a part out of it"
    return f"{turn.n_prompt - left:,} of its {turn.n_prompt:,} tokens out of it"


def error(case: Case, judged: Judged) -> Finding:
    turn = case.turn
    if turn.error is not None:
        case.quote(turn.error.line, turn.error.text, "the server gave up the request")
    reason = turn.error_reason or ""
    if judged.variant == "crash":
        return crashed(case)
    if reason == "context_exceeded":
        return _no_cells(case)
    refused = _slot_left_full(case) if reason == "shift_disabled" else None
    if refused is not None:
        return refused
    if reason in ("shift_disabled", "shift_shared"):
        why = "shared between several choices (n > 1)" if reason == "shift_shared" else "not to be shifted here"
        text = f"The context was full, and the prompt is {why}: the request ended with an error."
        size = case.run.n_ctx_slot or 4096
        return Finding(
            "shift-refused", text, "observed",
            present(
                larger_context(case.run, size * 2, size + 1),
                Fix("shorten-history", "Or let the client compact its history before it reaches the limit."),
            ),
            present(no_more(case.run, size + 1)),
        )  # fmt: skip
    failed = turn.failed_batch
    if failed is not None and failed.ret is not None and failed.ret < -1 and "too big compared to KV size" in str(turn.error_fields.get("text")):
        # these builds tell every failure of a batch so
        text = (
            "A batch of this request could not be computed (ret = "
            f"{failed.ret}): the backend failed, often for want of memory. The error's text, that the prompt is too big for "
            "the KV cache, is wrong here: a larger -c would only need more memory."
        )
        return Finding("server-error", text, "observed", [_LESS_MEMORY])
    said = turn.error_fields.get("text")
    text = "The request ended with an error of the server" + (f": {said}" if said else ".")
    return Finding("server-error", text, "observed", fix_for_thrown(str(said or "")))


def _slot_left_full(case: Case) -> Finding | None:
    """The fault of builds that refuse a request for what the turn before left in the slot."""
    turn, run = case.turn, case.run
    limit = turn.n_ctx_slot or run.n_ctx_slot
    if turn.new_prompt_line is not None or turn.batch_starts or not turn.start_seen:
        return None
    if limit is None or turn.n_released is None or turn.n_held_slot != turn.n_released or turn.n_released + 1 < limit:
        return None
    words, upgrade = faults.told(run, "full-slot-refused", seen=True)
    if not words:
        return None
    text = (
        f"The turn before had left the slot full ({turn.n_released:,} of {limit:,} tokens), and this request was ended for "
        f"that, whatever its own length. {words}"
    )
    not_todo = [Fix("larger-context", "A larger -c: this prompt was not too long.", ["-c"])]
    return Finding("shift-refused", text, "observed", upgrade, not_todo)


def _no_cells(case: Case) -> Finding:
    """The KV cache had no cells left for a batch."""
    turn, run = case.turn, case.run
    if run.kv_unified is False or run.n_slots == 1:
        limit = turn.n_ctx_slot or run.n_ctx_slot
        text = "The KV cache had no cells left for this request's next batch, and it ended with an error (HTTP 500)."
        if turn.n_released is not None and limit is not None:
            text += f" The slot held {turn.n_released:,} of its {limit:,} tokens, that batch included."
            if turn.n_released < limit // 2:
                text += " Its context was not full: the fault is the server's, or its cache is smaller than it says."
        return Finding("kv-cache-full", f"{text} No other slot took its cells: they share none here.", "observed", [_NEWER])
    text = (
        "All slots share one KV cache, and it ran out of cells: every running request was ended with an error "
        "(HTTP 500), also those far below their own limit."
    )
    room = ["-c", str(run.n_ctx * 2)] if run.n_ctx is not None else []
    fewer = ["--parallel", str(run.n_slots - 1)] if run.n_slots is not None and run.n_slots > 1 else []
    todo = [
        Fix("larger-context", "Give -c room for all conversations together.", room),
        Fix("fewer-slots", "Or run fewer slots at a time.", fewer),
        fixes.split_cache(run),
    ]
    return Finding("kv-cache-full", text, "observed", todo)


_LESS_MEMORY = Fix(
    "device-memory",
    "Look at the lines before the error; if the device's memory ran out: a smaller -c or -ub, or fewer layers on it (-ngl).",
)

#: the only advice where the log shows no fault of the settings
_NEWER = Fix("report-error", fixes.newer_or_report("the lines before the error"))


def cancelled(case: Case) -> Finding:
    turn = case.turn
    if turn.stopped is not None:
        return _stopped(case, turn.stopped)
    if turn.cancel is None and turn.router_gave_up is None and turn.decode_cancelled is not None:
        return _broken_off(case, turn.decode_cancelled)
    who, whose, reader, cause = "It", "in the client", "it", "client-gone"
    if turn.router_gave_up is not None:
        q = turn.router_gave_up
        case.quote(q.line, q.text, "the router waited no longer for this server's answer")
        who = "The router gave the request up (its own time-out, as far as that line tells). It"
        whose, reader, cause = "of the router (-to N)", "the client", "router-gave-up"
    if turn.cancel is not None:
        case.quote(turn.cancel.line, turn.cancel.text, _GONE if turn.router_gave_up is None else "the router's connection was closed")
    n_cached, n_processed, n_prompt = turn.n_cached, turn.n_processed, turn.n_prompt
    done = n_processed + (n_cached or 0) if n_processed is not None else None
    if done is not None and (done < n_prompt if n_prompt is not None else turn.n_generated == 0):
        of = f" of {n_prompt:,}" if n_prompt is not None else ""
        text = f"{who} left while the prompt was being processed: {done:,}{of} tokens were in the slot."
        fix = f"If that was a time-out: raise it {whose}, or make the prompt phase shorter."
    elif turn.n_generated:
        tokens = "token" if turn.n_generated == 1 else "tokens"
        text = f"{who} left after {turn.n_generated:,} {tokens} of the answer."
        fix = f"If that was a time-out: raise it {whose}, or let {reader} read the answer as a stream."
    else:
        text = f"{who} left before the answer was complete."
        fix = f"If that was a time-out: raise it {whose}."
    text += f" {_what_becomes_of_it(case)}"
    return Finding(cause, text, "observed", [Fix("client-timeout", fix)])


def _what_becomes_of_it(case: Case) -> str:
    """The same request can go on from what was done: unless this one, a second try, shows that the client changes it."""
    turn, before = case.turn, case.turn.previous
    common, held = case.common, case.turn.n_held
    again = before is not None and before.ended == "cancel" and before.n_prompt == turn.n_prompt
    if not again or common is None or held is None or turn.cache_loaded or common[1] >= held - ONE_MESSAGE:
        return "What was done stays in the slot, so that the same request can go on from there."
    return (
        f"The request before it was as long and left, too: it had {held:,} tokens in the slot, and this one parts from them at "
        f"{case.parting}. If it was the same request sent again, the client changes it there, and each try begins anew."
    )


def _stopped(case: Case, at: Quote) -> Finding:
    """Somebody ended the server; if the client left behind that, it was for want of an answer."""
    case.quote(at.line, at.text, _STOPPED, "server-stopped")
    text = (
        f"The server was told to stop while it was at work on this request (line {at.line}), and ended before the answer was "
        "complete: that is no crash, and no fault of the client's. What its slots held is gone with it."
    )
    return Finding("server-stopped", text, "observed")


def _broken_off(case: Case, at: Quote) -> Finding:
    """No client of this request left, as far as the log shows."""
    case.quote(at.line, at.text, _BROKEN_OFF, "broken-off")
    text = (
        "The server broke the decoding off, and the request ended without an answer. In ik_llama.cpp the cancel of any "
        "request does that to all that are at work. What was done stays in the slot."
    )
    return Finding("decode-cancelled", text, "observed")


def client_had_gone(case: Case) -> str:
    """Of a turn that was worked on to its end: had its client left before?"""
    turn = case.turn
    cancel, release = turn.cancel, turn.release_quote
    if cancel is None or release is None or turn.ended != "release" or cancel.line > release.line:
        return ""
    case.quote(cancel.line, cancel.text, _GONE, "client-gone")
    return f"The client had gone before the end (line {cancel.line}); the server finished the answer all the same."
