"""``ckptlog doctor``: what a log is, what it can tell, how to capture a better one."""

from __future__ import annotations

from ckptlog.cli.common import LogsArgument, MaxBytesOption, OutputOption, console, deliver, rendered


def doctor(logs: LogsArgument, output: OutputOption = None, max_bytes: MaxBytesOption = None) -> None:
    """Say what a log is (build, format, wrapper, level), what it can and can't tell, which lines
    were not understood and why, and how to capture a better one.

    \b
    Examples:
      ckptlog doctor server.log
      ckptlog doctor logs/*.log
    """
    from ckptlog.cli.reading import read
    from ckptlog.report.doctor import render_doctor

    analysis = read(logs, max_bytes)
    screen = console(output)
    deliver(rendered(screen, render_doctor(analysis, screen.width)), output)
