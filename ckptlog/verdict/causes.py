"""Why the server could not resume: one small class a cause, tried in the order of ``CAUSES``.

A cause is named only when the log proves it; where it does not, the answer is ``unknown`` with
what to capture next time.
"""

from __future__ import annotations

from ckptlog.verdict import fixes
from ckptlog.verdict.case import Case
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
from ckptlog.verdict.causes_server import CacheOff, CheckpointsDisabled, LoraChanged, ServerRule
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
        if not turn.list_visible:
            text = "The log's level hides the checkpoint messages, so it can't tell why."
            missing = ["why the server could not resume (run with -lv 4)"]
        elif not turn.before_known:
            text = "The log begins after this slot's checkpoints were made (or lines are missing), so it can't tell why."
            text += self._nearest(case)
            missing = ["which checkpoints existed before the log begins (capture it from the server's start)"]
        elif case.perhaps_nothing_common and case.common is not None:
            text = (
                f"At most {case.common[1]:,} tokens of this prompt had been in the slot: another conversation, or the "
                "same with its beginning changed. The log does not tell which."
            )
            missing = [] if case.costly is False else ["how much of the prompt the slot held"]
        else:
            text = "None of the known reasons fits what the log shows."
            debug = "LLAMA_SERVER_SLOTS_DEBUG=1 shows the text at the divergence"
            missing = ["why the server could not resume" + (f" ({debug})" if case.run.fork is None else "")]
        if turn.n_cached is None and case.lost is not None:
            text += f" {case.lost[0]:,} to {case.lost[1]:,} tokens that the slot had held were processed again."
        todo = []
        if case.run.fork == "ik_llama.cpp" and case.run.memory != "plain":
            todo.append(fixes.fork_interval(case.run))
        elif case.run.build_max is not None and case.run.build_max < 9771 and case.run.memory != "plain":
            todo.append(fixes.upgrade(9981, "checkpoints are made wherever a user message begins there"))
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
