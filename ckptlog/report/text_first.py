"""The first screen of the text report: what is worst, what it cost, what to do."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from ckptlog.report.capture import capture_lines, hidden_runs, hidden_words
from ckptlog.report.digest import Digest, Finding
from ckptlog.report.healthy import healthy
from ckptlog.report.incidents import incident_notes
from ckptlog.report.notes import notes, other_notes
from ckptlog.report.page import Page
from ckptlog.report.safe import safe_text
from ckptlog.report.text_findings import (
    HEADLINE_LINES,
    cancelled_words,
    fix_words,
    rewritten_words,
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
        _told_beside(page, incident_notes(what.report))
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
    _told_beside(page, notes(what))


def _told_beside(page: Page, sentences: Iterable[str]) -> None:
    for note in sentences:
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
    _told_beside(page, other_notes(what))


def _healthy(page: Page, what: Digest) -> None:
    said = healthy(what)
    page.para(safe_text(said.first), first="  ", style="bold green" if said.fine else "bold yellow")
    if said.with_cancelled:
        page.para(cancelled_words(what), first="  Note ", rest=7)
    if said.todo:
        page.para(safe_text(said.todo), first="  Do:  ")
    _told_beside(page, notes(what))
    if what.unshared:
        page.para(unshared_words(what), first="  Note ", rest=7)
        page.para(unshared_advice(what), first="  Do:  ")


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
