"""``ckptlog compare``: two logs side by side."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ckptlog.cli.common import OutputOption, console, deliver, rendered, warn_all
from ckptlog.errors import ExitCode, NothingToJudge, UsageError

if TYPE_CHECKING:
    from ckptlog.analysis import Analysis


class Format(StrEnum):
    """What the comparison is written as."""

    text = "text"
    json = "json"


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The log to compare with.", show_default=False)],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="The log that is asked about.", show_default=False)
    ],
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How to write the comparison.")
    ] = Format.text,
    output: OutputOption = None,
) -> int:
    """Say which turns got worse and which better, and what changed in flags or build.

    Turns correspond when they come in the same order with the same prompt sizes; the others are
    told in sum only, and sums over other turns are called neither better nor worse.

    \b
    Examples:
      ckptlog compare before.log after.log
      ckptlog compare b10068.log b11549.log --format json | jq .worse

    \b
    Exit code: 0 done (whatever was found), 2 a log can't be read, 3 a log holds no turn.
    """
    from ckptlog.report.compare import compare as compare_snapshots
    from ckptlog.report.snapshot import snapshot

    if old == new == "-":
        raise UsageError("standard input (-) can be read only once")
    before, after = _analysis(old), _analysis(new)
    warn_all([*before.warnings, *after.warnings])
    comparison = compare_snapshots(snapshot(before.report, old), snapshot(after.report, new))
    if output_format is Format.json:
        from ckptlog.report.as_json import encode_json

        deliver(encode_json(comparison), output)
        return ExitCode.OK
    from ckptlog.report.compare_text import render_compare

    screen = console(output)
    files = len(before.report.sources), len(after.report.sources)
    deliver(rendered(screen, render_compare(comparison, after.report, screen.width, files=files)), output)
    return ExitCode.OK


def _analysis(path: str) -> Analysis:
    from ckptlog.analysis import analyze
    from ckptlog.report.nothing import nothing_to_judge

    analysis = analyze([path])
    if not analysis.report.turns:
        raise NothingToJudge("; ".join(nothing_to_judge(analysis)) or f"{path} holds no turn")
    return analysis
