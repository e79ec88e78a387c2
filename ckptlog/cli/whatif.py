"""``ckptlog whatif``: the same conversation under other flags."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import typer

from ckptlog.cli.common import LogsArgument, OutputOption, console, deliver, rendered
from ckptlog.errors import ExitCode, UsageError

NO_ARGS_IS_HELP = True

_BUILD = re.compile(r"b?(\d{4,6})")


class Format(StrEnum):
    """What the answer is written as."""

    text = "text"
    json = "json"


def whatif(
    logs: LogsArgument,
    ctx_checkpoints: Annotated[
        int | None,
        typer.Option(
            "--ctx-checkpoints", metavar="N", help="Checkpoints a slot may keep.", show_default=False
        ),
    ] = None,
    checkpoint_min_step: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-min-step", metavar="N", help="Least distance between two.", show_default=False
        ),
    ] = None,
    swa_full: Annotated[
        bool, typer.Option("--swa-full", help="Keep the whole cache of sliding-window layers.")
    ] = False,
    build: Annotated[
        str | None,
        typer.Option(
            "--build", metavar="B", help="Another build's rules, such as b11549.", show_default=False
        ),
    ] = None,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How to write the answer.")
    ] = Format.text,
    output: OutputOption = None,
) -> int:
    """Say what other flags would have saved, turn by turn, and what they cost in RAM.

    The log's conversation is replayed through the server's own rules for context checkpoints: first
    under its own flags, to show how far the replay can be trusted, then under those given here. Without
    flags, counts and spacings are tried and the cheapest good one is named.

    \b
    Examples:
      ckptlog whatif server.log
      ckptlog whatif server.log --ctx-checkpoints 4 --checkpoint-min-step 2048
      ckptlog whatif server.log --build b11549 --format json | jq .summary

    \b
    Exit code: 0 done, 2 wrong usage or a log can't be read, 3 no log holds a turn that can be replayed.
    """
    from ckptlog.cli.reading import read
    from ckptlog.replay.verdicts import Verdicts
    from ckptlog.replay.whatif import Flags
    from ckptlog.replay.whatif import whatif as answer_whatif

    flags = Flags(ctx_checkpoints, checkpoint_min_step, swa_full, _build_number(build))
    analysis = read(logs, timeline=True)
    answer = answer_whatif(analysis.timeline, flags, Verdicts(analysis.report))
    if output_format is Format.json:
        from ckptlog.report.as_json import encode_json

        deliver(encode_json(answer), output)
        return ExitCode.OK
    from ckptlog.report.whatif import render_whatif

    screen = console(output)
    deliver(rendered(screen, render_whatif(answer, screen.width)), output)
    return ExitCode.OK


def _build_number(build: str | None) -> int | None:
    if build is None:
        return None
    found = _BUILD.fullmatch(build.strip())
    if found is None:
        raise UsageError("--build takes a build number of llama.cpp, such as b11549")
    return int(found[1])
