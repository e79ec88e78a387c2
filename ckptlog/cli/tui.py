"""``ckptlog tui``: the interactive timeline."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ckptlog.cli.common import LogsArgument, tell
from ckptlog.errors import UsageError


def tui(
    logs: LogsArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Go on reading as the log grows; survives its rotation.")
    ] = False,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw with ASCII characters only.", show_default=False)
    ] = False,
) -> int:
    """Walk through a log: which turn went wrong, what happened to the checkpoints, what the log says.

    \b
    It opens on the worst finding. ] goes to the next one, enter shows the log there, ? all keys.

    \b
    Examples:
      ckptlog tui server.log
      ckptlog tui --follow server.log
      ckptlog tui logs/ --ascii
      llama-server ... 2>&1 | ckptlog tui -

    \b
    Exit code: 0 done, 2 a log is missing or can't be read, 3 the logs hold no turn, 130 Ctrl-C.
    """
    if not sys.stdout.isatty():
        raise UsageError("the timeline needs a terminal; ckptlog diagnose writes a report")
    piped = None
    if "-" in logs:
        if len(logs) > 1:
            raise UsageError("standard input (-) can't be shown together with other logs")
        from ckptlog.tui.piped import take_stdin

        piped = take_stdin()
    else:
        from ckptlog.intake.sources import expand

        expand(logs)  # what can't be read is told before the screen is taken
    from ckptlog.tui.app import TimelineApp, needs_ascii

    app = TimelineApp(
        logs, follow=follow or piped is not None, ascii_only=ascii_only or needs_ascii(), piped=piped
    )
    app.run()
    code = app.return_code or 0
    ended = app.loader_ended(2.0)
    if piped is not None:
        piped.close()
    if app.failure is not None:
        if ended:
            raise app.failure
        tell(str(app.failure))
    if not ended:
        # the reading thread is in the middle of a chunk in compiled code, which must not be torn down under it
        sys.stdout.flush()
        os._exit(code)
    return code
