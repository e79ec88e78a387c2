"""The text report: what most people will ever see of ckptlog.

The first screen says in one sentence what is worst, what it cost and what to do; then come the
turns as a table, the findings with their evidence, and what the log could not tell.
"""

from __future__ import annotations

from rich.text import Text

from ckptlog.records import Report
from ckptlog.report.digest import Digest, Selection, digest
from ckptlog.report.incidents import failed_request_words
from ckptlog.report.page import Page
from ckptlog.report.safe import safe_text, shorten
from ckptlog.report.text_findings import HEADLINE_LINES, add_finding, forced_words, harmless_words
from ckptlog.report.text_first import FINDINGS_IN_FULL, add_verdict, one_line
from ckptlog.report.text_table import add_tables
from ckptlog.report.words import (
    label,
    listed,
    plural,
    run_words,
    source_name,
    tally,
)

_RUNS_SHOWN = 4
_SENTENCES_SHOWN = 6
_REQUESTS_SHOWN = 10


def render_text(report: Report, width: int = 80, selection: Selection | None = None) -> list[Text]:
    """The report as lines of at most ``width`` columns, styled but readable without colour."""
    page = Page(width)
    what = digest(report, selection)
    _heading(page, what)
    add_verdict(page, what)
    _totals(page, what)
    add_tables(page, what)
    for number, finding in enumerate(what.findings[:FINDINGS_IN_FULL], 1):
        add_finding(page, what, number, finding)
    _other_findings(page, what)
    _notes(page, what)
    _without_turn(page, what)
    _untold(page, what)
    return page.lines


def _heading(page: Page, what: Digest) -> None:
    """What was read: each source and each different server process in it."""
    report = what.report
    shown = 0
    for index, source in enumerate(report.sources):
        runs = [run for run in report.runs if run.source == index]
        described: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
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
            *names, last = map(safe_text, what_it_is)
            page.phrases([*names, last + (f" ({again} runs)" if again > 1 else "")], first="  ", style="dim")
            if how_it_is_set:
                page.phrases([safe_text(part) for part in how_it_is_set], first="  ", style="dim")
            shown += 1
        if len(described) > _RUNS_SHOWN:
            page.para(f"and {len(described) - _RUNS_SHOWN} more kinds of run", first="  ", style="dim")
    page.blank()


def _totals(page: Page, what: Digest) -> None:
    parts = [plural(len(what.turns), "turn"), *tally(what.fine, what.failed, what.counts)]
    if what.reused_words is not None:
        parts.append(what.reused_words)
    if what.lost.tokens:
        parts.append(f"{what.lost} lost")
    if what.selection is not None:
        parts[0] = f"{len(what.turns):,} of {plural(what.selection.total, 'turn')} selected"
    page.words(parts, first="  ", style="bold")
    page.blank()


def _other_findings(page: Page, what: Digest) -> None:
    rest = what.findings[FINDINGS_IN_FULL:]
    if not rest:
        return
    for finding in rest[:FINDINGS_IN_FULL]:
        page.para(one_line(finding), first="-  ")
    if len(rest) > FINDINGS_IN_FULL:
        turns = sum(len(finding.turns) for finding in rest[FINDINGS_IN_FULL:])
        page.para(f"and {len(rest) - FINDINGS_IN_FULL} more findings in {plural(turns, 'turn')}", first="-  ")
    page.blank()


def _notes(page: Page, what: Digest) -> None:
    """What looks bad in the log and isn't."""
    if not what.harmless:
        return
    names = listed([item.number for item in what.harmless])
    kinds = sorted({label(item.turn) for item in what.harmless})
    page.para(
        f"{'Turn' if len(what.harmless) == 1 else 'Turns'} {names}: {' and '.join(kinds)}, but harmless "
        f"({harmless_words(what)} processed again in all)." + forced_words(what),
        style="dim",
    )
    page.blank()


def _without_turn(page: Page, what: Digest) -> None:
    """Requests that reached no slot, where the first screen has only their number."""
    requests = failed_request_words(what.report, _REQUESTS_SHOWN)
    if not requests:
        return
    page.line(Text("Requests that reached no slot", "bold"))
    for words in requests:
        page.para(safe_text(words), first="- ", limit=HEADLINE_LINES)
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
    for warning in what.report.warnings:
        page.para(f"Warning: {safe_text(warning)}.", style="yellow")
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
