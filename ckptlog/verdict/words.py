"""The sentence that says what a turn did, for someone who knows nothing of checkpoints."""

from __future__ import annotations

from ckptlog.verdict.case import Case
from ckptlog.verdict.outcomes import Judged


def seconds(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 100 else f"{ms:.0f} ms"


def _again(n_lost: int | None, lost_ms: float | None, lost: tuple[int, int] | None) -> str:
    if n_lost is not None:
        count = f"{n_lost:,} token{'s' if n_lost != 1 else ''}"
    elif lost is not None:
        count = f"{lost[0]:,} to {lost[1]:,} tokens"
    else:
        return "part of it or all"
    return count + (f" ({seconds(lost_ms)})" if lost_ms else "")


def headline(case: Case, judged: Judged, n_lost: int | None, lost_ms: float | None) -> str:
    turn = case.turn
    n_prompt = f"{turn.n_prompt:,} tokens" if turn.n_prompt is not None else "unknown length"
    match judged.outcome:
        case "arrival-rejection":
            return f"A prompt of {n_prompt} was refused at the door."
        case "limit-stop":
            return "The answer stopped in mid-sentence: the context was full."
        case "context-shift":
            return "A slice of the context was deleted in silence, and the answer went on without it."
        case "checkpoint-reprefill":
            where = "from the beginning" if (turn.n_cached or 0) <= 8 else f"from token {turn.n_cached:,}"
            if turn.n_cached is None and turn.n_cached_range is not None and turn.n_cached_range[1] > 8:
                where = f"from about token {turn.n_cached_range[1]:,}"
            if judged.severity == "harmless" and where == "from the beginning" and case.common is not None:
                low, high = case.common
                shared = f"{high:,} token{'s' if high != 1 else ''}"
                most = "" if low == high else "at most "
                return f"The prompt was processed {where}: {most}{shared} of it had been in the slot."
            lost = n_lost
            if case.known_costly and not case.costly and turn.n_known is not None:
                lost = turn.n_known - (turn.n_cached or 0)
                lost_ms = lost * case.ms_per_token if case.ms_per_token else None
            return f"The prompt was processed again {where}: {_again(lost, lost_ms, case.lost)} that the server had held."
        case "reused" if turn.n_cached is None:
            return "Went on where the slot was. Tokens drafted beyond the answer's end hide exactly how much was reused."
        case "reused":
            return f"Went on where the slot was: {turn.n_cached or 0:,} of {n_prompt} came from the cache."
        case "restored" if turn.n_cached is None:
            return "Resumed from a checkpoint. Tokens drafted beyond the answer's end hide exactly how much was reused."
        case "restored":
            return f"Resumed from a checkpoint: {turn.n_cached or 0:,} of {n_prompt} came from the cache."
        case "cold":
            return f"A fresh prompt of {n_prompt}: there was nothing to reuse."
        case "cancelled" if judged.variant == "server-stopped":
            return "The server was stopped before the answer was complete."
        case "cancelled" if turn.router_gave_up is not None:
            return "The router gave the request up before the answer was complete."
        case "cancelled" if turn.decode_cancelled is not None and turn.cancel is None:
            return "The server broke the decoding off before the answer was complete."
        case "cancelled":
            return "The client went away before the answer was complete."
        case "error" if judged.variant == "crash":
            return "The server went down before the answer was complete."
        case "error":
            return "The request ended with an error of the server."
        case "not-completion":
            return "No completion (an embedding, a rerank or an empty prompt)."
        case _:
            return "This log does not show how the turn went."
