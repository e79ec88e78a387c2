"""One turn in, its verdict out: outcome, severity, trigger, cause, evidence, fixes, words."""

from __future__ import annotations

from typing import Literal

import msgspec

from ckptlog.records import FAILURES, Basis, Evidence, Fix, Outcome
from ckptlog.timeline.model import Run, Shift, Turn
from ckptlog.verdict import endings, faults, fixes
from ckptlog.verdict.case import Case
from ckptlog.verdict.causes import find_cause
from ckptlog.verdict.causes_drafts import DraftLeftBehind
from ckptlog.verdict.causes_held import SlotSwapped
from ckptlog.verdict.fixes import no_shift
from ckptlog.verdict.outcomes import Judged, end_lost, judge_outcome, not_ended
from ckptlog.verdict.parted import parted_hint
from ckptlog.verdict.returning import WORTH_TELLING, returning_hint
from ckptlog.verdict.room import larger_context
from ckptlog.verdict.rule import Finding
from ckptlog.verdict.showing import HEADER, present
from ckptlog.verdict.triggers import trigger
from ckptlog.verdict.words import headline


class Verdict(msgspec.Struct):
    """What is said of one turn; the fields are those of the public record."""

    outcome: Outcome
    severity: Literal["harmless", "costly"] | None
    failed: bool
    also: list[Outcome]
    variant: str | None
    trigger: str | None
    cause: str | None
    confidence: Basis
    n_lost: int | None
    lost_ms: float | None
    headline: str
    explanation: str
    evidence: list[Evidence] = []
    fixes: list[Fix] = []
    not_fixes: list[Fix] = []
    missing: list[str] = []


#: outcomes that say nothing of what the request did to the conversation (an unknown one may be a refusal)
UNTRIGGERED = frozenset({"arrival-rejection", "not-completion", "unknown"})

#: what is missing of a turn that was at work where the log ends
NOT_ENDED = "how it ended: the server was still at work on it where the log ends, or it was killed then"

ORDER: tuple[Basis, ...] = ("observed", "derived", "inferred")


def judge(run: Run, turn: Turn) -> Verdict:
    """The verdict on one finished turn of a run."""
    case = Case(run, turn)
    judged = judge_outcome(case)
    what, what_basis = (None, "observed") if judged.outcome in UNTRIGGERED else trigger(case)
    del what_basis
    finding = _finding(case, judged, what)
    failed = judged.outcome in FAILURES and judged.severity != "harmless"
    n_lost = _n_lost(case, judged)
    lost_ms = None
    if n_lost is not None and case.ms_per_token is not None:
        lost_ms = round(n_lost * case.ms_per_token, 3)
    confidence = judged.confidence
    if finding is not None:
        confidence = max(confidence, finding.confidence, key=ORDER.index)
    missing = list(finding.missing) if finding is not None else []
    if not_ended(run, turn):
        missing.append(NOT_ENDED)
    elif judged.outcome == "unknown":
        missing.append(_open_question(run, turn))
    said = finding.explanation if finding is not None else _hint(case, judged, what)
    prefill = judged.outcome == "checkpoint-reprefill" or "checkpoint-reprefill" in judged.also
    return Verdict(
        outcome=judged.outcome,
        severity=judged.severity,
        failed=failed,
        also=judged.also,
        variant=judged.variant,
        trigger=what,
        cause=finding.cause if finding is not None and prefill and judged.outcome == "checkpoint-reprefill" else None,
        confidence=confidence,
        n_lost=n_lost,
        lost_ms=lost_ms,
        headline=headline(case, judged, n_lost, lost_ms),
        explanation=" ".join(filter(None, (said, endings.client_had_gone(case)))),
        evidence=case.evidence,
        fixes=fixes.listed(fixes.for_this_server(run, finding.fixes), run) if finding is not None else [],
        not_fixes=fixes.for_this_server(run, finding.not_fixes) if finding is not None else [],
        missing=missing,
    )


def _open_question(run: Run, turn: Turn) -> str:
    """What the log would have to show for an outcome."""
    if end_lost(run, turn):
        return "how this turn ended: its release, or the error before it"
    if turn.n_cached is not None:
        what = "how much of the prompt the slot held before this turn"
        return what if turn.list_visible else f"{what} (run with -lv 4)"
    return "the beginning of this turn" if turn.list_visible else "what this turn reused (run with -lv 4)"


def _finding(case: Case, judged: Judged, what: str | None) -> Finding | None:
    match judged.outcome:
        case "arrival-rejection":
            return endings.rejection(case, judged)
        case "limit-stop":
            return endings.limit_stop(case, judged)
        case "context-shift":
            return endings.context_shift(case, judged)
        case "checkpoint-reprefill":
            finding = find_cause(case)
            if judged.severity == "harmless" and finding.cause != SlotSwapped.name:
                # little was lost, so nothing needs to change: unless a long prompt can never be reused
                rewritten = finding.cause == "before-first-boundary" and (case.turn.n_processed or 0) >= WORTH_TELLING
                finding.fixes = finding.fixes[:1] if rewritten else []
                finding.not_fixes = []
            return _swapped_later(case, finding)
        case "error":
            return endings.error(case, judged)
        case "cancelled":
            return endings.cancelled(case)
        case "reused" | "restored" | "cold" if case.turn.swapped is not None:
            return _swapped(case)
        case "reused" | "cold" if case.turn.previous is not None and case.turn.previous.shifts:
            return _after_shift(case, judged, case.turn.previous.shifts[-1])
        case "restored":
            return _restored(case)
        case "reused" if what == "prefix-rewritten":
            return _head_changed(case)
    return None


def _swapped(case: Case) -> Finding | None:
    """Healthy as far as the reuse goes; what was swapped in afterwards harms the answer."""
    finding = SlotSwapped().told(case)
    if finding is not None:
        finding.cause = ""
    return finding


def _swapped_later(case: Case, finding: Finding) -> Finding:
    """What was swapped in behind the turn's own search is not why that found nothing, but it harms the answer, too."""
    told = SlotSwapped().told(case) if finding.cause != SlotSwapped.name else None
    if told is not None:
        finding.explanation += f" {told.explanation}"
        finding.fixes = [*finding.fixes, *told.fixes]
    return finding


def _after_shift(case: Case, judged: Judged, shift: Shift) -> Finding | None:
    """Healthy by itself, but the shift of the turn before is why next to nothing was found."""
    if case.common is None or (case.turn.n_processed or 0) < WORTH_TELLING:
        return None
    if not shift.n_keep <= case.common[1] <= shift.n_keep + HEADER:
        return None
    case.quote(shift.line, shift.text, "what the slot held is no beginning of the conversation any more")
    run = case.run
    size = case.turn.n_ctx_slot or run.n_ctx_slot or shift.n_keep + shift.n_left + 1
    text = (
        f"A context shift in the turn before (line {shift.line}) deleted a slice of what the slot held, from token "
        f"{shift.n_keep:,} on. If this is the same conversation, that is why no more of it was found."
    )
    return Finding("", text, judged.confidence, present(larger_context(run, 2 * size, size + 1), no_shift(run)))


def _head_changed(case: Case) -> Finding | None:
    """All in common was reused, by memory that can be cut back to any token, and a long prompt was anew all the same."""
    turn = case.turn
    if turn.n_common is None or (turn.n_processed or 0) < WORTH_TELLING:
        return None
    text = (
        f"The prompt parts from what the slot held at token {turn.n_common:,}. If it is the same conversation, its "
        f"beginning was changed there{case.perhaps}, and no flag helps; if it is another one, there was nothing to keep."
    )
    return Finding("", text, "observed", [fixes.stop_rewriting_head()])  # that it was reused is as sure as before


def _restored(case: Case) -> Finding | None:
    """A healthy end, and yet worth a word: a stale state, or a loss that half of the common prefix outweighs."""
    turn = case.turn
    finding = None
    if turn.stale is not None:
        finding = _stale(case, turn.stale)
    elif case.costly:
        found = find_cause(case)
        # (that it was restored is as sure as before)
        if found.cause == DraftLeftBehind.name:
            finding = Finding("", found.explanation, "observed", found.fixes, found.not_fixes)
        elif found.cause != "unknown":
            finding = Finding("", f"{parted_hint(case)} {found.explanation}".lstrip(), "observed")
    q = turn.restored_quote
    if q is not None:
        case.quote(q.line, q.text, "evaluation went on from here")
    return finding


def _stale(case: Case, stale: tuple[str, int, str | None]) -> Finding:
    why, line, text = stale
    case.quote(line, text, "this changed what the slot held; the checkpoints were made before it")
    what = "a context shift" if why == "shift" else "a slot file was loaded, which"
    words, upgrade = faults.told(case.run, "stale-after-shift", seen=True)
    said = (
        f"The checkpoint that was restored had been made before {what} changed what the slot held (line {line}): its "
        f"state may belong to other tokens, and the answer may be off. {words}"
    )
    return Finding("", said.rstrip(), "observed", upgrade)


def _hint(case: Case, judged: Judged, what: str | None) -> str:
    """What may have been lost before a turn that is healthy as far as the log shows."""
    if judged.outcome == "cold" or (judged.outcome == "reused" and what == "other-conversation"):
        return returning_hint(case)
    return parted_hint(case) if judged.outcome in ("reused", "restored") else ""


def _n_lost(case: Case, judged: Judged) -> int | None:
    turn = case.turn
    if judged.outcome in ("arrival-rejection", "not-completion"):
        return None
    if turn.n_common is None or turn.n_cached is None:
        return None
    return max(0, turn.n_common - turn.n_cached)
