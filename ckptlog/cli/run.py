"""``ckptlog run``: start a server so that its log can be diagnosed, follow it, report."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ckptlog.cli.common import console, deliver, rendered, tell
from ckptlog.errors import UsageError

if TYPE_CHECKING:
    from ckptlog.records import TurnRecord
    from ckptlog.watch.child import Child
    from ckptlog.watch.screen import Screen
    from ckptlog.watch.session import Session

#: the command's own options are the command's
CONTEXT_SETTINGS = {"allow_interspersed_args": False, "ignore_unknown_options": False}
NO_ARGS_IS_HELP = True
_REST_BYTES = 16 << 20


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The server and its arguments.")],
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="FILE", help="Keep the log there (default: llama-server-DATE-TIME.log here)."
        ),
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Add neither -lv 4 nor LLAMA_SERVER_SLOTS_DEBUG=1 and _N_DIFF=20.")
    ] = False,
) -> int:
    """Start a server with the log level and environment that a diagnosis needs, and follow it.

    \b
    Examples:
      ckptlog run -- llama-server -m model.gguf -c 8192
      ckptlog run --log server.log -- llama-server -m model.gguf

    \b
    Its output is passed on untouched and kept in a file; failures are shown on stderr as they
    happen; the report comes on stdout when it ends. Signals go to the server, its exit code is the
    exit code here (128 + n if signal n ended it).
    """
    from ckptlog.watch.advice import Advice
    from ckptlog.watch.child import Child
    from ckptlog.watch.screen import Screen
    from ckptlog.watch.session import Session
    from ckptlog.watch.settings import with_settings

    args, environment = list(command), dict(os.environ)
    added: list[str] = []
    if not as_is:
        args, environment, added = with_settings(args, environment)
    path = log or time.strftime("llama-server-%Y%m%d-%H%M%S.log")
    try:
        file = Path(path).open("wb")  # noqa: SIM115 - closed when the server has ended
    except OSError as error:
        raise UsageError(f"can't keep the log in {path}: {(error.strerror or str(error)).lower()}") from None
    with file:
        advice = Advice(path)
        screen = Screen(path, sys.stderr, failures_only=True, live=False)

        def on_turn(turn: TurnRecord) -> None:
            with contextlib.suppress(OSError):  # nobody reads stderr any more: the server runs on
                screen.turn(advice.live(turn, session.analyzer))

        session = Session(path, on_turn)
        child = Child(args, environment, file)
        with child.signals():
            child.start()
            if added:
                tell(f"added for the diagnosis: {', '.join(added)} (--as-is leaves the command alone)")
            tell(f"the log is kept in {path}")
            _watch(session, child, screen)
            code = child.wait()
    if child.ended_by is not None:
        tell(f"the server was ended by {child.ended_by}; its log has no word of that")
    if child.log_error is not None:
        tell(f"warning: the log is not whole: {child.log_error.strerror or child.log_error}")
    _report(session)
    return code


def _watch(session: Session, child: Child, screen: Screen) -> None:
    """Analyse what the child writes until it has ended; whatever goes wrong here is no matter to it."""
    from ckptlog.intake.follow import follow_file
    from ckptlog.intake.sources import open_raw

    source = session.source

    def tell_news() -> None:
        for sentence in session.news():
            screen.tell(sentence)

    try:
        session.follow(follow_file(source, stopped=lambda: not child.running()), tell_news)
        with open_raw(source) as file:  # what it wrote between the last look and its end
            file.seek(source.facts.raw_bytes)
            while data := file.read(_REST_BYTES):
                session.take(data)
        session.finish()
        tell_news()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        screen.tell(f"the log can't be followed any more ({reason}); the server runs on")


def _report(session: Session) -> None:
    """The report of diagnose, on stdout."""
    from ckptlog.report.nothing import nothing_to_judge
    from ckptlog.report.text import render_text

    analysis = session.analysis()
    for sentence in nothing_to_judge(analysis):
        tell(sentence)
    if analysis.report.turns:
        page = console()
        deliver(rendered(page, render_text(analysis.report, page.width)), None)
