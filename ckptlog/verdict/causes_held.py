"""Causes that lie in which slot the request got, and what it or others held."""

from __future__ import annotations

from msgspec.structs import replace

from ckptlog.records import Fix
from ckptlog.replay.loss import NOTHING_CACHED
from ckptlog.timeline.model import Turn
from ckptlog.verdict import fixes
from ckptlog.verdict.case import Case
from ckptlog.verdict.returning import returning_hint
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import not_helping, present, quote_search
from ckptlog.verdict.triggers import is_other_conversation, lengths_go_on

#: an entry of the RAM prompt cache is loaded only if this share of it is in common (policy, section 6)
LOADED_SHARE = 0.25


class NothingInCommon(CauseRule):
    """Another conversation had the slot

    What happened: the new prompt has (almost) nothing in common with what the slot held, so there was
    nothing to keep. The server may still print "forcing full prompt re-processing": with a common
    prefix of a few tokens (the template's first header) the line costs nothing.

    How to see it: the common prefix is a handful of tokens, or a small part of a much longer conversation
    that the slot held before.

    What to do: nothing, if conversations really change. If one conversation keeps losing its slot to
    another, give each its own slot (--parallel) or keep the RAM prompt cache on (--cache-ram).

    Example: a 250-token prompt arrives at a slot that held 2,611 tokens of something else; 4 tokens match.
    """

    name = "other-conversation"
    #: this early only the certain case; the weaker one is tried last
    certain_only = True

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        if case.common is None or case.known_costly:
            return None
        low, high = case.common
        held = turn.n_held
        if self.certain_only and high > NOTHING_CACHED:
            return None
        if not self.certain_only and not is_other_conversation(turn, high, held):
            return None
        quote_search(case)
        most = "only" if high - low <= 1 else "at most"
        what = "nothing" if high == 0 else f"{most} {high:,} token{'s' if high != 1 else ''}"
        text = f"The new prompt has {what} in common with the {held:,} tokens" if held else f"The prompt has {what} in common with what"
        text += " that the slot held: another conversation"
        text += ", so there was nothing to keep." if high <= NOTHING_CACHED else ", by the lengths, so there was nothing to keep."
        if 0 < high <= NOTHING_CACHED and lengths_go_on(turn, held):
            text += f" If it is the same one, its very first words were changed{case.perhaps}: then nothing can be reused."
        text = " ".join(x for x in (text, returning_hint(case)) if x)
        confidence = "derived" if low == high else "inferred"
        return Finding(self.name, text, confidence)  # type: ignore[arg-type]


class OtherConversation(NothingInCommon):
    __doc__ = NothingInCommon.__doc__
    certain_only = False


class SlotSwapped(CauseRule):
    """Another conversation was loaded into the slot while it was at work

    What happened: a request asked for this slot by number (id_slot) while the slot was still at work on this turn.
    From b9725 on (b11549 included) the server then looks into the RAM prompt cache for that request and loads what it
    finds, before it sees that the slot is busy. This turn went on with the other conversation's tokens: its answer
    may be off.

    How to see it: "selected slot by id" that names the running task, then "found better prompt" (-lv 4).

    What to do: no fixed id_slot, or one request at a time for each slot, or no RAM prompt cache (--cache-ram 0).

    Example: three clients with id_slot 0 on one slot: the first one's prompt goes on at token 423 of the second's.
    """

    name = "slot-swapped"

    def find(self, case: Case) -> Finding | None:
        return self.told(case) if case.turn.spoilt_start else None

    def told(self, case: Case) -> Finding | None:
        """Of any turn that it happened to: the cause only where it came before the turn's own search."""
        turn = case.turn
        if turn.disturbed is None or turn.swapped is None:
            return None
        case.quote(turn.disturbed.line, turn.disturbed.text, "another request asked for this slot, which was at work")
        says = "another conversation's prompt was loaded into the slot while it worked on this turn"
        case.quote(turn.swapped.line, turn.swapped.text, says, "slot-swapped")
        return Finding(
            self.name,
            "While this turn ran, a request asked for its slot by number, and the server loaded that request's "
            "conversation from the RAM prompt cache into the busy slot. This turn went on with those tokens: its answer "
            "may be off.",
            "observed",
            [
                fixes.free_slot_choice(),
                Fix("one-request-a-slot", "Or let the client wait for an answer before it sends more to the same slot."),
                Fix("no-ram-cache", "Or switch the RAM prompt cache off; nothing is swapped then.", ["--cache-ram", "0"]),
            ],
        )


class SlotTaken(CauseRule):
    """The conversation was held elsewhere

    What happened: the server held more of this prompt in another slot or in the RAM prompt cache than in the
    slot that was given to the request, and did not use it (the slot was busy or asked for by number, or the
    saved prompt keeps too little of itself: an entry is loaded only if at least a quarter of it is in common;
    or the share of the prompt that the slot held does not exceed --slot-prompt-similarity).

    How to see it: a better "checking sim" or "prompt with length ... lcp" line at the slot's choice.

    What to do: a slot for each conversation that goes on at the same time (--parallel), no fixed id_slot, and
    the RAM prompt cache on (--cache-ram).

    Example: 30,000 tokens saved, of which a new session shares the 6,600 of its system prompt: not loaded.
    """

    name = "slot-taken"

    def find(self, case: Case) -> Finding | None:
        turn, run = case.turn, case.run
        selection = turn.selection
        if not case.known_costly or turn.n_known is None:
            return None
        q = turn.selected_quote
        if q is not None:
            case.quote(q.line, q.text, "how the slot was chosen")
        quote_search(case)
        place = case.elsewhere
        n_common = place.n_common if place is not None else turn.n_known
        todo = [fixes.more_slots(run)]
        if place is not None and place.saved is not None:
            n_tokens = place.saved
            where = f"a prompt of {n_tokens:,} tokens saved in the RAM prompt cache"
            why = "The server did not load it"
            if n_common < n_tokens * LOADED_SHARE:
                why += f": it loads a saved prompt only if at least a quarter of it is in common ({n_common / n_tokens:.0%} here)"
        else:
            where = f"slot {place.slot}" if place is not None else "another slot"
            why = "That slot was not used (it was busy, or the request was bound to this one)"
            if selection is not None and selection.how == "id":
                why = "The request asked for its slot by number"
                todo.insert(0, fixes.free_slot_choice())
            elif place is not None and (share := _too_little_alike(turn, n_common)) is not None:
                # only slots that are free are compared
                why = (
                    f"That slot was free, but it is used only where more than {share[1]:.0%} of the prompt is in common "
                    f"(--slot-prompt-similarity {share[1]:g}; {share[0]:.0%} here)"
                )
                todo.insert(0, fixes.lower_similarity(share[0]))
            todo += present(fixes.larger_ram_cache(run))
        shared = f"{turn.n_common:,}" if turn.n_common is not None else "fewer"
        text = f"{n_common:,} tokens of this prompt were held by {where}; the slot that was used shared only {shared}. {why}."
        if place is not None and place.resume < place.resume_once:
            text += (
                f" There, too, the checkpoint at {place.resume_once:,} that it takes to resume had been pushed out: more of "
                "them are needed as well."
            )
            # (neither is of use without the other)
            more = fixes.raise_count(run, None)
            todo[0] = replace(todo[0], text=f"{todo[0].text} And keep more checkpoints a slot.", flags=[*todo[0].flags, *more.flags])
        return Finding(self.name, text, "derived", todo, not_helping(case))


def _too_little_alike(turn: Turn, n_common: int) -> tuple[float, float] | None:
    """The share of the prompt that a free slot held, ``n_common`` tokens, and the share that it had to exceed, where it
    did not."""
    selection = turn.selection
    if selection is None or selection.thold is None or not selection.n_prompt:
        return None
    share = n_common / selection.n_prompt
    return (share, selection.thold) if share <= selection.thold else None


class PromptCacheEvicted(CauseRule):
    """The conversation had been dropped from the RAM prompt cache

    What happened: the conversation had lost its slot and was saved in the RAM prompt cache, but the cache was
    full (or the conversation too big for it) and dropped it before it came back.

    How to see it: "removing oldest entry" or "exceeds cache size limit" between the two turns. The log shows
    the length of what was dropped, not what it was, so this is never proven: where a prompt that shares
    nothing with its slot has the length of a conversation that was dropped before, the report tells it as a
    possibility, with the line, and the cause stays "other-conversation".

    What to do: raise --cache-ram (MiB), or give each conversation a slot.

    Example: --cache-ram 512 with conversations of 300 MiB each: every second turn starts from 0.
    """

    name = "prompt-cache-evicted"
