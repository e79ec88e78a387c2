"""The text report: what most people will ever see of ckptlog.

The first screen says in one sentence what is worst, what it cost and what to do; then come the
turns as a table, the findings with their evidence, and what the log could not tell.
"""

from __future__ import annotations

from rich.text import Text

from ckptlog.records import Report
from ckptlog.report.capture import capture_command, hidden_runs
from ckptlog.report.digest import Digest, Finding, Selection, digest
from ckptlog.report.page import Page
from ckptlog.report.safe import safe_text, shorten
from ckptlog.report.text_findings import (
    HEADLINE_LINES,
    add_finding,
    fix_words,
    rewritten_words,
    unshared_words,
)
from ckptlog.report.text_table import add_tables
from ckptlog.report.words import duration, label, listed, percent, plural, run_words, source_name

#: findings told in full; the others get a line each
_FINDINGS_IN_FULL = 6
_RUNS_SHOWN = 4
_STATES = {"error": "with an error"}
_SENTENCES_SHOWN = 6


def render_text(report: Report, width: int = 80, selection: Selection | None = None) -> list[Text]:
    """The report as lines of at most ``width`` columns, styled but readable without colour."""
    page = Page(width)
    what = digest(report, selection)
    _heading(page, what)
    _hidden_level(page, what)
    _verdict(page, what)
    _totals(page, what)
    add_tables(page, what)
    for number, finding in enumerate(what.findings[:_FINDINGS_IN_FULL], 1):
        add_finding(page, what, number, finding)
    _other_findings(page, what)
    _notes(page, what)
    _untold(page, what)
    return page.lines


def _heading(page: Page, what: Digest) -> None:
    """What was read: each source and each different server process in it."""
    report = what.report
    shown = 0
    for index, source in enumerate(report.sources):
        runs = [run for run in report.runs if run.source == index]
        described: dict[tuple[str, str], int] = {}
        for run in runs:
            words = run_words(run)
            described[words] = described.get(words, 0) + 1
        if shown >= _RUNS_SHOWN:
            page.para(f"and {plural(len(report.sources) - index, 'more log')}", first="  ", style="dim")
            break
        name = safe_text(shorten(source_name(source), page.width - 20, around=len(source.path) - 1))
        page.para(Text.assemble((name, "bold"), "" if runs else ": no server in it"))
        for what_it_is, how_it_is_set in list(described)[:_RUNS_SHOWN]:
            again = described[what_it_is, how_it_is_set]
            page.para(
                safe_text(what_it_is) + (f" ({again} runs)" if again > 1 else ""),
                first="  ",
                rest=4,
                style="dim",
            )
            if how_it_is_set:
                page.para(safe_text(how_it_is_set), first="  ", rest=4, style="dim")
            shown += 1
        if len(described) > _RUNS_SHOWN:
            page.para(f"and {len(described) - _RUNS_SHOWN} more kinds of run", first="  ", style="dim")
    page.blank()


def _hidden_level(page: Page, what: Digest) -> None:
    """At -lv 3 most of the evidence is missing: say so before anything else is said."""
    hidden = hidden_runs(what.report)
    if not hidden:
        return
    numbers = {run.run for run in hidden}
    turns = [item.turn for item in what.turns if item.turn.run in numbers]
    reuse = sum(turn.n_cached is not None for turn in turns)
    common = sum(turn.n_common is not None or turn.n_common_range is not None for turn in turns)
    levels = sorted({run.verbosity for run in hidden if run.verbosity is not None})
    page.line(Text(f"MOST OF THE EVIDENCE IS MISSING: LOGGED AT -lv {listed(levels)}", "bold yellow"))
    page.para(
        "At this level the server does not print what becomes of its checkpoints. From the figures that "
        f"are left, the reuse could be worked out for {reuse:,} of {plural(len(turns), 'turn')}, and what "
        f"was shared with the slot for {common:,}. This command shows the rest:",
        first="  ",
    )
    for part in capture_command(hidden):
        page.para(Text(part, "cyan"), first="    ", rest=6)
    page.blank()


def _verdict(page: Page, what: Digest) -> None:
    """The worst finding, its cost and the one thing to do; the others in a line each."""
    if not what.turns:
        page.para("No turn to show.", style="bold")
        page.blank()
        return
    if not what.findings:
        _healthy(page, what)
        return
    worst = what.findings[0]
    page.ends(
        Text("  " + worst.title.upper(), "bold red"),
        Text(f"{len(worst.turns):,} of {plural(len(what.turns), 'turn')}{_price(worst)}", "bold"),
    )
    if worst.why:
        page.para(safe_text(worst.why), first="  ", limit=HEADLINE_LINES)
    if worst.fixes:
        page.para(fix_words(worst.fixes[0], "bold green"), first="  Do:  ")
    for finding in what.findings[1:_FINDINGS_IN_FULL]:
        page.para(_one_line(finding), first="  Also ", rest=7)
    _rewritten(page, what)
    page.blank()


def _rewritten(page: Page, what: Digest) -> None:
    for finding in what.rewritten:
        page.para(safe_text(rewritten_words(finding)), first="  Note ", rest=7, limit=HEADLINE_LINES)
    if what.unshared:
        page.para(unshared_words(what), first="  Note ", rest=7)


def _healthy(page: Page, what: Digest) -> None:
    if what.unjudged:
        page.para(
            f"  Nothing wrong was found, but of {plural(len(what.unjudged), 'turn')} the log does not tell.",
            style="bold yellow",
        )
    else:
        page.para(f"  Nothing went wrong in {plural(len(what.turns), 'turn')}.", style="bold green")
    _rewritten(page, what)
    page.blank()


def _price(finding: Finding) -> str:
    """A finding's cost as short as it gets; nothing where the count of turns says it all."""
    if finding.outcome == "checkpoint-reprefill" and finding.lost_ms:
        return f", {duration(finding.lost_ms)}"
    return f", {finding.cost()}" if finding.outcome in ("checkpoint-reprefill", "context-shift") else ""


def _one_line(finding: Finding) -> Text:
    turn = finding.worst.turn
    cause = f" ({turn.cause})" if turn.cause else ""
    return Text(safe_text(f"{finding.title}{cause}: {plural(len(finding.turns), 'turn')}{_price(finding)}"))


def _totals(page: Page, what: Digest) -> None:
    summary = what.report.summary
    parts = [plural(len(what.turns), "turn"), f"{what.fine:,} fine", f"{what.failed:,} failed"]
    parts += [f"{count:,} {_STATES.get(outcome, outcome)}" for outcome, count in what.counts.items()]
    if summary.reuse is not None:
        parts.append(f"{percent(summary.reuse)} of prompt tokens reused")
    if summary.n_lost:
        parts.append(f"{summary.n_lost:,} lost")
    if what.selection is not None:
        parts[0] = f"{len(what.turns):,} of {plural(what.selection.total, 'turn')} selected"
    page.words(parts, first="  ", style="bold")
    page.blank()


def _other_findings(page: Page, what: Digest) -> None:
    rest = what.findings[_FINDINGS_IN_FULL:]
    if not rest:
        return
    for finding in rest[:_FINDINGS_IN_FULL]:
        page.para(_one_line(finding), first="-  ")
    if len(rest) > _FINDINGS_IN_FULL:
        turns = sum(len(finding.turns) for finding in rest[_FINDINGS_IN_FULL:])
        page.para(
            f"and {len(rest) - _FINDINGS_IN_FULL} more findings in {plural(turns, 'turn')}", first="-  "
        )
    page.blank()


def _notes(page: Page, what: Digest) -> None:
    """What looks bad in the log and isn't."""
    if not what.harmless:
        return
    names = listed([item.number for item in what.harmless])
    lost = sum(item.turn.n_lost or 0 for item in what.harmless)
    kinds = sorted({label(item.turn) for item in what.harmless})
    page.para(
        f"{'Turn' if len(what.harmless) == 1 else 'Turns'} {names}: {' and '.join(kinds)}, but harmless "
        f"({plural(lost, 'token')} processed again in all). "
        'A line "forcing full prompt re-processing" is no proof of harm.',
        style="dim",
    )
    page.blank()


def _untold(page: Page, what: Digest) -> None:
    """What the log could not tell, and whether every line was understood."""
    sentences = what.missing
    if sentences:
        page.line(Text("What this log can't tell", "bold"))
        for sentence, count in sentences[:_SENTENCES_SHOWN]:
            suffix = f" ({plural(count, 'turn')})" if len(what.turns) > 1 else ""
            page.para(safe_text(sentence) + suffix, first="- ", limit=HEADLINE_LINES)
        if len(sentences) > _SENTENCES_SHOWN:
            page.para(f"- and {len(sentences) - _SENTENCES_SHOWN} more things")
        page.blank()
    sources = what.report.sources
    lines = sum(source.lines for source in sources)
    strange = sum(source.drifted_lines + source.unknown_slot_lines for source in sources)
    if strange:
        page.para(
            f"{plural(lines, 'line')}; {strange:,} of the server's own not understood "
            "(`ckptlog doctor LOG` shows them)."
        )
    else:
        page.para(f"{plural(lines, 'line')}, all of the server's own understood.", style="dim")
