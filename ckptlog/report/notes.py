"""What to say beside the findings: of turns that did not fail, or for which no cache is to blame, in a sentence or two each."""

from __future__ import annotations

from collections.abc import Iterator

from ckptlog.report.digest import Digest, Numbered
from ckptlog.report.incidents import incident_notes
from ckptlog.report.text_findings import rewritten_words, which_turns, without_asides
from ckptlog.report.words import plural, sentence_case
from ckptlog.verdict.causes_drafts import draft_issue


def notes(what: Digest) -> Iterator[str]:
    """In the order in which they are told; the texts may hold what a log says."""
    for finding in what.rewritten:
        yield rewritten_words(what, finding)
    yield from other_notes(what)


def other_notes(what: Digest) -> Iterator[str]:
    """Those that are not of a prompt's beginning."""
    told = (
        (what.growing, growing_words),
        (what.swapped, swapped_words),
        (what.slept, slept_words),
        (what.purged, purged_words),
        (what.cleared, cleared_words),
        (what.left_behind, left_behind_words),
        (what.unawaited, unawaited_words),
    )
    for turns, words in told:
        if turns:
            yield words(what)
    yield from incident_notes(what.report)


def growing_words(what: Digest) -> str:
    """Of prompts that grow on a slot and reuse nothing, where the level hides what they shared with it."""
    return (
        f"In {which_turns(what.growing)} each prompt is longer than the one before it on the same slot, and nothing was reused: "
        "perhaps one conversation whose beginning the client changes each time (a clock, an id, a header). The log at this "
        "level does not tell; one with LLAMA_SERVER_SLOTS_DEBUG=1 and -lv 4 shows the texts where they part."
    )


def swapped_words(what: Digest) -> str:
    """What to say of turns whose slot was given another conversation's tokens while it was at work."""
    them, answers = ("its", "answer") if len(what.swapped) == 1 else ("their", "answers")
    return (
        f"While {which_turns(what.swapped)} ran, another request asked for {them} slot by number (id_slot), and the server "
        f"loaded that request's prompt from the RAM cache into the busy slot (b9725 and later): {them} {answers} may be off. "
        "Leave out id_slot, send one request at a time to a slot, or switch that cache off (--cache-ram 0)."
    )


def slept_words(what: Digest) -> str:
    """What to say of prompts that came back to a server which had slept."""
    why = (
        "the server had slept (--sleep-idle-seconds), and lets go then of the model and of all that slots and RAM cache hold"
    )
    return _came_back(what.slept, why, "here before", "a longer time (or no sleep)")


def purged_words(what: Digest) -> str:
    """What to say of prompts that came back to a slot which had been purged."""
    slots = "a slot" if len(what.purged) == 1 else "slots"
    why = f"the KV cache that all slots share had run out of cells, and the server had purged {slots} for room"
    return _came_back(what.purged, why, "there", "a larger -c")


def cleared_words(what: Digest) -> str:
    """What to say of prompts that came back to a slot which a request of a client had emptied."""
    slots = "the slot" if len(what.cleared) == 1 else "slots"
    why = f"a request had emptied {slots} before (an erase, or a slot's file that could not be loaded)"
    return _came_back(what.cleared, why, "there", "without such a request the server")


def _came_back(turns: list[Numbered], why: str, where: str, keeper: str) -> str:
    """Of prompts that found nothing, and may be of conversations that the server had let go."""
    processed = sum(item.turn.n_processed or 0 for item in turns)
    whose = "this conversation" if len(turns) == 1 else "these conversations"
    return (
        f"{sentence_case(which_turns(turns))} found nothing: {why}. If {whose} had been {where}, up to "
        f"{plural(processed, 'token')} were read again; {keeper} would keep them."
    )


def left_behind_words(what: Digest) -> str:
    """What speculation cost where the turn did not fail for it, and what helps."""
    lost = sum(item.turn.n_lost or 0 for item in what.left_behind)
    first = what.left_behind[0].turn
    advice = f" {without_asides(first.fixes[0]).text}" if first.fixes else ""
    return (
        f"{sentence_case(which_turns(what.left_behind))}: drafted tokens stayed in the slot behind the last answer's end, so "
        f"that {plural(lost, 'token')} of it were processed again (draft-left-behind, {draft_issue()}).{advice}"
    )


def unawaited_words(what: Digest) -> str:
    """What to say of answers that nobody waited for."""
    return (
        f"{sentence_case(which_turns(what.unawaited))}: the client had gone (closed connection or time-out), and the server "
        "finished the answer all the same."
    )
