"""A conversation that may have come back after the server had let go of it.

The log shows lengths, not identities. On real logs with the true prefixes at hand, matching a prompt to lost
content by its size was wrong more often than right; so it is told as a possibility, with the lines, and
never made the cause.
"""

from __future__ import annotations

from ckptlog.records import Mark
from ckptlog.timeline.model import Dropped, Turn
from ckptlog.verdict.case import Case

#: below this many tokens the loss is not worth a sentence
WORTH_TELLING = 256

_FROM_CACHE = frozenset({"size-limit", "token-limit", "making-room"})
_WHERE = {
    "overwritten": "were overwritten by another prompt",
    "cleared": "were cleared from a slot",
    "ended": "were cleared from a slot when its request ended",
    "purged": "were purged from a slot for room",
    "size-limit": "were dropped from the RAM prompt cache, which was full",
    "token-limit": "were dropped from the RAM prompt cache, which was full",
    "making-room": "were dropped from the RAM prompt cache, which was full",
    "too-big": "were too large for the RAM prompt cache",
    "no-memory": "could not be saved in the RAM prompt cache, for which the host had no memory left",
    "sleep": "were let go of when the server slept",
}
#: what a turn is marked with that came back to nothing for that
_MARKS: dict[str, Mark] = {"purged": "purged", "sleep": "slept", "cleared": "cleared"}
_MORE_ROOM = "A slot for each conversation (--parallel) or more room for the RAM prompt cache (--cache-ram) would keep it."
_KEPT_BY = {
    "cleared": "A client does that: it erases a slot, or asks for a slot file that can't be loaded.",
    "ended": "The server does that behind an error, and to all but the first of several answers (n > 1).",
    "purged": "All slots share one KV cache, and its cells had run out: a larger -c would keep it.",
    "no-memory": "A larger --cache-ram is no help: the host's memory itself had run out.",
    "sleep": (
        "It lets go of the model then, and of all that slots and RAM cache hold: a longer --sleep-idle-seconds (or none) "
        "would keep it."
    ),
}


def lost_before(turn: Turn) -> Dropped | None:
    """The content let go of before that this prompt is most likely to go on from, by its length.

    A conversation that goes on sends all that there was and a message more: of what is no longer than the
    prompt, and at least half of it, the longest; of several as long the latest.
    """
    n_prompt = turn.n_prompt
    if n_prompt is None:
        return None
    # saving the slot's old content may push out the very entry that is looked for next
    until = turn.new_prompt_line or turn.first_line
    fitting = [
        x
        for x in turn.dropped
        if n_prompt / 2 <= x.n_tokens <= n_prompt
        and x.line < (until if x.why in _FROM_CACHE else turn.first_line)
    ]
    return max(fitting, key=lambda x: (x.n_tokens, x.line), default=None)


def returning_hint(case: Case) -> str:
    """A sentence on what may have been lost before this turn; empty if there is nothing to tell."""
    lost = lost_before(case.turn)
    if lost is None or (case.turn.n_processed or 0) < WORTH_TELLING:
        return ""
    went = f"{lost.n_tokens:,} tokens {_WHERE.get(lost.why, 'were let go')}"
    case.quote(lost.line, lost.text, went, _MARKS.get(lost.why))
    return (
        f"If this conversation had been here before: {went} (line {lost.line}). {_KEPT_BY.get(lost.why, _MORE_ROOM)}"
    )
