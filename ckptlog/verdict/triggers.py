"""What the request did to the conversation that the slot held."""

from __future__ import annotations

from ckptlog.records import Basis
from ckptlog.timeline.model import Turn
from ckptlog.verdict.case import NOTHING_CACHED, Case

#: trigger -> the text that ``ckptlog explain`` prints
TRIGGERS: dict[str, str] = {
    "appended": "The new prompt keeps everything that the slot held and adds to its end: the normal next turn.",
    "edited": "The new prompt parts from what the slot held somewhere inside the conversation: a message was "
    "changed, removed or inserted.",
    "prefix-rewritten": "The new prompt parts from what the slot held near its beginning (before the first user "
    "message, or in the first tenth): the system prompt or the tool list was rewritten, often by a clock.",
    "reasoning-dropped": "The new prompt parts where the last answer begins: what the model thought is left out "
    "when the answer is sent back as history. Normal for many templates.",
    "repeated": "The same prompt again (a retry, or a regenerated answer).",
    "shrunk": "The new prompt is a beginning of what the slot held: messages were taken off the end.",
    "other-conversation": "The new prompt has nothing of weight in common with what the slot held: another "
    "conversation.",
}


def trigger(case: Case) -> tuple[str | None, Basis]:
    """The trigger's name, and how sure it is; null where the common prefix is not known well enough."""
    turn = case.turn
    if case.common is None or turn.n_prompt is None:
        return None, "inferred"
    low, high = case.common
    held = turn.n_held
    if held == 0:
        return None, "derived"
    if high <= NOTHING_CACHED:
        return "other-conversation", "derived"
    if low != high:
        return _from_range(turn, low, high, held)
    common = low
    basis: Basis = "derived" if turn.basis.get("n_common") != "inferred" else "inferred"
    if common >= turn.n_prompt:
        previous = turn.previous
        same = previous is not None and previous.n_prompt == turn.n_prompt
        return ("repeated" if same or (held is not None and held == common) else "shrunk"), basis
    if held is not None and common >= held:
        return "appended", basis
    if is_other_conversation(turn, common, held):
        return "other-conversation", "inferred"
    if turn.first_user_start is not None and common < turn.first_user_start:
        return "prefix-rewritten", basis
    if held is not None and common < held / 10:
        return "prefix-rewritten", basis
    if held is None:
        return None, "inferred"
    previous = turn.previous
    if (
        previous is not None
        and previous.n_prompt is not None
        and not turn.cache_loaded
        and turn.n_prompt > previous.n_prompt
        and previous.n_prompt - 8 <= common <= previous.n_prompt + 8
        and (previous.n_generated or 0) > 16
    ):
        return "reasoning-dropped", "inferred"
    return "edited", basis


#: a common prefix this short is a template's header and a few words: it says nothing of who talks
HEADER_TOKENS = 16
#: above this many tokens in common, two prompts have more than a template in common
RELATED_TOKENS = 64


def is_other_conversation(turn: Turn, common: int, held: int | None) -> bool:
    """Little in common, and nothing that shows the same conversation with its head rewritten.

    A rewritten head (a clock in the system prompt) leaves the sizes of a conversation that goes on:
    the prompt is at least as long as the last one, and little longer than what the slot holds. And it
    parts behind more than a template's header, or at the same place as the turn before.
    """
    if held is None or turn.n_prompt is None:
        return False
    if common > max(RELATED_TOKENS, min(held, turn.n_prompt) / 10):
        return False
    previous = turn.previous
    if previous is None or previous.n_prompt is None:
        return turn.n_prompt < held / 2
    goes_on = previous.n_prompt <= turn.n_prompt <= held + max(512, held // 2)
    same_place = previous.n_common is not None and 0 < common and abs(previous.n_common - common) <= 2
    return not (goes_on and (common > HEADER_TOKENS or same_place))


def _from_range(turn: Turn, low: int, high: int, held: int | None) -> tuple[str | None, Basis]:
    if held is not None and low >= held:
        return "appended", "inferred"
    if turn.selection is not None and turn.selection.f_keep == 1.0 and held is not None and high >= held:
        return "appended", "inferred"
    if held is not None and high < held / 10:
        if turn.n_prompt is not None and turn.n_prompt < held / 2:
            return "other-conversation", "inferred"
        return "prefix-rewritten", "inferred"
    return None, "inferred"
