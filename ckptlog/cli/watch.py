"""``ckptlog watch``: follow a growing log."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ckptlog.cli.common import MaxBytesOption, silence_stdout
from ckptlog.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from ckptlog.records import TurnRecord
    from ckptlog.watch.screen import Screen
    from ckptlog.watch.session import Session


def watch(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="A file, also one that does not exist yet, or - for stdin.")
    ],
    tee: Annotated[
        bool,
        typer.Option("--tee", help="Pass the log on to stdout as it comes; the turns then go to stderr."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object a turn, with the fields of diagnose.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="EXPR", help="Stop at the first turn for which this holds."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run this for each failed turn (with --until: for the turn that stops it); "
            "the turn's JSON is its standard input.",
        ),
    ] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="Only turns that end from now on; what the file holds is read silently."),
    ] = False,
    max_bytes: MaxBytesOption = None,
) -> int:
    """Follow a log as it is written: a line a turn, and why and what to do when one fails.

    \b
    Examples:
      ckptlog watch server.log
      llama-server ... -lv 4 2>&1 | ckptlog watch -
      llama-server ... -lv 4 2>&1 | ckptlog watch - --tee > server.log
      ckptlog watch server.log --until "outcome == 'context-shift'" && echo shifted
      ckptlog watch server.log --exec 'notify-send "$CKPTLOG_OUTCOME"'

    \b
    A file is followed through rotation and truncation. Exit code: 0 the pipe ended or the condition
    of --until held, 130 stopped by Ctrl-C.
    """
    from ckptlog.intake.follow import Pipe, follow_file
    from ckptlog.intake.sources import Source
    from ckptlog.watch.advice import Advice
    from ckptlog.watch.hook import Hook
    from ckptlog.watch.screen import Screen
    from ckptlog.watch.session import Session
    from ckptlog.watch.until import Until

    if os.path.isdir(log):
        raise UsageError(f"{log} is a directory: watch follows one log")
    condition = Until(until) if until is not None else None
    pipe = log == "-" or (os.path.exists(log) and not os.path.isfile(log))
    if tee and not pipe:
        raise UsageError("--tee passes on what comes through a pipe; the log here is a file")
    screen = Screen(Source(log).name, sys.stderr if tee else sys.stdout, json=json, live=not (tee or json))
    hook = Hook(command, screen.tell) if command is not None else None
    advice = Advice(log)
    quiet = new

    def on_turn(turn: TurnRecord) -> None:
        if quiet:
            screen.totals.add(turn)
            return
        shown = advice.live(turn, session.analyzer)
        screen.turn(shown)
        met = condition is not None and condition.holds(turn)
        if hook is not None and (met if condition is not None else turn.failed):
            hook(shown)
        if met:
            raise _Met

    session = Session(log, on_turn, max_bytes=max_bytes)

    def tell_news() -> None:
        for sentence in session.news():
            if not quiet:
                screen.tell(sentence)

    def on_look() -> None:
        nonlocal quiet
        taken = session.source.facts.raw_bytes
        quiet = quiet and taken < (session.source.raw_size() or 0)
        tell_news()
        screen.refresh(waiting=not pipe and not taken)

    try:
        if pipe:
            descriptor = 0 if log == "-" else os.open(log, os.O_RDONLY)
            session.follow(Pipe(descriptor, _to_stdout if tee else None).follow(), on_look)
            session.finish()
            tell_news()
            if not screen.totals.turns:
                _no_turn(session, screen)
        else:
            if not os.path.exists(log):
                screen.tell(f"waiting for {log}, which is not there yet")
            session.follow(follow_file(session.source), on_look)
        if condition is not None:
            screen.tell(f"the log ended, and {until} never held")
    except _Met:
        pass
    except BrokenPipeError:  # nobody reads any more
        silence_stdout()
    except KeyboardInterrupt:
        screen.tell(screen.totals.words())
        return ExitCode.INTERRUPTED
    finally:
        screen.clear()
        if hook is not None:
            hook.close()
    return ExitCode.OK


def _no_turn(session: Session, screen: Screen) -> None:
    """The pipe has ended without a turn: say what it held instead."""
    from ckptlog.report.nothing import nothing_to_judge

    try:
        sentences = nothing_to_judge(session.analysis())
    except InputError:  # it wants to look at the first lines again, and a pipe is gone
        sentences = [f"{session.source.name} held no line of a llama-server"]
    for sentence in sentences:
        screen.tell(f"no turn was seen: {sentence}")


class _Met(Exception):
    """The condition of --until holds."""


def _to_stdout(data: bytes) -> None:
    """All of it, at once: who reads the log behind a pipe waits for it. Nobody there: nothing to do."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(1, view) :]
    except BrokenPipeError:
        silence_stdout()
