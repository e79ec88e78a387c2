"""The table of turns, slot by slot, with a picture of each turn."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from ckptlog.records import TurnRecord
from ckptlog.report.digest import Digest, Numbered
from ckptlog.report.fold import Fold, Row, fold
from ckptlog.report.loss import loss
from ckptlog.report.page import Page
from ckptlog.report.picture import CACHED, GENERATED, LOST, NEW, UNKNOWN, picture
from ckptlog.report.safe import safe_text, shorten
from ckptlog.report.words import label, plural, server_words

_STYLES = {CACHED: "green", LOST: "bold red", NEW: "blue", GENERATED: "cyan", UNKNOWN: "dim"}
_BAR_TITLE = "prompt and answer"
_LEGEND = {
    CACHED: "from cache",
    LOST: "lost (held, but processed again)",
    NEW: "new",
    GENERATED: "answer",
    UNKNOWN: "not in the log",
}
_ROWS_IN_ALL = 40
_ROWS_A_SLOT = 16
_SLOTS_SHOWN = 8
_OUTCOME_WIDTH = 27
_SMALLEST_PICTURE = 7

_Group = tuple[int, int, int | None]


def turn_groups(what: Digest) -> dict[_Group, list[Numbered]]:
    """The turns by source, run and slot, each in the log's order; turns of no slot come last."""
    groups: dict[_Group, list[Numbered]] = {}
    for item in what.turns:
        groups.setdefault((item.turn.source, item.turn.run, item.turn.slot), []).append(item)
    return dict(sorted(groups.items(), key=lambda pair: (*pair[0][:2], pair[0][2] is None, pair[0][2] or 0)))


def add_tables(page: Page, what: Digest) -> None:
    """One table a slot of each run; slots beyond the limit are counted, and how they ended."""
    groups = turn_groups(what)
    if not groups:
        return
    shown = _chosen(groups)
    rows = max(4, min(_ROWS_A_SLOT, _ROWS_IN_ALL // len(shown)))
    if len(groups) == 1:
        rows = _ROWS_A_SLOT
    keep = {finding.worst.number for finding in what.findings}
    widths = _widths(item for group in shown for item in groups[group])
    bar = page.width - sum(widths) - _OUTCOME_WIDTH - 6
    if bar < _SMALLEST_PICTURE:  # a narrow terminal: the figures matter more
        bar = 0
    header = f"{'turn':>{widths[0]}} {'line':>{widths[1]}} {'prompt':>{widths[2]}}  "
    header += f"{_BAR_TITLE[:bar]:<{bar}}  outcome" if bar else "outcome"
    page.line(Text(header, "bold"))
    for group in shown:
        if len(groups) > 1:
            page.line(Text(group_name(what, group), "bold"))
        for entry in fold(groups[group], rows, keep):
            if isinstance(entry, Row):
                page.line(_row(what, entry.item, widths, bar))
            else:
                page.para(fold_words(entry), first=" " * (widths[0] - 3) + "... ", style="dim")
    left = [group for group in groups if group not in shown]
    if left:
        turns = [item for group in left for item in groups[group]]
        page.para(
            f"and {plural(len(left), 'more slot')}: {plural(len(turns), 'turn')}, {_ended(turns)}",
            style="dim",
        )
    if bar:
        page.blank()
        unknown = any(item.turn.n_cached is None or item.turn.n_processed is None for item in what.turns)
        meanings = [f"{glyph} {words}" for glyph, words in _LEGEND.items() if unknown or glyph != UNKNOWN]
        page.words(meanings, first="  ", style="dim")
    page.blank()


def _ended(turns: list[Numbered]) -> str:
    """How many turns that are not shown ended badly."""
    failed = sum(item.turn.failed for item in turns)
    errors = sum(item.turn.outcome == "error" for item in turns)
    parts = [f"{failed:,} failed"] * bool(failed) + [f"{errors:,} with an error"] * bool(errors)
    return ", ".join(parts) or "none failed"


def _bad(turns: list[Numbered]) -> int:
    return sum(item.turn.failed or item.turn.outcome == "error" for item in turns)


def _chosen(groups: dict[_Group, list[Numbered]]) -> list[_Group]:
    """The slots to show, in the log's order: those with most failures and errors if there are too many."""
    if len(groups) <= _SLOTS_SHOWN:
        return list(groups)
    by_failures = sorted(groups, key=lambda group: -_bad(groups[group]))
    chosen = set(by_failures[:_SLOTS_SHOWN])
    return [group for group in groups if group in chosen]


def _widths(items: Iterable[Numbered]) -> tuple[int, int, int]:
    """Columns for the turn's number, its line and its prompt."""
    turn, line, prompt = 4, 6, 7
    for item in items:
        turn = max(turn, len(f"{item.number}"))
        line = max(line, len(f"{item.turn.lines[0]}"))
        prompt = max(prompt, len(f"{item.turn.n_prompt or 0:,}"))
    return turn, line, prompt


def group_name(what: Digest, group: _Group) -> str:
    """``slot 0``, with the log, port or run where there are several."""
    source, run, slot = group
    report = what.report
    parts = []
    if len(report.sources) > 1 and source < len(report.sources):
        parts.append(
            safe_text(shorten(report.sources[source].path, 40, len(report.sources[source].path) - 1))
        )
    record = next((candidate for candidate in report.runs if candidate.run == run), None)
    if record is not None and (names := server_words(record)):
        parts += names
    elif sum(candidate.source == source for candidate in report.runs) > 1:
        parts.append(f"run {run}")
    parts.append("no slot" if slot is None else f"slot {slot}")
    return ", ".join(parts)


def _row(what: Digest, item: Numbered, widths: tuple[int, int, int], bar: int) -> Text:
    turn = item.turn
    prompt = "?" if turn.n_prompt is None else f"{turn.n_prompt:,}"
    row = Text(f"{item.number:>{widths[0]}} {turn.lines[0]:>{widths[1]}} {prompt:>{widths[2]}}  ")
    if turn.outcome == "arrival-rejection":
        drawn = Text(_refusal(what, turn), "red")
    else:
        drawn = Text.assemble(
            *((piece.glyph * piece.width, _STYLES[piece.glyph]) for piece in picture(turn, bar))
        )
        if not drawn.plain and turn.outcome in ("error", "cancelled"):
            drawn = Text("(nothing processed)" if turn.n_processed == 0 else "(how much is not in the log)", "dim")
    if bar:
        drawn.truncate(bar, pad=True)
        row.append_text(drawn).append("  ")
    row.append_text(_outcome(turn))
    return row


def _refusal(what: Digest, turn: TurnRecord) -> str:
    run = next((run for run in what.report.runs if run.run == turn.run), None)
    if turn.n_prompt and run is not None and run.n_ctx_slot and turn.variant != "one-batch":
        return f"(refused: {turn.n_prompt / run.n_ctx_slot:.2f} x the context)"
    return "(refused)"


def _outcome(turn: TurnRecord) -> Text:
    """The last column: the outcome, marked where it failed, and the tokens lost."""
    words = label(turn)
    lost = loss(turn)
    if turn.failed:
        text = Text(f"! {words}", "bold red")
    elif turn.outcome in ("error", "unknown"):
        text = Text(f"? {words}" if turn.outcome == "unknown" else f"! {words}", "yellow")
    else:
        text = Text(words, "" if turn.severity == "harmless" else "green")
    if turn.severity == "harmless":
        text.append(", harmless")
    elif lost is not None and lost.tokens and turn.outcome in ("checkpoint-reprefill", "restored"):
        text.append(f", {lost} lost")
    text.truncate(_OUTCOME_WIDTH)
    return text


def fold_words(entry: Fold) -> str:
    """What a fold hides, in words."""
    count = len(entry.items)
    prompts = entry.prompts()
    size = ""
    if prompts is not None:
        low, high = prompts
        size = f", prompt {low:,}" if low == high else f", prompts {low:,} to {high:,}"
    if entry.like is not None:
        return f"{count:,} more like turn {entry.like}{size}"
    kinds = entry.outcomes()
    words = ", ".join(f"{number:,} {name}" for name, number in kinds[:5])
    if len(kinds) > 5:
        words += ", others"
    return f"{plural(count, 'turn')}: {words}{size}"
