"""Which outcome a turn had: one of the four failures, a healthy end, or something else.

The order of precedence is that of the harm to the answer (docs/outcomes): rejection, shift, limit
stop, costly re-prefill, error, cancelled, harmless re-prefill, healthy.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ckptlog.records import HEALTHY, Basis, Outcome
from ckptlog.replay.loss import HARMLESS_TOKENS, NOTHING_CACHED, is_costly_loss
from ckptlog.timeline.course import error_missing, prompt_start_seen, refused, shift_missing
from ckptlog.timeline.model import Run, Shift, Turn
from ckptlog.timeline.refusals import ONE_BATCH
from ckptlog.verdict.case import Case

#: a refused prompt up to this ratio of the limit is a near miss
NEAR_MISS = 1.1


class Judged(msgspec.Struct):
    outcome: Outcome
    variant: str | None = None
    severity: Literal["harmless", "costly"] | None = None
    confidence: Basis = "derived"
    also: list[Outcome] = []


def judge_outcome(case: Case) -> Judged:
    """The primary outcome, and the other failures of the same turn."""
    run, turn = case.run, case.turn
    found: list[Judged] = []
    if refused(turn):
        return Judged("arrival-rejection", rejection_variant(turn), confidence="observed")
    if turn.shifts or turn.input_truncated is not None:
        found.append(Judged("context-shift", shift_variant(run, turn), confidence="observed"))
    other_kind = not_completion(run, turn)
    if other_kind:
        return Judged("not-completion", confidence="derived" if turn.n_prompt is not None else "inferred")
    if other_kind is None:
        return Judged("unknown", confidence="inferred")
    stop = limit_stop(run, turn)
    if stop is None and turn.truncated and not turn.shifts and turn.input_truncated is None:
        return Judged("unknown", confidence="inferred")  # cut off, or shifted by lines that are not in the log
    if stop is not None:
        found.append(Judged("limit-stop", confidence=stop))
    prefill = judge_prefill(case)
    if end_lost(run, turn) and (prefill is None or prefill.severity != "costly"):
        found.append(Judged("unknown", confidence="inferred"))
    if prefill is not None and (_end_open(run, turn) or _unfinished(turn, prefill)):
        prefill.confidence = "inferred"
    if prefill is not None and prefill.outcome == "checkpoint-reprefill" and prefill.severity != "harmless":
        found.append(prefill)
    if turn.ended == "error" or (turn.ended == "restart" and turn.slot is not None and turn.n_generated is None):
        found.append(Judged("error", "crash" if turn.error is None or turn.crash else None, confidence="observed"))
    elif turn.ended == "cancel" and (turn.start_seen or turn.batch_starts or turn.prompt_done):
        # (of a turn of which only the end is in the log, the error that the cancel belongs to may be lost)
        if turn.stopped is not None:
            # (without any release the end may be in no line because such lines were not kept)
            found.append(Judged("cancelled", "server-stopped", confidence="observed" if run.n_releases else "inferred"))
        else:
            found.append(Judged("cancelled", confidence="observed"))
    if prefill is not None and prefill not in found:
        found.append(prefill)
    if not found:
        return Judged("unknown", confidence="inferred")
    first = found[0]
    failures = ("context-shift", "limit-stop", "checkpoint-reprefill", "error", "cancelled")
    first.also = [j.outcome for j in found[1:] if j.outcome in failures]
    return first


def rejection_variant(turn: Turn) -> str | None:
    if turn.error_reason in ONE_BATCH:
        return "one-batch"
    n_prompt, limit = turn.error_fields.get("n_prompt"), turn.error_fields.get("n_ctx")
    if not isinstance(n_prompt, int) or not isinstance(limit, int) or limit <= 0:
        return None
    return "near-miss" if n_prompt / limit <= NEAR_MISS else "oversized"


def shift_variant(run: Run, turn: Turn) -> str | None:
    """By where the (first) hole begins; each shift gets its own word as well."""
    if turn.input_truncated is not None and not turn.shifts:
        return "input"
    prompt_left = turn.n_prompt if turn.n_prompt is not None else _prompt_at_first_shift(turn)
    exact = turn.n_prompt is not None
    for shift in turn.shifts:
        shift.variant = _hole_variant(shift, prompt_left, exact)
        if prompt_left is not None and shift.n_keep < prompt_left:
            prompt_left = max(shift.n_keep, prompt_left - shift.n_discard)
    if turn.input_truncated is not None:
        return "input"
    return turn.shifts[0].variant


def _hole_variant(shift: Shift, prompt_left: int | None, exact: bool) -> str | None:
    if prompt_left is None:
        return "head" if shift.n_keep <= 1 else None
    slack = 0 if exact else max(2, prompt_left // 50)
    if shift.n_keep >= prompt_left - slack:
        return "generated"
    return "head" if shift.n_keep <= 1 else "history"


def _prompt_at_first_shift(turn: Turn) -> int | None:
    """The prompt's length from the tokens generated until the first shift (rate x time)."""
    shift = turn.shifts[0] if turn.shifts else None
    if shift is None or turn.generation_mark is None or shift.t is None:
        return None
    t, n, rate = turn.generation_mark
    generated = n + rate * (shift.t - t) / 1e6
    held = shift.n_keep + shift.n_left
    return max(0, round(held - generated))


def end_lost(run: Run, turn: Turn) -> bool:
    """Is how the turn ended not in the log: its release, or the error that ended it?

    Where only "slot" lines were kept, it was released without its timing, and without the error or cancel that
    would explain it. In a log that shows no releases, or no timings, at all that means nothing.
    """
    if error_missing(run, turn):
        return True
    if turn.ended in ("cut", "restart") and (turn.end_missed or turn.n_generated is not None):
        # the release would tell whether the context was full
        return _may_have_filled(run, turn)
    if turn.ended != "release" or turn.prompt_ms is not None or turn.generation_ms is not None:
        return False
    if not prompt_start_seen(turn) or turn.stop_reason is not None or turn.empty_prompt:
        return False
    return run.n_timed > 0 or _left_in_mid_prompt(turn)


def _left_in_mid_prompt(turn: Turn) -> bool:
    """Was the slot released before it held all of the prompt? That is never for nothing."""
    if turn.n_prompt is None or turn.n_released is None or turn.shifts or turn.input_truncated is not None:
        return False
    return turn.n_released < turn.n_prompt


def not_ended(run: Run, turn: Turn) -> bool:
    """Was the turn at work where the log ends? (Where no releases were kept of a log, every turn looks so.)"""
    if turn.ended != "cut" or turn.released or turn.end_missed or turn.n_generated is not None or turn.is_child:
        return False
    return turn.slot is not None and turn.start_seen and not _end_open(run, turn)


def _end_open(run: Run, turn: Turn) -> bool:
    """Were no releases, or not the timing that every answer has, kept of this log, so that a turn may have failed?"""
    if turn.error is not None:
        return False
    if not turn.released:
        return run.n_releases == 0 and (turn.end_missed or run.n_turns > 1)
    return turn.ended == "release" and turn.n_generated is None and turn.prompt_ms is None and turn.stop_reason is None


def _unfinished(turn: Turn, prefill: Judged) -> bool:
    """Does the log end before a turn does of which nothing is wrong yet?"""
    return prefill.outcome in HEALTHY and turn.ended in ("cut", "restart") and turn.n_generated is None


def _may_have_filled(run: Run, turn: Turn) -> bool:
    """May the context have been full at the end (formats: policy, section 5)?

    Where no figure tells, a release that is missing among others means that it may; at a log's end, or in a log
    without any, it means nothing.
    """
    limit = turn.n_ctx_slot or run.n_ctx_slot
    if turn.n_prompt is None or turn.n_generated is None or limit is None:
        return turn.end_missed and run.n_releases > 0
    return turn.n_prompt + turn.n_generated >= limit


def limit_stop(run: Run, turn: Turn) -> Basis | None:
    """Did generation end because the context was full (and shifting off)?

    ``truncated`` is 1 for it from b6900 on, 0 up to b6751; n_tokens + 1 >= n_ctx_slot in both
    (formats: policy, section 5).
    """
    if turn.shifts or turn.ended != "release" or turn.n_released is None or (turn.is_child and turn.error):
        return None
    if turn.stop_reason in ("eos", "limit") or shift_missing(turn):
        return None
    limit = turn.n_ctx_slot or run.n_ctx_slot
    full = limit is not None and turn.n_released + 1 >= limit
    if turn.stop_reason == "context":
        return "observed"
    if turn.n_generated is None and turn.truncated:
        return "inferred" if full else None  # no figure tells whether shifts are missing
    if turn.truncated and not prompt_start_seen(turn):
        return "inferred" if full else None  # shifts may have come before the log begins
    if turn.truncated:
        return "observed" if full or limit is None else ("derived" if _nearly(turn.n_released, limit) else None)
    old = run.build_max is not None and run.build_max < 6900
    if full and old and (turn.n_generated or 0) > 0:
        return "derived"
    return None


def _nearly(n: int, limit: int) -> bool:
    return n + 64 >= limit


def not_completion(run: Run, turn: Turn) -> bool | None:
    """Embeddings and rerank print no timing and end with just their prompt in the slot; null if it can't be told."""
    if turn.empty_prompt:
        return True
    if turn.ended != "release" or turn.n_generated or turn.prompt_ms is not None:
        return False
    if turn.sampled or turn.cancel is not None:
        return False
    if turn.created or turn.checks or turn.restored is not None or turn.forced is not None or turn.has_draft:
        return False  # (only completions have checkpoints: formats, policy, section 3)
    if not prompt_start_seen(turn):
        return None
    if turn.n_prompt is not None and turn.n_released != turn.n_prompt:
        return False
    shown = turn.n_prompt is not None and turn.start_seen
    if not run.embeds and not (shown and (run.n_timed or run.start_seen)):
        return None  # it answers completions: the timing may have been filtered out, or the error that ended it
    return turn.n_released is not None and (turn.n_prompt is not None or run.prefixed)


def judge_prefill(case: Case) -> Judged | None:
    """How the prompt's beginning was come by: reused, restored, cold, or processed again."""
    turn = case.turn
    n_cached = turn.n_cached
    if turn.is_child:
        return Judged("reused", confidence="derived")
    if n_cached is None:
        return _behind_drafts(case)
    if case.common is None:
        return _without_common(case, n_cached)
    # from a checkpoint (a search of which the last line is missing, but something was reused, found one)
    resumed = turn.restored is not None or (bool(turn.checks) and turn.forced is None and n_cached > 0)
    low, high = case.common
    basis = case.common_basis
    if case.known_costly and not case.costly:
        variant = "full" if n_cached <= NOTHING_CACHED else "partial"
        return Judged("checkpoint-reprefill", variant, "costly", basis)
    if high == 0:
        return Judged("cold", confidence=basis) if n_cached == 0 else Judged("reused", confidence=basis)
    if turn.chunk_moves and n_cached >= low:
        return Judged("reused", confidence=basis)
    if turn.n_prompt is not None and n_cached >= turn.n_prompt - 1 and not resumed:
        return Judged("reused", confidence=basis)
    if low <= n_cached <= high and not resumed and low != high:
        return Judged("reused", confidence="inferred") if n_cached > NOTHING_CACHED or low > 0 else _undecided(case)
    if n_cached >= high:
        return Judged("restored" if resumed else "reused", confidence=basis)
    if low == 0 and n_cached == 0 and turn.forced is None:
        return _undecided(case)
    return _lost(case, n_cached, low, basis)


def _lost(case: Case, n_cached: int, low: int, basis: Basis) -> Judged:
    turn = case.turn
    severity: Literal["harmless", "costly"] | None = None
    if case.costly is not None:
        severity = "costly" if case.costly else "harmless"
    hidden = not turn.list_visible
    if n_cached <= NOTHING_CACHED:
        variant = "silent" if hidden else "full"
        return Judged("checkpoint-reprefill", variant, severity, "inferred" if hidden else basis)
    assert case.lost is not None
    lost = case.lost[0]
    if lost >= HARMLESS_TOKENS and lost > low / 2:
        variant = "silent" if hidden else "partial"
        return Judged("checkpoint-reprefill", variant, severity, "inferred" if hidden else basis)
    return Judged("restored", confidence="inferred" if hidden else basis)


def _behind_drafts(case: Case) -> Judged | None:
    """What was reused is known within a few tokens only (speculation, at a level that hides the rest)."""
    turn = case.turn
    if turn.n_cached_range is None or case.common is None:
        return None
    least, most = turn.n_cached_range
    low, high = case.common
    losses = (low - most, high - least)
    if least > NOTHING_CACHED and losses[1] < HARMLESS_TOKENS:
        return Judged("reused", confidence="inferred")
    if most <= NOTHING_CACHED and is_costly_loss(losses[0], turn.n_processed):
        return Judged("checkpoint-reprefill", "full" if turn.list_visible else "silent", "costly", "inferred")
    if least <= NOTHING_CACHED or losses[0] <= 0:
        return None
    # certainly less than what was in common: from a checkpoint, near or far
    if losses[0] > high / 2 and is_costly_loss(losses[0], most + (turn.n_processed or 0)):
        return Judged("checkpoint-reprefill", "partial" if turn.list_visible else "silent", "costly", "inferred")
    return Judged("restored", confidence="inferred") if losses[1] <= low / 2 else None


def _undecided(case: Case) -> Judged:
    """Nothing reused, and the common prefix is between nothing and something."""
    if case.costly is False and case.common is not None and case.common[1] <= NOTHING_CACHED:
        return Judged("cold", confidence="inferred")
    return Judged("unknown", confidence="inferred")


def _without_common(case: Case, n_cached: int) -> Judged | None:
    """The common prefix is not known at all: some outcomes are certain all the same."""
    turn = case.turn
    if n_cached == 0:
        if turn.n_held == 0:
            return Judged("cold", confidence="derived")
        if turn.forced is not None:
            # no more can have been lost than the prompt, or the slot, held
            most = min((n for n in (turn.n_prompt, turn.n_held) if n is not None), default=HARMLESS_TOKENS)
            return Judged("checkpoint-reprefill", "full", "harmless" if most < HARMLESS_TOKENS else None, "observed")
        return Judged("unknown", confidence="inferred")
    if turn.restored is not None:
        return Judged("restored", confidence="observed")
    if n_cached > NOTHING_CACHED and prompt_start_seen(turn):
        return Judged("reused", confidence="inferred")
    return Judged("unknown", confidence="inferred")
