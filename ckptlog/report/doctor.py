"""What ``ckptlog doctor`` says of a log: its form, what it can tell, what was not understood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from ckptlog.records import Report, RunRecord, SourceRecord, TurnRecord
from ckptlog.report.capture import capture_lines, capture_notes, needed_level, of_forks
from ckptlog.report.nothing import nothing_to_judge
from ckptlog.report.page import Page
from ckptlog.report.router import is_router_only
from ckptlog.report.safe import safe_text, shorten
from ckptlog.report.words import build_words, plural, run_words, source_name

if TYPE_CHECKING:
    from ckptlog.analysis import Analysis
    from ckptlog.analysis.analysis import DriftItem

_HELD = "how much the slot already held"
_RUNS_SHOWN = 6
_DRIFT_SHOWN = 12
_EXPECTATIONS_SHOWN = 6


def render_doctor(analysis: Analysis, width: int = 80) -> list[Text]:
    """The examination of all logs of an analysis, as lines of at most ``width`` columns."""
    page = Page(width)
    report = analysis.report
    for index, source in enumerate(report.sources):
        _source(page, source)
        _runs(page, [run for run in report.runs if run.source == index])
        page.blank()
    for sentence in nothing_to_judge(analysis):
        page.para(safe_text(f"{sentence}."), style="bold yellow")
        page.blank()
    _can_tell(page, report)
    # of a file without a line of a server there is nothing to understand
    if report.runs or any(source.format is not None for source in report.sources) or analysis.drift:
        _drift(page, report, analysis.drift)
    _capture(page, analysis)
    return page.lines


def _source(page: Page, source: SourceRecord) -> None:
    page.para(Text(safe_text(source_name(source)), "bold"))
    form = source.format or "no line of a llama-server"
    parts = [plural(source.lines, "line"), f"{source.bytes:,} bytes", form, source.encoding]
    if source.compression:
        parts.append(source.compression)
    if source.wrapper == "other":
        parts.append("wrapped by a program that ckptlog knows from these lines only")
    elif source.wrapper:
        parts.append(f"wrapped by {source.wrapper}")
    page.para(safe_text(", ".join(parts)), first="  ", rest=4)


def _runs(page: Page, runs: Sequence[RunRecord]) -> None:
    for run in runs[:_RUNS_SHOWN]:
        what, how = run_words(run)
        first, last = run.lines
        # the number is told where it tells one from another, as above the tables of the report
        which = f"run {run.run}, lines" if len(runs) > 1 else "lines"
        head, *others = map(safe_text, what)
        page.phrases([f"{which} {first:,} to {last:,}: {head}", *others], first="  ")
        page.phrases([safe_text(part) for part in how or ("settings unknown",)], first="    ")
        if run.fork is not None:
            page.para("its build numbers, flags and log levels are not llama.cpp's of today", first="    ")
            continue
        if build_words(run) is None:
            page.para("nothing in the log tells the build", first="    ")
        level = needed_level(run)
        if run.verbosity is None and level:
            page.para(f"the level is not in the log (all is shown at -lv {level} and above)", first="    ")
        elif run.verbosity is not None and run.verbosity < level:
            page.para(
                f"-lv {run.verbosity}: lines that a diagnosis needs come only at -lv {level}", first="    "
            )
    if len(runs) > _RUNS_SHOWN:
        page.para(f"and {plural(len(runs) - _RUNS_SHOWN, 'more run')}", first="  ")


def _share(turns: Sequence[TurnRecord], known: Callable[[TurnRecord], bool]) -> tuple[int, int]:
    return sum(known(turn) for turn in turns), len(turns)


def _lists_checkpoints(turn: TurnRecord) -> bool:
    """Whether the list is known whole: not where the verdict says that its beginning is missing."""
    return turn.checkpoints is not None and not any(
        sentence.startswith("which checkpoints existed") for sentence in turn.missing
    )


def _can_tell(page: Page, report: Report) -> None:
    """What could be worked out, each as a share of the turns it applies to."""
    turns = report.turns
    if not turns:
        return
    asked = [turn for turn in turns if turn.outcome not in ("arrival-rejection", "not-completion")]
    again = [turn for turn in turns if turn.outcome == "checkpoint-reprefill"]
    rows = [
        ("how long each prompt was", *_share(turns, lambda turn: turn.n_prompt is not None)),
        ("how much of it was reused", *_share(asked, lambda turn: turn.n_cached is not None)),
        (_HELD, *_share(asked, lambda turn: turn.n_common is not None)),
        ("which checkpoints there were", *_share(asked, _lists_checkpoints)),
        ("how long it took", *_share(asked, lambda turn: turn.prompt_ms is not None)),
        ("what happened", *_share(turns, lambda turn: turn.outcome != "unknown")),
        (
            "why a prompt was processed again",
            *_share(again, lambda turn: turn.cause not in (None, "unknown")),
        ),
        (
            "the text where the prompts part",
            *_share(again, lambda turn: turn.mismatch is not None and turn.mismatch.new is not None),
        ),
    ]
    page.line(Text(f"What it tells of its {plural(len(turns), 'turn')}", "bold"))
    ranged = sum(turn.n_common is None and turn.n_common_range is not None for turn in asked)
    for words, known, of in rows:
        if not of:
            continue
        bounded = ranged if words == _HELD else 0
        mark, style = (
            ("yes", "green") if known == of else ("no", "red") if not known + bounded else ("partly", "yellow")
        )
        share = "" if known in (0, of) and not bounded else f"  {known:,} of {of:,}"
        if bounded:
            share += f", within bounds {bounded:,} more"
        page.line(Text.assemble("  ", (f"{mark:<6}", style), f"  {words}{share}"))
    page.blank()


def excerpt(text: str, column: int, width: int) -> tuple[str, int]:
    """``text`` cut to about ``width`` columns around ``column`` (0-based), made safe, and where
    on screen that column then is."""
    if len(text) <= width:
        start = 0
        cut = text
    else:
        start = max(0, min(column - width // 2, len(text) - width))
        cut = text[start : start + width]
    head = "..." if start else ""
    tail = "..." if start + width < len(text) else ""
    before = head + safe_text(cut[: column - start])
    return head + safe_text(cut) + tail, cell_len(before)


def _drift(page: Page, report: Report, drift: Sequence[DriftItem]) -> None:
    drifted = sum(source.drifted_lines for source in report.sources)
    unknown = sum(source.unknown_slot_lines for source in report.sources)
    lines = plural(sum(source.lines for source in report.sources), "line")
    if not drifted and not unknown:
        page.para(f"{lines}: every line of the server's own was understood.", style="green")
        page.blank()
        return
    page.para(
        f"{lines}: {drifted:,} known in kind but not in wording, {unknown:,} of slots or server not known at all. "
        "Please report them: a new wording is a small change to the grammar.",
        style="bold yellow",
    )
    for item in drift[:_DRIFT_SHOWN]:
        where = f"line {item.line:,}"
        if len(report.sources) > 1:
            name = report.sources[item.source].path
            where = f"{safe_text(shorten(name, 40, len(name) - 1))}:{item.line}"
        alike = f" ({item.count:,} like it)" if item.count > 1 else ""
        page.para(where + alike, first="  ")
        shown, caret = excerpt(item.message, item.column or 0, page.width - 12)
        page.line(Text("    " + shown, "cyan"))
        if item.status == "drifted":
            expected = list(item.expected)
            words = ", ".join(expected[:_EXPECTATIONS_SHOWN])
            if len(expected) > _EXPECTATIONS_SHOWN:
                words += f" or one of {len(expected) - _EXPECTATIONS_SHOWN} others"
            lead = "    " + " " * min(caret, page.width - 34)
            page.para(safe_text(f"expected {words}"), first=lead + "^ ", rest=min(len(lead) + 2, 8))
        else:
            page.para("no message of the grammar begins like this", first="      ")
    if len(drift) > _DRIFT_SHOWN:
        page.para(f"and {plural(len(drift) - _DRIFT_SHOWN, 'more wording')}", first="  ")
    page.blank()


def _capture(page: Page, analysis: Analysis) -> None:
    """How to capture a log that tells all there is, for servers like these."""
    report = analysis.report
    router = any(is_router_only(analysis, index) for index in range(len(report.sources)))
    notes = capture_notes(report, router)
    page.line(Text("To capture all there is", "bold"))
    for part in capture_lines(report, report.runs, router):
        page.para(Text(part, "cyan"), first="    ", rest=6)
    if not of_forks(report.runs):
        page.para("or `ckptlog run -- llama-server ...`, which does it by itself.", first="  ")
    for note in notes:
        page.para(note, first="- ")
