"""``ckptlog diagnose``: the report."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ckptlog.cli.common import (
    LogsArgument,
    MaxBytesOption,
    OutputOption,
    WhereOption,
    console,
    deliver,
    rendered,
    tell,
)
from ckptlog.errors import ExitCode


class Format(StrEnum):
    """What the report is written as."""

    text = "text"
    json = "json"
    markdown = "markdown"


def diagnose(
    logs: LogsArgument,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How to write the report.")
    ] = Format.text,
    output: OutputOption = None,
    where: WhereOption = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Replace prompt text, paths, addresses, hosts and model names by placeholders."
        ),
    ] = False,
    max_bytes: MaxBytesOption = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="On Ctrl-C, report what was read until then (exit code 130).")
    ] = False,
) -> int:
    """Say for every turn what happened, why, on which lines that shows, and what to change.

    \b
    Examples:
      ckptlog diagnose server.log
      ckptlog diagnose logs/ --where "failed and n_lost > 1k"
      ckptlog diagnose server.log.gz --format json -o report.json
      ckptlog diagnose server.log --format markdown --redact    to paste into an issue
      docker logs llama 2>&1 | ckptlog diagnose -

    \b
    Exit code: 0 done, 2 a log is missing or can't be read, 3 a log holds no turn.
    """
    from ckptlog.cli.reading import read
    from ckptlog.report.nothing import nothing_to_judge

    analysis = read(logs, max_bytes, quiet=output_format is Format.json, partial=partial)
    report, selection = analysis.report, None
    if where is not None:
        from ckptlog.report.select import selected

        report, selection = selected(analysis, where)
    if redact:
        from ckptlog.report.redact import redacted

        report = redacted(report)
    empty = nothing_to_judge(analysis, report)
    for sentence in empty:
        tell(sentence)
    if output_format is Format.json:
        from ckptlog.report.as_json import json_pieces

        deliver(json_pieces(report), output)
    elif output_format is Format.markdown:
        from ckptlog.report.markdown import render_markdown

        deliver(render_markdown(report, selection), output)
    elif analysis.report.turns:
        from ckptlog.report.text import render_text

        screen = console(output)
        deliver(rendered(screen, render_text(report, screen.width, selection)), output)
    if analysis.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.NOTHING_TO_JUDGE if empty else ExitCode.OK
