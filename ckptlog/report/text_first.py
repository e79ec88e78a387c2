"""The first screen of the text report: what is worst, what it cost, what to do."""

from __future__ import annotations

from rich.text import Text

from ckptlog.report.capture import capture_lines, hidden_runs, hidden_words
from ckptlog.report.digest import Digest, Finding
from ckptlog.report.notes import notes
from ckptlog.report.page import Page
from ckptlog.report.safe import safe_text
from ckptlog.report.text_findings import (
    HEADLINE_LINES,
    PARTED_ADVICE,
    SLOW_ADVICE,
    cancelled_words,
    fix_words,
    not_answered_words,
    parted_words,
    rewritten_words,
    slow_words,
    unshared_advice,
    unshared_words,
    why_words,
    without_asides,
)
from ckptlog.report.words import duration, plural

#: findings told in full; the others get a line each
FINDINGS_IN_FULL = 6


def add_verdict(page: Page, what: Digest) -> None:
    """The worst finding, its cost and the one thing to do; the others in a line each."""
    if not what.turns:
        page.para("No turn to show.", style="bold")
    elif what.findings:
        _failures(page, what)
    elif what.head_changed:
        _rewritten_heads(page, what)
    else:
        _healthy(page, what)
    page.blank()
    _hidden_level(page, what)


def _failures(page: Page, what: Digest) -> None:
    worst = what.findings[0]
    page.ends(
        Text("  " + worst.title.upper(), "bold red"),
        Text(f"{len(worst.turns):,} of {plural(len(what.turns), 'turn')}{price(worst)}", "bold"),
    )
    if worst.why:
        page.para(safe_text(why_words(what, worst)), first="  ", limit=HEADLINE_LINES)
    _do(page, worst)
    for finding in what.findings[1:FINDINGS_IN_FULL]:
        page.para(one_line(finding), first="  Also ", rest=7)
    _notes(page, what)


def _notes(page: Page, what: Digest) -> None:
    for note in notes(what):
        page.para(safe_text(note), first="  Note ", rest=7)


def _do(page: Page, finding: Finding) -> None:
    if finding.fixes:
        page.para(fix_words(without_asides(finding.fixes[0]), "bold green"), first="  Do:  ")


def _rewritten_heads(page: Page, what: Digest) -> None:
    """Nothing failed by the rules, and yet a long prompt was processed anew each time."""
    turns = sum(len(finding.turns) for finding in what.rewritten)
    page.ends(
        Text("  THE BEGINNING OF THE PROMPT CHANGED: HARDLY ANYTHING WAS REUSED", "bold yellow"),
        Text(f"{turns:,} of {plural(len(what.turns), 'turn')}", "bold"),
    )
    for finding in what.rewritten:
        page.para(safe_text(rewritten_words(what, finding)), first="  ")
        _do(page, finding)


def _healthy(page: Page, what: Digest) -> None:
    turns = plural(len(what.turns), "turn")
    if what.selection is not None:
        turns = f"the {len(what.turns):,} of {plural(what.selection.total, 'turn')} selected"
    if what.swapped:
        page.para(f"Nothing failed in {turns}, but answers were mixed up.", first="  ", style="bold yellow")
    elif what.unjudged:
        unjudged = plural(len(what.unjudged), "turn")
        page.para(
            f"Nothing wrong was found, but of {unjudged} the log does not tell.", "  ", style="bold yellow"
        )
    elif what.parted:
        page.para(f"Slow, for what was held was rewritten: {parted_words(what)}", "  ", style="bold yellow")
        _cancelled(page, what)
        page.para(PARTED_ADVICE, first="  Do:  ")
    elif what.slow:
        page.para(f"Slow, but not the cache's fault: {slow_words(what)}", first="  ", style="bold yellow")
        _cancelled(page, what)  # perhaps because of that
        page.para(SLOW_ADVICE, first="  Do:  ")
    elif what.unshared:
        page.para(f"Nothing failed in {turns}, but little was reused.", first="  ", style="bold yellow")
    elif what.slept:
        page.para(f"Nothing failed in {turns}, but the server slept.", first="  ", style="bold yellow")
    elif what.cancelled:
        page.para(
            f"Nothing failed in {turns}, but {not_answered_words(what)}.", "  ", style="bold yellow"
        )
        _cancelled(page, what)
        for fix in what.cancelled[0].turn.fixes[:1]:
            page.para(safe_text(fix.text), first="  Do:  ")
    else:
        page.para(f"Nothing went wrong in {turns}.", first="  ", style="bold green")
    _notes(page, what)
    if what.unshared:
        page.para(unshared_words(what), first="  Note ", rest=7)
        page.para(unshared_advice(what), first="  Do:  ")


def _cancelled(page: Page, what: Digest) -> None:
    if what.cancelled:
        page.para(cancelled_words(what), first="  Note ", rest=7)


def price(finding: Finding) -> str:
    """A finding's cost as short as it gets; nothing where the count of turns says it all."""
    if finding.outcome == "checkpoint-reprefill" and finding.lost_ms:
        return f", {duration(finding.lost_ms)}"
    return f", {finding.cost()}" if finding.outcome in ("checkpoint-reprefill", "context-shift") else ""


def one_line(finding: Finding) -> Text:
    """A finding of which there is no more to say here than what, how often and what it cost."""
    turn = finding.worst.turn
    cause = f" ({turn.cause})" if turn.cause else ""
    return Text(safe_text(f"{finding.title}{cause}: {plural(len(finding.turns), 'turn')}{price(finding)}"))


def _hidden_level(page: Page, what: Digest) -> None:
    """At -lv 3 the causes can't be seen: said on the first screen, behind what was found."""
    words = hidden_words(what.report)
    if words is None:
        return
    page.para(words, first="  Note ", rest=7)
    for part in capture_lines(what.report, hidden_runs(what.report)):
        page.para(Text(part, "cyan"), first="       ", rest=9)
    page.blank()
