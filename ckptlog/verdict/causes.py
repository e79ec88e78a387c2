"""Why the server could not resume: one small class a cause, tried in the order of ``CAUSES``.

A cause is named only when the log proves it; where it does not, the answer is ``unknown`` with
what to capture next time.
"""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.timeline.course import checkpoints_filtered, lines_missing, search_missing
from ckptlog.timeline.figures import SURE_TO_CHECKPOINT
from ckptlog.verdict import fixes
from ckptlog.verdict.case import Case, rules_of
from ckptlog.verdict.causes_drafts import DraftLeftBehind
from ckptlog.verdict.causes_gone import (
    CacheLoadFailed,
    CheckpointEvicted,
    CheckpointInvalidated,
    CheckpointThinned,
    RestoreFailed,
    ShiftCleared,
    SlotRestoredBare,
)
from ckptlog.verdict.causes_held import (
    NothingInCommon,
    OtherConversation,
    PromptCacheEvicted,
    SlotSwapped,
    SlotTaken,
)
from ckptlog.verdict.causes_places import BeforeFirstBoundary, CheckpointsSparse, NoUserBoundary
from ckptlog.verdict.causes_server import (
    CacheOff,
    CheckpointsDisabled,
    LoraChanged,
    ServerRule,
    server_may_forbid,
)
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import not_helping, quote_search


class Unknown(CauseRule):
    """The log does not show why

    What happened: something in common was processed again, but the lines that would say why are missing: the
    log level hides them, the log begins too late, or lines were cut out.

    What to do: capture the next log with -lv 4 (and LLAMA_SERVER_SLOTS_DEBUG=1), whole, from the server's start.

    Example: a default-level log of b9830 or later: a full re-prefill leaves no line at all.
    """

    name = "unknown"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        quote_search(case)
        todo: list[Fix] = []
        if checkpoints_filtered(case.run):
            text = (
                "The messages about checkpoints were taken out of this log (prompts are cut where one is made, and no line "
                "tells of any), so it can't tell why."
            )
            missing = ["why the server could not resume (capture the log whole, without a filter)"]
        elif case.only_appends_unseen and turn.n_cached == 0:
            text = (
                f"The prompt only adds to the {turn.n_held:,} tokens that the slot held, and nothing was reused. The log's "
                'level hides why: as a rule because the request was sent with "cache_prompt": false, or names another LoRA.'
            )
            missing = ["why nothing was reused (run with -lv 4)"]
            todo.append(fixes.send_cache_prompt(server_may_forbid(case)))
        elif not turn.list_visible:
            text = "The log's level hides the checkpoint messages, so it can't tell why."
            missing = ["why the server could not resume (run with -lv 4)"]
        elif _list_empty(case):
            text = _empty_list(case)
            missing = ["why no checkpoint had been made"]
        elif not turn.before_known:
            text = "The log begins after this slot's checkpoints were made (or lines are missing), so it can't tell why."
            text += self._nearest(case)
            missing = ["which checkpoints existed before the log begins (capture it from the server's start)"]
        elif search_missing(case.run, turn):
            text = "The server must have looked for a checkpoint, and what it found is not in this log: lines are missing."
            missing = ["the search of the checkpoints (capture the log whole, without a filter)"]
        elif case.perhaps_nothing_common and case.common is not None:
            text = (
                f"At most {case.common[1]:,} tokens of this prompt had been in the slot: another conversation, or the "
                "same with its beginning changed. The log does not tell which."
            )
            missing = [] if case.costly is False else ["how much of the prompt the slot held"]
        elif _sizes_missing(case):
            text = (
                f"No checkpoint lay before {case.parting}. Whether a message begins before it, where one could have been "
                "made, this log can't tell: it begins behind the lines that print n_batch and n_ubatch, and so any cut of "
                "a prompt may be a full batch's end."
            )
            missing = ["n_batch and n_ubatch (capture it from the server's start, with -lv 4)"]
        else:
            text = "None of the known reasons fits what the log shows."
            debug = "LLAMA_SERVER_SLOTS_DEBUG=1 shows the text at the divergence"
            missing = ["why the server could not resume" + (f" ({debug})" if case.run.fork is None else "")]
        if turn.n_cached is None and case.lost is not None:
            text += f" {case.lost[0]:,} to {case.lost[1]:,} tokens that the slot had held were processed again."
        old = case.run.build_max is not None and case.run.build_max < 9771 and case.run.memory != "plain"
        if case.run.fork == "ik_llama.cpp" and case.run.memory != "plain":
            todo.append(fixes.fork_interval(case.run))
        elif old and not case.run.swa_full and (turn.before or turn.invalidated):
            what = "checkpoints are made wherever a user message begins there (in chat requests, not in raw prompts)"
            todo.append(fixes.upgrade(9981, what))
        return Finding(self.name, text, "inferred", todo, not_helping(case), missing)

    @staticmethod
    def _nearest(case: Case) -> str:
        """What the search shows of the list: how far beyond the divergence its entries lie."""
        seen = [c.n_tokens for c in (case.turn.before or [])] + [c.n_tokens for c in case.turn.invalidated]
        beyond = [n for n in seen if case.common is not None and n > case.common[1]]
        if not beyond or case.common is None or len(beyond) != len(seen):
            return ""
        which = "The only checkpoint it shows lies" if len(set(seen)) == 1 else "The nearest checkpoint it shows lies"
        return (
            f" {which} at token {min(beyond):,}, {min(beyond) - case.common[0]:,} tokens beyond the point where the "
            "prompts part."
        )


def _list_empty(case: Case) -> bool:
    """Was there no checkpoint at all when the server looked for one? What does not fit is swept, a line each (policy,
    section 2, step 6; up to b6628 without one)."""
    turn = case.turn
    if turn.forced is None or turn.checks or turn.invalidated or turn.before:
        return False
    if turn.new_prompt_line is None or lines_missing(case.run, turn):
        return False  # lines of the search may be missing
    return turn.before_known or all(rules.invalidate != "window" for rules in rules_of(case.run))


def _empty_list(case: Case) -> str:
    """The search found an empty list: what the turn before says of why it was."""
    text = "The slot's list of checkpoints was empty when the server looked for one."
    before, run = case.turn.previous, case.run
    if run.swa_full:
        return f"{text} Under --swa-full none is made."
    if before is None or before.created or not before.list_visible or before.cache_loaded:
        return text
    left_at = before.n_released
    if before.ended != "release" and not before.prompt_done and left_at is not None:
        return f"{text} The turn before had been left at token {left_at:,} of its prompt, before a place for one."
    if before.batch_starts and before.prompt_done and (before.n_processed or 0) >= SURE_TO_CHECKPOINT:
        # (a server that says its checkpoints are enabled keeps some)
        off = "" if run.checkpoints_enabled else ", or with --ctx-checkpoints 0"
        text += f" The turn before had processed its prompt to the end and made none, as with /infill requests{off}."
    return text


def _sizes_missing(case: Case) -> bool:
    """Is where messages begin not known for want of the sizes of batches?"""
    run, starts = case.run, case.turn.starts
    if run.n_batch is not None and run.n_ubatch is not None:
        return False
    return run.build_min >= 9306 and starts.first_born is not None and starts.complete and not starts.sure


#: in the order in which they are tried
CAUSES: tuple[type[CauseRule], ...] = (
    SlotSwapped,
    NothingInCommon,
    LoraChanged,
    CheckpointsDisabled,
    CacheOff,
    ServerRule,
    RestoreFailed,
    DraftLeftBehind,
    SlotRestoredBare,
    CacheLoadFailed,
    ShiftCleared,
    CheckpointEvicted,
    CheckpointThinned,
    CheckpointInvalidated,
    OtherConversation,
    NoUserBoundary,
    BeforeFirstBoundary,
    CheckpointsSparse,
    SlotTaken,
    Unknown,
)

#: what no log proves: told as a possibility (``returning``) and explained, but never named as the cause
TOLD_ONLY: tuple[type[CauseRule], ...] = (PromptCacheEvicted,)

_RULES = tuple(rule() for rule in CAUSES)
#: where nothing of weight was lost from the slot itself, but more was held elsewhere
_ELSEWHERE = tuple(rule() for rule in (SlotSwapped, CacheOff, CacheLoadFailed, SlotTaken, Unknown))


def find_cause(case: Case) -> Finding:
    """The first cause that the log proves; ``unknown`` always applies."""
    for rule in _ELSEWHERE if case.known_costly and not case.costly else _RULES:
        if rule.by_policy and case.run.fork is not None:
            continue
        finding = rule.find(case)
        if finding is not None:
            return finding
        case.evidence.clear()
    raise AssertionError("the last rule always answers")
