"""One finding of the text report: what happened, the lines that show it, what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from rich.text import Text

from ckptlog.intake.unwrap import unwrap
from ckptlog.records import Evidence, Fix, TurnRecord
from ckptlog.report.digest import Digest, Finding, Numbered, shows
from ckptlog.report.loss import loss
from ckptlog.report.page import Page, wrapped
from ckptlog.report.safe import quote, safe_text, shorten
from ckptlog.report.words import duration, how_sure, listed, plural, request_words, sentence_case, speed

_EVIDENCE_SHOWN = 6
_FIXES_SHOWN = 4
_QUOTE_LINES = 2
#: what the first screen shows of the worst finding's explanation
HEADLINE_LINES = 5
_SENTENCE_LINES = 8
_MISMATCH_WIDTH = 60
#: milliseconds; a shorter time is not worth a word
_TOLD_MS = 1000.0

def message_of(line: str) -> str:
    """A log line's message for a person: what it says, without all that stands around it.

    The wrapper, the stamp, the head (the line number tells where it is), and what a terminal or a JSON
    record leaves at its end go. A line without a message is given back as it is.
    """
    return unwrap(line).message or line


def interesting(message: str) -> int | None:
    """Where to look in a long message: the bar of a mismatch dump; None for its beginning."""
    if message.startswith(("old: ", "new: ")):
        bar = message.find(" | ")
        return bar if bar >= 0 else None
    return None


def quoted(evidence: Evidence, width: int) -> str:
    """An evidence's line for a person: its message, shortened around what matters, made safe."""
    message = message_of(evidence.text)
    return quote(message, width, interesting(message))


def place(what: Digest, evidence: Evidence) -> str:
    """``line 241``, or ``a.log:241`` where there are several logs."""
    sources = what.report.sources
    if len(sources) > 1 and 0 <= evidence.source < len(sources):
        name = sources[evidence.source].path.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{quote(name, 24, len(name) - 1)}:{evidence.line}"
    return f"line {evidence.line}"


_LINE = re.compile(r"\bline (\d+)\b")


def why_words(what: Digest, finding: Finding) -> str:
    """Why it happened; among several logs a line is told with its log."""
    sources = what.report.sources
    source = finding.worst.turn.source
    if len(sources) < 2 or not 0 <= source < len(sources):
        return finding.why
    name = sources[source].path.replace("\\", "/").rsplit("/", 1)[-1]
    return _LINE.sub(lambda found: f"line {found[1]} of {shorten(name, 40, len(name) - 1)}", finding.why)


def numbers(turn: TurnRecord) -> str:
    """A turn's own figures in one sentence; those that the log does not tell are left out."""
    parts = []
    if turn.n_common is not None:
        parts.append(f"{turn.n_common:,} shared with what the slot held")
    elif turn.n_common_range is not None:
        low, high = turn.n_common_range
        parts.append(f"{low:,} to {high:,} shared with what the slot held")
    if turn.n_known is not None and turn.n_known > (turn.n_common or 0):
        parts.append(f"{turn.n_known:,} held somewhere by the server")
    if turn.n_cached is not None:
        parts.append(f"{turn.n_cached:,} from cache")
    if turn.n_processed is not None:
        parts.append(f"{turn.n_processed:,} processed{_time_taken(turn.n_processed, turn.prompt_ms)}")
    if turn.n_generated:
        parts.append(f"{turn.n_generated:,} generated")
    if turn.n_prompt is not None:
        prompt = f"prompt of {plural(turn.n_prompt, 'token')}"
        return ": ".join([prompt, ", ".join(parts)]) if parts else prompt
    return ", ".join(parts)


def turn_figures(item: Numbered) -> str:
    """``Turn 3, prompt of 900 tokens: ...`` as a sentence; empty if the log tells no figure of it."""
    figures = numbers(item.turn)
    join = ":" if item.turn.n_prompt is None else ","
    return f"Turn {item.number}{join} {figures}." if figures else ""


def _time_taken(tokens: int, ms: float | None) -> str:
    """`` in 2 min 3 s`` where that is long enough to matter, else nothing."""
    return f" in {duration(ms)} ({speed(tokens, ms)})" if ms is not None and ms >= _TOLD_MS and tokens else ""


def _in_quotes(text: str) -> str:
    return f'"{safe_text(text)}"'


def mismatch_words(turn: TurnRecord, show: Callable[[str], str] = _in_quotes) -> str | None:
    """Where the new prompt parts from what the slot held, with both texts if the log has them.

    ``show`` makes a piece of prompt, cut short but still hostile, safe to show.
    """
    mismatch = turn.mismatch
    if mismatch is None:
        return None
    at = "" if mismatch.pos is None else f" at token {mismatch.pos:,}"
    if mismatch.old is None or mismatch.new is None:
        return f"The prompts part{at}." if at else None
    old, new = (show(shorten(text, _MISMATCH_WIDTH)) for text in (mismatch.old, mismatch.new))
    return f"The prompts part{at}: the slot held {old}, the new prompt has {new}."


def which_turns(turns: list[Numbered]) -> str:
    return f"{'turn' if len(turns) == 1 else 'turns'} {listed([item.number for item in turns], 5)}"


def rewritten_words(what: Digest, finding: Finding) -> str:
    """What to say of long prompts that share next to nothing with the slot."""
    turns = [item.turn for item in finding.turns]
    shared = max(turn.n_common_range[1] if turn.n_common_range is not None else turn.n_common or 0 for turn in turns)
    alike = len({turn.n_common for turn in turns}) == 1 and turns[0].n_common is not None
    processed = sum(turn.n_processed or 0 for turn in turns)
    took = _time_taken(processed, sum(turn.prompt_ms or 0 for turn in turns))
    shown = finding.worst.turn.mismatch
    parting = mismatch_words(finding.worst.turn) if shown is not None and shown.new is not None else None
    return (
        f"{sentence_case(which_turns(finding.turns))} shared only {plural(shared, 'token')}"
        f"{'' if alike else ' or less'} with what the slot held: {processed:,} tokens were processed "
        f"anew{took}. {why_words(what, finding)}{f' {parting}' if parting else ''}"
    )


def unshared_words(what: Digest) -> str:
    """What to say where nothing failed and little was reused all the same."""
    turns = what.unshared
    processed = sum(item.turn.n_processed or 0 for item in turns)
    held = "nothing of the prompt, or another conversation"
    if any(_perhaps_rewritten(item.turn) for item in turns):
        held = "nothing of the prompt, another conversation, or the same with another beginning"
    return f"In {which_turns(turns)} the slot held {held} ({plural(processed, 'token')} processed)."


def _perhaps_rewritten(turn: TurnRecord) -> bool:
    """Whether something was in common, and the log does not tell whether it was another conversation."""
    return turn.trigger is None and turn.n_common_range is not None


def unshared_advice(what: Digest) -> str:
    """What to do about it, the cheapest first, with the numbers of the server that had most of these turns."""
    ((most, _),) = Counter(item.turn.run for item in what.unshared).most_common(1)
    run = next((run for run in what.report.runs if run.run == most), None)
    flags = f"--parallel {(run.n_slots or 1) + 1}" if run is not None else "--parallel"
    if run is not None and run.kv_unified is False and run.n_slots and run.n_ctx_slot:
        flags += f" -c {(run.n_slots + 1) * run.n_ctx_slot}"
    limit = run.prompt_cache_mib if run is not None else None
    if limit is None:
        return f"If conversations take each other's slot, give each its own ({flags})."
    if limit and run is not None and not run.prompt_cache_dropped:
        # what lost its slot is kept in RAM, all of it, and the server looked there
        return (
            "Nothing, if these were new conversations: what is new has to be read once. If they were not, the client "
            "changes the beginning of its prompt: clocks, ids and file lists belong in the last user message."
        )
    more = f"--cache-ram {int(limit * 2) or 8192}; now {f'{limit:,.0f} MiB' if limit else 'off'}"
    words = (
        f"If conversations take each other's slot, let them come back from the RAM prompt cache ({more}), or give "
        f"each a slot of its own ({flags})."
    )
    if any(_perhaps_rewritten(item.turn) for item in what.unshared):
        words += " If the client changes the beginning of its prompt (a clock, an id), move that into the last user message."
    return words


def not_answered_words(what: Digest) -> str:
    """Of requests that ended without an answer, by nobody's fault: who ended them, in half a sentence."""
    turns = [item.turn for item in what.cancelled]
    if all(shows(turn, "server-stopped") for turn in turns):
        return "the server was stopped while it was at work"
    left = not all(shows(turn, "broken-off") or shows(turn, "server-stopped") for turn in turns)
    return "a client did not wait for its answer" if left else "a request was broken off"


def cancelled_words(what: Digest) -> str:
    """Of requests that ended without an answer: which turns, and who ended the first of them, and how far it had come."""
    first = what.cancelled[0].turn
    who = "" if shows(first, "broken-off") or shows(first, "server-stopped") else "the client had gone. "
    of_first = "Of the first: " if len({item.turn.explanation for item in what.cancelled}) > 1 else ""
    return f"{sentence_case(which_turns(what.cancelled))}: {who}{of_first}{safe_text(first.explanation)}".rstrip()


#: what to do about new tokens that take long
SLOW_ADVICE = (
    "Put more of the model on the GPU (-ngl), try a larger -ub, or send shorter prompts. "
    "Checkpoint flags would not help: these tokens were new."
)


def slow_words(what: Digest) -> str:
    """How long the new tokens took where nothing of the cache was lost."""
    return _took(what, what.slow, "new tokens")


#: what to do about a conversation that is rewritten
PARTED_ADVICE = (
    "Find what rewrites the conversation: a client that drops, shortens or edits older messages or tool results. All that "
    "follows the first change has to be read again, whatever the flags. If these are several conversations that begin "
    "alike, give each a slot of its own (--parallel)."
)


def parted_words(what: Digest) -> str:
    """How long the tokens behind a change took, and where the longest of these prompts parts from what was held."""
    longest = max(what.parted, key=lambda item: item.turn.prompt_ms or 0).turn
    return f"{_took(what, what.parted, 'tokens behind a change')} {safe_text(longest.explanation)}".rstrip()


def _took(what: Digest, turns: list[Numbered], which: str) -> str:
    tokens = sum(item.turn.n_processed or 0 for item in turns)
    ms = sum(item.turn.prompt_ms or 0 for item in turns)
    where = f", in {which_turns(turns)}" if len(what.turns) > 1 else ""
    return f"{tokens:,} {which} took {duration(ms)} ({speed(tokens, ms)}){where}."


def harmless_words(what: Digest) -> str:
    """How many tokens the harmless turns processed again: the sum of what each is said to have lost."""
    losses = [lost for item in what.harmless if (lost := loss(item.turn)) is not None]
    least = "" if len(losses) == len(what.harmless) and all(lost.exact for lost in losses) else "at least "
    return f"{least}{plural(sum(lost.tokens for lost in losses), 'token')}"


_FORCED = "forcing full prompt re-processing"


def forced_words(what: Digest) -> str:
    """Beside harmless turns: that the server's alarming line is no alarm, if one of them has it."""
    if any(_FORCED in evidence.text for item in what.harmless for evidence in item.turn.evidence):
        return f' A line "{_FORCED}" is no proof of harm.'
    return ""


_ASIDE = re.compile(r"\s*(?:\([A-Z][^()]*\.\)|(?<=\. )The rule of thumb [^.]*\.)")


def without_asides(fix: Fix) -> Fix:
    """A fix for the first screen, where it stands alone: asides are for those who read on."""
    return Fix(fix.name, _ASIDE.sub("", fix.text).rstrip(), fix.flags)


def add_finding(page: Page, what: Digest, number: int, finding: Finding) -> None:
    """A finding in full, told of the turn that it cost most."""
    worst = finding.worst
    turn = worst.turn
    several = len(finding.turns) > 1
    page.ends(
        Text.assemble(f"{number}  ", (safe_text(finding.name), "bold red")),
        Text(
            f"{'turns' if several else 'turn'} {listed([item.number for item in finding.turns], 5)}", "bold"
        ),
    )
    if number > 1:
        page.para(f"{finding.title}. {sentence_case(finding.cost())}.", first="   ")
    # the first screen has told why the first finding happened, unless that was cut there
    why = Text(safe_text(why_words(what, finding)))
    if finding.why and (number > 1 or len(wrapped(why, page.width - 2)) > HEADLINE_LINES):
        page.para(why, first="   ", limit=_SENTENCE_LINES)
    figures = turn_figures(worst) if several else sentence_case(numbers(turn))
    if figures:
        page.para(figures if several else f"{figures}.", first="   ")
    if turn.trigger:
        page.para(safe_text(request_words(turn.trigger)), first="   ")
    parting = mismatch_words(turn)
    if parting:
        page.para(parting, first="   ", limit=4)
    also = sorted({outcome for item in finding.turns for outcome in item.turn.also})
    if also:
        page.para(f"In the same turns also: {', '.join(also)}.", first="   ")
    _evidence(page, what, turn)
    page.para(how_sure(item.turn.confidence for item in finding.turns), first="   ")
    _fixes(page, finding.fixes, "   Do    ")
    _fixes(page, finding.not_fixes, "   Not   ", numbered=False)
    page.blank()


def _evidence(page: Page, what: Digest, turn: TurnRecord) -> None:
    shown = turn.evidence[:_EVIDENCE_SHOWN]
    if not shown:
        return
    places = [place(what, evidence) for evidence in shown]
    column = max(len(words) for words in places)
    room = page.width - column - 5
    for words, evidence in zip(places, shown, strict=True):
        page.para(
            Text(quoted(evidence, room * _QUOTE_LINES), "cyan"),
            first=f"   {words:>{column}}  ",
            limit=_QUOTE_LINES,
        )
        if evidence.says:
            page.para(safe_text(evidence.says), first=" " * (column + 5) + "> ")
    if len(turn.evidence) > len(shown):
        rest = len(turn.evidence) - len(shown)
        page.para(f"and {plural(rest, 'more line')} (--format json has them all)", first=" " * (column + 5))


def _fixes(page: Page, fixes: list[Fix], first: str, numbered: bool = True) -> None:
    for number, fix in enumerate(fixes[:_FIXES_SHOWN], 1):
        lead = first if number == 1 else " " * len(first)
        count = f"{number}. " if numbered and len(fixes) > 1 else ""
        words = fix_words(fix, "bold green") if numbered else Text(safe_text(fix.text))
        page.para(words, first=lead + count)


def fix_words(fix: Fix, style: str) -> Text:
    """A fix: the flags to add, if its sentence doesn't name them, and the sentence."""
    flags = safe_text(" ".join(fix.flags))
    text = safe_text(fix.text)
    if not flags or flags in text:
        return Text(text)
    return Text.assemble((flags, style), "   ", text)
