"""What several causes say alike: the lines of the search, where the prompts part, what would not help."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.replay.loss import NOTHING_CACHED
from ckptlog.verdict import faults, fixes
from ckptlog.verdict.case import Case
from ckptlog.verdict.triggers import first_user_start

#: a new first message parts from the old one behind the header of its turn, some tokens after its start
HEADER = 8


def present(*items: Fix | None) -> list[Fix]:
    """The fixes that there are."""
    return [item for item in items if item is not None]


def whole_window(case: Case) -> Fix | None:
    """--swa-full, where this turn could then have been resumed."""
    return None if case.window_came_back else fixes.swa_full(case.run)


def quote_search(case: Case) -> None:
    """The lines of this turn that show that nothing could be resumed from."""
    turn = case.turn
    if turn.memory_state_quote is not None:
        q = turn.memory_state_quote
        case.quote(q.line, q.text, _where_they_part(turn.memory_state))
    for check in turn.checks[-2:]:
        if check.pos_max > (case.common[1] if case.common else check.pos_max):
            says = "this checkpoint lies beyond the point where the prompts part" + _less_the_window(case, check.thold)
        elif check is turn.checks[-1] and turn.restored is not None:
            says = "the first that could be used"
        elif check.pos_min == 0:
            says = "this checkpoint holds everything from token 0, and the build's own rule refuses it all the same"
        else:
            says = "this checkpoint does not reach back far enough"
        case.quote(check.line, check.text, says)
    if turn.forced is not None:
        case.quote(turn.forced.line, turn.forced.text, "no checkpoint fitted: the prompt was processed from token 0")
    if turn.restored_quote is not None:
        says = f"evaluation went on from token {turn.n_cached:,}" if turn.n_cached is not None else "the one restored"
        case.quote(turn.restored_quote.line, turn.restored_quote.text, says)


def _less_the_window(case: Case, threshold: int) -> str:
    """The number in the line is not where they part, where a sliding window is taken off."""
    if case.common is None or case.common[0] != case.common[1] or not case.run.n_swa or threshold == case.common[0]:
        return ""
    less = "less the window that is" if threshold else "less the window, but never below 0, that is"
    return f" ({case.common[0]:,}; {less} {threshold:,})"


def _where_they_part(state: tuple[int, int, int, int | None] | None) -> str:
    if state is None:
        return "what the slot held"
    n_common, n_held = state[:2]
    if n_common >= n_held:
        return f"the prompt keeps all of the {n_held:,} tokens that the slot held"
    return f"the prompts part at token {n_common:,}"


def new_session(case: Case) -> str:
    """Said of a prompt that keeps the system prompt and nothing of what followed it; else empty."""
    start = first_user_start(case.run, case.turn)
    if start is None or case.common is None or not start <= case.common[0] <= case.common[1] <= start + HEADER:
        return ""
    return (
        f" The prompt keeps what stands before the first user message (the system prompt, {start:,} tokens) and parts "
        "right behind it: a new conversation with the same system prompt, or an edited first message."
    )


def start_not_matched(case: Case) -> tuple[str, list[Fix]]:
    """The fault that refuses a checkpoint which holds everything from token 0, where this turn shows it.

    As long as the common prefix is no longer than the window, the threshold is 0, and pos_min = 0 is not
    below it (policy, section 2, step 5).
    """
    run, turn = case.run, case.turn
    if run.memory != "swa" or case.common is None or turn.restored is not None or case.common[1] > (run.n_swa or 0):
        return "", []
    listed = [*(turn.before or []), *turn.invalidated] if turn.before_known else []
    whole = any(c.pos_min == 0 and NOTHING_CACHED < c.n_tokens <= case.common[0] for c in listed)
    return faults.told(run, "start-not-matched", seen=True) if whole else ("", [])


def not_helping(case: Case) -> list[Fix]:
    """What a person would try first and what would not help here."""
    most = max((t for t in (case.turn.n_prompt, case.turn.n_held) if t is not None), default=None)
    run = case.run
    return present(fixes.not_swa_full(run, came_back=case.window_came_back), fixes.not_larger_context(run, most), fixes.not_cache_reuse(run))
