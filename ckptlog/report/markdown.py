"""The Markdown report: the same digest as the text report, to paste into an issue or a comment.

Log text stands only in code blocks, whose fence is longer than any in the text, or escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ckptlog.records import Fix, Report, TurnRecord
from ckptlog.report.capture import capture_lines, hidden_runs, hidden_words
from ckptlog.report.digest import Digest, Finding, Selection, digest
from ckptlog.report.fold import Fold, fold
from ckptlog.report.healthy import healthy
from ckptlog.report.incidents import failed_request_words, incident_notes
from ckptlog.report.loss import loss
from ckptlog.report.notes import notes
from ckptlog.report.picture import LEGEND, picture
from ckptlog.report.safe import safe_text
from ckptlog.report.text_findings import (
    cancelled_words,
    forced_words,
    harmless_words,
    mismatch_words,
    place,
    quoted,
    turn_figures,
    unshared_advice,
    unshared_words,
    why_words,
    without_asides,
)
from ckptlog.report.text_table import fold_words, group_name, turn_groups
from ckptlog.report.words import (
    how_sure,
    label,
    listed,
    plural,
    request_words,
    run_words,
    sentence_case,
    source_name,
    tally,
)

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$&!@])")
_QUOTE_WIDTH = 300
_TABLE_ROWS = 24
_FINDINGS_IN_FULL = 8
_RUNS_SHOWN = 6
_REQUESTS_SHOWN = 20


def escape(text: str) -> str:
    """``text`` as Markdown that shows it literally, on one line."""
    return _MARKS.sub(r"\\\1", safe_text(text))


def code(text: str) -> str:
    """``text`` as inline code: nothing in it is markup, a link or a mention."""
    body = safe_text(text)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", body)), default=0) + 1)
    return f"{ticks} {body} {ticks}" if "`" in body else f"`{body or ' '}`"


def fenced(lines: Iterable[str]) -> list[str]:
    """A code block around ``lines`` (already safe), whose fence nothing in them can close."""
    body = list(lines)
    longest = max((len(run) for line in body for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *body, fence]


def render_markdown(report: Report, selection: Selection | None = None) -> str:
    """The report as GitHub-flavoured Markdown, ending in a newline."""
    what = digest(report, selection)
    blocks = [["# ckptlog report"], _heading(what), _verdict(what), _hidden_level(what), _totals(what)]
    for number, finding in enumerate(what.findings[:_FINDINGS_IN_FULL], 1):
        blocks.append(_finding(what, number, finding))
    left = what.findings[_FINDINGS_IN_FULL:]
    if left:
        turns = sum(len(finding.turns) for finding in left)
        blocks.append([f"{plural(len(left), 'more finding')} in {plural(turns, 'turn')}."])
    blocks += [_table(what), _harmless(what), _without_turn(what), _untold(what)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _heading(what: Digest) -> list[str]:
    lines = []
    for index, source in enumerate(what.report.sources):
        described = list(
            dict.fromkeys(run_words(run) for run in what.report.runs if run.source == index)
        )
        words = "; ".join(", ".join([*what_it_is, *how]) for what_it_is, how in described[:_RUNS_SHOWN])
        if len(described) > _RUNS_SHOWN:
            words += f"; and {len(described) - _RUNS_SHOWN} more kinds of run"
        lines.append(f"- {code(source_name(source))}: {escape(words or 'no server in it')}")
    return lines


def _hidden_level(what: Digest) -> list[str]:
    words = hidden_words(what.report)
    if words is None:
        return []
    return [f"> {escape(words)}", "", *fenced(capture_lines(what.report, hidden_runs(what.report)))]


def _verdict(what: Digest) -> list[str]:
    if not what.turns:
        told = [escape(note) for note in incident_notes(what.report)]
        return ["**No turn to show.**", *([""] if told else []), *told]
    told = [escape(note) for note in notes(what)]
    if what.unshared:
        told.append(escape(unshared_words(what)))
    if not what.findings:
        return _healthy(what, told)
    worst = what.findings[0]
    lines = [
        f"**{escape(worst.title)}**: {len(worst.turns):,} of {plural(len(what.turns), 'turn')}, {worst.cost()}. "
        + escape(why_words(what, worst))
    ]
    if worst.fixes:
        lines += ["", f"**Do:** {_fix(without_asides(worst.fixes[0]))}"]
    return [*lines, *([""] if told else []), *told]


def _healthy(what: Digest, told: list[str]) -> list[str]:
    """No finding: what to say first, the notes, and what to do where that can be said."""
    if what.head_changed:
        first = "The beginning of the prompt changed: hardly anything was reused."
        fixes = {fix.name: fix for finding in what.rewritten for fix in finding.fixes[:1]}
        todo = [_fix(without_asides(fix)) for fix in fixes.values()]
    else:
        said = healthy(what)
        first = said.first
        told += [escape(cancelled_words(what))] if said.with_cancelled else []
        todo = [escape(said.todo)] if said.todo else []
    if what.unshared:
        todo.append(escape(unshared_advice(what)))
    lines = [f"**{escape(first)}**"]
    for note in told:
        lines += ["", note]
    for each in todo:
        lines += ["", f"**Do:** {each}"]
    return lines


def _totals(what: Digest) -> list[str]:
    turns = plural(len(what.turns), "turn")
    if what.selection is not None:
        turns = f"{len(what.turns):,} of {plural(what.selection.total, 'turn')} selected"
    parts = [turns, *tally(what.fine, what.failed, what.counts)]
    if what.reused_words is not None:
        parts.append(what.reused_words)
    if what.lost.tokens:
        parts.append(f"{what.lost} tokens lost")
    return [", ".join(parts) + "."]


def _fix(fix: Fix) -> str:
    flags = " ".join(fix.flags)
    return f"{code(flags)}: {escape(fix.text)}" if flags and flags not in fix.text else escape(fix.text)


def _finding(what: Digest, number: int, finding: Finding) -> list[str]:
    turn = finding.worst.turn
    several = len(finding.turns) > 1
    names = listed([item.number for item in finding.turns])
    lines = [
        f"## {number}. {escape(finding.name)} ({'turns' if several else 'turn'} {names})",
        "",
        f"{escape(finding.title)}. {sentence_case(finding.cost())}.",
    ]
    sentences = [why_words(what, finding), turn_figures(finding.worst)]
    if turn.trigger:
        sentences.append(request_words(turn.trigger))
    told = [escape(sentence) for sentence in sentences if sentence]
    parting = mismatch_words(turn, code)
    lines += ["", " ".join([*told, parting] if parting else told)]
    if turn.evidence:
        lines += ["", *fenced(_evidence(what, turn))]
    lines += ["", how_sure(item.turn.confidence for item in finding.turns)]
    if finding.fixes:
        lines += ["", *(f"{index}. {_fix(fix)}" for index, fix in enumerate(finding.fixes, 1))]
    if finding.not_fixes:
        lines += ["", "What would not help:", "", *(f"- {escape(fix.text)}" for fix in finding.not_fixes)]
    return lines


def _evidence(what: Digest, turn: TurnRecord) -> list[str]:
    lines = []
    for evidence in turn.evidence:
        lines.append(f"{place(what, evidence)}: {quoted(evidence, _QUOTE_WIDTH)}")
        if evidence.says:
            lines.append(f"    > {safe_text(evidence.says)}")
    return lines


def _table(what: Digest) -> list[str]:
    if not what.turns:
        return []
    keep = {finding.worst.number for finding in what.findings}
    groups = turn_groups(what)
    lines = ["## Turns", "", f"`{LEGEND}`"]
    rows = max(6, _TABLE_ROWS // len(groups))
    shown = sorted(groups, key=lambda group: -sum(item.turn.failed for item in groups[group]))[:_TABLE_ROWS]
    for group in groups:
        if group not in shown:
            continue
        if len(groups) > 1:
            lines += ["", f"**{escape(group_name(what, group))}**"]
        lines += [
            "",
            "| turn | line | prompt | cached | lost | generated | | outcome |",
            "|---:|---:|---:|---:|---:|---:|---|---|",
        ]
        for entry in fold(groups[group], rows, keep):
            if isinstance(entry, Fold):
                lines.append(f"| ... | | | | | | {escape(fold_words(entry))} | |")
                continue
            turn = entry.item.turn
            drawn = "".join(piece.glyph * piece.width for piece in picture(turn, 24))
            outcome = f"**{label(turn)}**" if turn.failed else label(turn)
            if turn.severity == "harmless":
                outcome += ", harmless"
            figures = [_figure(turn.n_prompt), _figure(turn.n_cached), str(loss(turn) or "")]
            cells = " | ".join([*figures, _figure(turn.n_generated)])
            lines.append(
                f"| {entry.item.number} | {turn.lines[0]} | {cells} | {f'`{drawn}`' if drawn else ''} | {outcome} |"
            )
    if len(groups) > len(shown):
        lines += ["", f"and {plural(len(groups) - len(shown), 'more slot')}."]
    return lines


def _figure(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _harmless(what: Digest) -> list[str]:
    if not what.harmless:
        return []
    names = listed([item.number for item in what.harmless])
    kinds = " and ".join(sorted({label(item.turn) for item in what.harmless}))
    return [
        f"{'Turn' if len(what.harmless) == 1 else 'Turns'} {names}: {kinds}, but harmless "
        f"({harmless_words(what)} processed again in all).{forced_words(what)}"
    ]


def _without_turn(what: Digest) -> list[str]:
    """Requests that reached no slot, where the first lines have only their number."""
    requests = failed_request_words(what.report, _REQUESTS_SHOWN)
    return ["## Requests that reached no slot", "", *(f"- {escape(words)}" for words in requests)] if requests else []


def _untold(what: Digest) -> list[str]:
    lines = []
    if what.missing:
        lines += ["## What this log can't tell", ""]
        lines += [f"- {escape(sentence)} ({plural(count, 'turn')})" for sentence, count in what.missing[:12]]
        lines.append("")
    for warning in what.report.warnings:
        lines += [f"**Warning:** {escape(warning)}.", ""]
    sources = what.report.sources
    strange = sum(source.drifted_lines + source.unknown_slot_lines for source in sources)
    read = plural(sum(source.lines for source in sources), "line")
    tool = what.report.tool
    verdict = (
        f"{strange:,} of the server's own not understood" if strange else "all of the server's own understood"
    )
    return [*lines, f"{read}, {verdict}. {tool.name} {tool.version}."]
