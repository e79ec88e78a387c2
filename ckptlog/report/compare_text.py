"""Two logs compared, for a person: what changed, what got worse, what better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rich.text import Text

from ckptlog.records import Report, TurnRecord
from ckptlog.report.brief import do, number, says
from ckptlog.report.compare import Change, Comparison, Metric, TurnChange
from ckptlog.report.page import Page
from ckptlog.report.safe import quote, safe_text
from ckptlog.report.snapshot import TurnSnapshot
from ckptlog.report.words import plural

_STYLES: dict[Change, str] = {"worse": "bold red", "better": "bold green", "same": ""}
#: figures that a verdict names; a failure that is gone or new weighs more than a share of reuse
_WEIGHTY = ("failed", "error", "unknown", "reuse")
#: a change of reuse over the same turns that is one, if no single turn changed by much
_REUSE = 0.05
#: of the turns that got worse or better
_SHOWN = 8
_SETTINGS = 12


def render_compare(
    comparison: Comparison, new: Report, width: int = 80, *, files: tuple[int, int] = (1, 1)
) -> list[Text]:
    """Lines of at most ``width`` columns; ``new`` is the report of the new log, for its sentences.
    ``files``: how many logs were read on each side (a folder or a pattern may be given)."""
    page = Page(width)
    page.para(Text.assemble(("old  ", "dim"), safe_text(comparison.old), _logs(files[0])))
    page.para(Text.assemble(("new  ", "dim"), safe_text(comparison.new), _logs(files[1])))
    page.blank()
    page.para(_verdict(comparison))
    page.blank()
    _settings(page, comparison)
    _figures(page, comparison)
    _turns(page, "Worse", comparison.worse, new)
    _turns(page, "Better", comparison.better, new)
    _unmatched(page, comparison)
    return page.lines


def _logs(count: int) -> str:
    return f" ({count:,} logs, as one)" if count > 1 else ""


def _verdict(comparison: Comparison) -> Text:
    """The direction, where there is one: turn by turn, and of the sums where the same turns are in them."""
    worse, better = len(comparison.worse), len(comparison.better)
    if not comparison.matched:
        return Text.assemble(
            ("NOT COMPARABLE turn by turn: no turn of one log has its like in the other. ", "bold"),
            _sums(comparison),
        )
    mended = sum(_went_wrong(change.old) and not _went_wrong(change.new) for change in comparison.better)
    broken = sum(_went_wrong(change.new) and not _went_wrong(change.old) for change in comparison.worse)
    if worse and mended > broken:
        words = (
            f"MIXED  {plural(mended, 'failure')} mended, {broken:,} new, {plural(worse, 'turn')} got worse"
        )
        return Text(words, "bold yellow")
    if worse or _reuse_went(comparison) == "worse":
        parts = [plural(worse, "turn") + " got worse"] if worse else ["no turn by much"]
        parts += [f"{better:,} better"] if better else []
        return Text("WORSE  " + ", ".join([*parts, *_went(comparison, "worse")]), _STYLES["worse"])
    if better or _reuse_went(comparison) == "better":
        parts = [f"{plural(better, 'turn')} better, none worse" if better else "no turn by much"]
        return Text("BETTER  " + ", ".join([*parts, *_went(comparison, "better")]), _STYLES["better"])
    words = f"NO DIFFERENCE that matters in {plural(comparison.matched, 'turn')}"
    if comparison.aligned:
        return Text(words, "bold")
    return Text.assemble((f"{words} that correspond. ", "bold"), _sums(comparison))


def _went_wrong(turn: TurnSnapshot) -> bool:
    return turn.failed or turn.outcome == "error"


def _reuse_went(comparison: Comparison) -> Change:
    """The share of reuse over the same turns, where many small differences come to a large one."""
    reuse = comparison.metric("reuse")
    if (
        not comparison.aligned
        or reuse.old is None
        or reuse.new is None
        or abs(reuse.new - reuse.old) < _REUSE
    ):
        return "same"
    return reuse.change


def _went(comparison: Comparison, change: Change) -> list[str]:
    """The weighty figures that went this way, if both logs hold the same turns."""
    if not comparison.aligned:
        return []
    figures = (comparison.metric(name) for name in _WEIGHTY)
    return [
        f"{figure.name} went from {number(figure.old)} to {number(figure.new)}"
        for figure in figures
        if figure.change == change
    ]


def _sums(comparison: Comparison) -> str:
    """The weighty figures of logs that do not hold the same turns, as figures and no more."""
    figures = [comparison.metric(name) for name in _WEIGHTY]
    parts = [
        f"{figure.name} {number(figure.old)} and {number(figure.new)}"
        for figure in figures
        if figure.old or figure.new
    ]
    return f"In sum, old and new: {', '.join(parts)}." if parts else ""


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
    # sums over other turns are neither better nor worse, and below "no difference" no row says otherwise
    marked = comparison.aligned and bool(
        comparison.worse or comparison.better or _reuse_went(comparison) != "same"
    )
    page.line(f"{'':24}{'old':>14}{'new':>14}")
    for metric in comparison.metrics:
        unknown = _unknown(metric)
        if metric.old or metric.new or unknown or metric.name in ("failed", "reuse"):
            page.line(_figure(metric, marked))
            if unknown:
                page.para(unknown, first="      ", style="dim")
    page.blank()


def _unknown(metric: Metric) -> str:
    """Of how many turns the figure is not known, in the logs that leave any out."""
    sides = [(metric.unknown_old, "old"), (metric.unknown_new, "new")]
    parts = [f"{plural(count, 'turn')} of the {log} log" for count, log in sides if count]
    return f"not known in {' and '.join(parts)}" if parts else ""


def _figure(metric: Metric, marked: bool) -> Text:
    """``marked``: with a direction; a sum that leaves turns out in one of the logs has none."""
    known = metric.unknown_old == metric.unknown_new == 0
    change: Change = metric.change if marked and known else "same"
    return Text.assemble(
        f"  {metric.name:22}{number(metric.old):>14}{number(metric.new):>14}  ",
        (change if change != "same" else "", _STYLES[change]),
    )


def _turns(page: Page, title: str, changes: Sequence[TurnChange], new: Report) -> None:
    if not changes:
        return
    page.line(Text(f"{title}: {plural(len(changes), 'turn')}", _STYLES[changes[0].change]))
    for change in changes[:_SHOWN]:
        record = new.turns[change.new.turn - 1]
        was = "" if change.old.turn == change.new.turn else f", turn {change.old.turn:,} of the old log"
        page.para(
            f"turn {change.new.turn:,} (line {record.lines[0]}{_file(new, record)}{was}): {_difference(change)}",
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


def _file(report: Report, record: TurnRecord) -> str:
    """Which file a line number is of, where there are several."""
    if len(report.sources) < 2:
        return ""
    return f" of {safe_text(PurePath(report.sources[record.source].path).name)}"


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
