"""What the request did to the conversation that the slot held."""

from __future__ import annotations

from ckptlog.records import Basis
from ckptlog.replay.loss import NOTHING_CACHED
from ckptlog.timeline.course import shift_missing
from ckptlog.timeline.model import Run, Turn
from ckptlog.verdict.case import Case, rules_of
from ckptlog.verdict.drafts import only_appended
from ckptlog.verdict.returning import lost_before

#: trigger -> title and text that ``ckptlog explain`` prints
TRIGGERS: dict[str, str] = {
    "appended": """
        The prompt only adds to the end

        The new prompt keeps everything that the slot held and adds to its end: the normal next turn.""",
    "edited": """
        The prompt keeps the beginning, then differs

        The new prompt parts from what the slot held somewhere inside the conversation: a message was changed, removed
        or inserted. A new conversation with the same system prompt looks the same: it parts right where the first
        user message begins.""",
    "prefix-rewritten": """
        The prompt differs near its beginning

        The new prompt parts from what the slot held near its beginning (before the first user message, or, where the
        log does not show where that begins, in the first tenth): the system prompt or the tool list was rewritten, often by a clock.""",
    "reasoning-dropped": """
        The last answer's reasoning is left out

        The new prompt parts where the last answer begins: as a rule what the model thought is left out when the
        answer is sent back as history (normal for many templates); an edited answer looks the same.""",
    "repeated": """
        The same prompt again

        A retry, or a regenerated answer.""",
    "shrunk": """
        The prompt is a beginning of what the slot held

        Messages were taken off the end.""",
    "other-conversation": """
        Nothing of weight in common

        The new prompt has nothing of weight in common with what the slot held: another conversation, as far as the
        lengths tell (a log shows no identities).""",
}


def trigger(case: Case) -> tuple[str | None, Basis]:
    """The trigger's name, and how sure it is; null where the common prefix is not known well enough."""
    turn = case.turn
    if case.common is None or turn.n_prompt is None or turn.spoilt_start:
        return None, "inferred"  # (what was swapped in is not what the request found)
    low, high = case.common
    held = turn.n_held
    if held == 0:
        return None, "derived"
    if 0 < turn.n_prompt <= low and low == high:
        return _all_of_it(turn, low, held)
    if high == 0 and held is None:
        return None, "inferred"  # perhaps the slot was empty
    shifted = _shifted_before(turn)
    if high <= NOTHING_CACHED:
        return (None, "inferred") if shifted else ("other-conversation", "derived")
    if not shifted and is_other_conversation(turn, high, held):
        return "other-conversation", "inferred"
    if only_appended(turn, low, high):
        return "appended", "derived"
    if low != high:
        return _from_range(case.run, turn, low, high, held)
    common = low
    basis = _basis(turn)
    if held is not None and common >= held:
        return "appended", basis
    if shifted or _before_unseen(turn):
        # the server itself (perhaps) cut a slice out of what the slot held: where they part says nothing of the request
        return None, "inferred"
    if may_be_another(turn, common):
        return None, "inferred"
    start = first_user_start(case.run, turn)
    if start is not None and common < start:
        return "prefix-rewritten", basis
    if held is not None and common < held / 10 and not _keeps_the_head(case.run, turn, common):
        return "prefix-rewritten", basis
    if held is None:
        return None, "inferred"
    if not turn.starts.sure and cuts_every_user_start(case.run) and not any(u <= common for u in turn.starts.user):
        return None, "inferred"  # perhaps before the first user message
    previous = turn.previous
    if (
        previous is not None
        and previous.n_prompt is not None
        and turn.n_prompt > previous.n_prompt
        and previous.n_prompt - 8 <= common <= previous.n_prompt + 8
    ):
        if previous.n_generated is None:
            return None, "inferred"
        if previous.n_generated > 16:
            return "reasoning-dropped", "inferred"
    return "edited", basis


def _basis(turn: Turn) -> Basis:
    return "derived" if turn.basis.get("n_common") != "inferred" else "inferred"


def _before_unseen(turn: Turn) -> bool:
    """Is what became of the slot's content before this turn not in the log (which begins later, or lacks lines)?"""
    previous = turn.previous
    if turn.cache_loaded or turn.content_from == "slot-file":
        return False
    return previous is None or not previous.start_seen


def _all_of_it(turn: Turn, common: int, held: int | None) -> tuple[str | None, Basis]:
    """The slot held all of the prompt, be it ever so short."""
    previous = turn.previous
    if held != common and (previous is None or previous.n_prompt is None):
        return None, "inferred"  # the last prompt is not known
    same = previous is not None and previous.n_prompt == turn.n_prompt
    return ("repeated" if same or held == common else "shrunk"), _basis(turn)


def cuts_every_user_start(run: Run) -> bool:
    """Do all builds of the run's bracket cut the prompt at every user message, so that the first one is seen?

    From b9771 on (policy, section 3); b9310 to b9763 cut at the last one only, older ones at none.
    """
    return all(rules.user_cuts in ("every", "useful") for rules in rules_of(run))


def first_user_start(run: Run, turn: Turn) -> int | None:
    """Where the first user message of the slot's content begins, where the log proves it; else null."""
    if not turn.starts.user or not turn.starts.complete or not turn.starts.sure or not cuts_every_user_start(run):
        return None
    return turn.starts.user[0]


def _shifted_before(turn: Turn) -> bool:
    previous = turn.previous
    return previous is not None and (bool(previous.shifts) or shift_missing(previous))


#: above this many tokens in common, two prompts have more than a template in common
RELATED_TOKENS = 64
#: a conversation that goes on brings a message of up to so many tokens (or half of what was there)
ONE_MESSAGE = 512


def is_other_conversation(turn: Turn, common: int, held: int | None) -> bool:
    """Little in common, and nothing that shows the same conversation with its head rewritten.

    A log shows lengths, not identities. A rewritten head (a clock in the system prompt) leaves the lengths
    of a conversation that goes on: the prompt has at least what the slot holds, and one message more; or at
    least the last prompt (an answer's reasoning left out) and parts at the same place as the turn before.
    Where content that was let go of fits the prompt better than what the slot holds, it is not that.
    """
    if held is None or turn.n_prompt is None:
        return False
    if common > max(RELATED_TOKENS, min(held, turn.n_prompt) / 10):
        return False
    if lengths_go_on(turn, held):
        return common <= NOTHING_CACHED
    lost = lost_before(turn)
    if lost is not None and held < lost.n_tokens:
        return True
    previous = turn.previous
    if previous is None or previous.n_prompt is None:
        return turn.n_prompt < held / 2
    if turn.n_prompt >= held:
        return True
    same_place = previous.n_common is not None and common > 0 and abs(previous.n_common - common) <= 2
    return not (same_place and turn.n_prompt >= previous.n_prompt)


def may_be_another(turn: Turn, common: int) -> bool:
    """Is so little in common that it may be another conversation, and what the slot held is not known?"""
    return turn.n_held is None and common <= max(RELATED_TOKENS, (turn.n_prompt or 0) / 10)


def lengths_go_on(turn: Turn, held: int | None) -> bool:
    """Has the prompt the length of what the slot holds and one message more, and nothing lost fits better?"""
    if held is None or turn.n_prompt is None or turn.previous is None or turn.previous.n_prompt is None:
        return False
    lost = lost_before(turn)
    if lost is not None and held < lost.n_tokens:
        return False
    return held <= turn.n_prompt <= held + max(ONE_MESSAGE, held // 2)


def _keeps_the_head(run: Run, turn: Turn, common: int) -> bool:
    """Is all in common that stands before the first user message, however long the conversation was that followed?

    Some templates put the system prompt into that message: then it proves nothing.
    """
    start = first_user_start(run, turn)
    return start is not None and NOTHING_CACHED < start <= common


def _from_range(run: Run, turn: Turn, low: int, high: int, held: int | None) -> tuple[str | None, Basis]:
    if held is not None and low >= held:
        return "appended", "inferred"
    if turn.selection is not None and turn.selection.f_keep == 1.0 and held is not None and high >= held:
        return "appended", "inferred"
    near = held is not None and high < held / 10 and not _shifted_before(turn)
    if near and not _keeps_the_head(run, turn, low):
        return "prefix-rewritten", "inferred"
    return None, "inferred"
