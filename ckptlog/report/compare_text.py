"""Two logs compared, for a person: what changed, what got worse, what better."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ckptlog.records import Report
from ckptlog.report.brief import do, number, says
from ckptlog.report.compare import Change, Comparison, Metric, TurnChange
from ckptlog.report.page import Page
from ckptlog.report.safe import quote, safe_text
from ckptlog.report.words import plural

_STYLES: dict[Change, str] = {"worse": "bold red", "better": "bold green", "same": ""}
#: of the turns that got worse or better
_SHOWN = 8
_SETTINGS = 12


def render_compare(comparison: Comparison, new: Report, width: int = 80) -> list[Text]:
    """Lines of at most ``width`` columns; ``new`` is the report of the new log, for its sentences."""
    page = Page(width)
    page.para(Text.assemble(("old  ", "dim"), safe_text(comparison.old)))
    page.para(Text.assemble(("new  ", "dim"), safe_text(comparison.new)))
    page.blank()
    page.para(_verdict(comparison))
    page.blank()
    _settings(page, comparison)
    _figures(page, comparison)
    _turns(page, "Worse", comparison.worse, new)
    _turns(page, "Better", comparison.better, new)
    _unmatched(page, comparison)
    return page.lines


def _verdict(comparison: Comparison) -> Text:
    worse, better = len(comparison.worse), len(comparison.better)
    figures = {metric.name: metric for metric in comparison.metrics}
    worse_figures = [
        name for name in ("failed", "error", "unknown", "reuse") if figures[name].change == "worse"
    ]
    if worse or worse_figures:
        parts = [plural(worse, "turn") + " got worse"] if worse else []
        parts += [f"{better:,} better"] if better else []
        parts += [
            f"{name} went from {number(figures[name].old)} to {number(figures[name].new)}"
            for name in worse_figures
        ]
        return Text("WORSE  " + ", ".join(parts), _STYLES["worse"])
    if better or figures["failed"].change == "better" or figures["reuse"].change == "better":
        text = f"BETTER  {plural(better, 'turn')} better, none worse" if better else "BETTER  in sum"
        return Text(text, _STYLES["better"])
    return Text(f"NO DIFFERENCE that matters in {plural(comparison.matched, 'turn')}", "bold")


def _settings(page: Page, comparison: Comparison) -> None:
    if not comparison.settings:
        page.para("Same build, model and flags, as far as both logs tell.", style="dim")
        page.blank()
        return
    page.line("Changed")
    several = any(setting.run for setting in comparison.settings)
    for setting in comparison.settings[:_SETTINGS]:
        run = f"run {setting.run}: " if several else ""
        old, new = (safe_text(side or "not in the log") for side in (setting.old, setting.new))
        page.para(f"{run}{setting.name}  {old} -> {new}", first="  ", rest=4)
    if len(comparison.settings) > _SETTINGS:
        page.para(f"and {len(comparison.settings) - _SETTINGS} more", first="  ")
    page.blank()


def _figures(page: Page, comparison: Comparison) -> None:
    page.line(f"{'':24}{'old':>14}{'new':>14}")
    for metric in comparison.metrics:
        if metric.old or metric.new or metric.name in ("failed", "reuse"):
            page.line(_figure(metric))
    page.blank()


def _figure(metric: Metric) -> Text:
    unknown = metric.unknown_new or metric.unknown_old
    note = f"  (unknown in {metric.unknown_old:,} and {metric.unknown_new:,} turns)" if unknown else ""
    return Text.assemble(
        f"  {metric.name:22}{number(metric.old):>14}{number(metric.new):>14}  ",
        (metric.change if metric.change != "same" else "", _STYLES[metric.change]),
        note,
    )


def _turns(page: Page, title: str, changes: Sequence[TurnChange], new: Report) -> None:
    if not changes:
        return
    page.line(Text(f"{title}: {plural(len(changes), 'turn')}", _STYLES[changes[0].change]))
    for change in changes[:_SHOWN]:
        record = new.turns[change.new.turn - 1]
        was = "" if change.old.turn == change.new.turn else f", turn {change.old.turn:,} of the old log"
        page.para(
            f"turn {change.new.turn:,} (line {record.lines[0]}{was}): {_difference(change)}",
            first="  ",
            rest=4,
        )
        if change.change == "worse":
            page.para(quote(says(record), 300), first="    ", rest=4, style="dim")
            if record.fixes:
                page.para(quote(do(record.fixes[0]), 300), first="    Do: ", rest=8)
    if len(changes) > _SHOWN:
        page.para(f"and {len(changes) - _SHOWN:,} more", first="  ")
    page.blank()


def _difference(change: TurnChange) -> str:
    old, new = change.old, change.new
    parts = [old.outcome if old.outcome == new.outcome else f"{old.outcome} -> {new.outcome}"]
    if old.n_cached != new.n_cached:
        parts.append(
            f"{number(old.n_cached)} -> {number(new.n_cached)} of {number(new.n_prompt)} tokens reused"
        )
    if old.n_lost != new.n_lost:
        parts.append(f"{number(old.n_lost)} -> {number(new.n_lost)} lost")
    return ", ".join(parts)


def _unmatched(page: Page, comparison: Comparison) -> None:
    if comparison.aligned:
        page.para(f"All {plural(comparison.matched, 'turn')} correspond.", style="dim")
        return
    page.para(
        f"{plural(comparison.matched, 'turn')} correspond (same order, same prompt size); "
        f"{len(comparison.only_old):,} of the old log and {len(comparison.only_new):,} of the new do not, "
        "and count in the sums only.",
        style="dim",
    )
