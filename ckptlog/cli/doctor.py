"""``ckptlog doctor``: what a log is, what it can tell, how to capture a better one."""

from __future__ import annotations

from ckptlog.cli.common import LogsArgument, OutputOption, console, deliver, rendered, warn_all


def doctor(logs: LogsArgument, output: OutputOption = None) -> None:
    """Say what a log is (build, format, wrapper, level), what it can and can't tell, which lines
    were not understood and why, and how to capture a better one.

    \b
    Examples:
      ckptlog doctor server.log
      ckptlog doctor logs/*.log
    """
    from ckptlog.analysis import analyze
    from ckptlog.report.doctor import render_doctor

    analysis = analyze(logs)
    warn_all(analysis.warnings)
    screen = console(output)
    deliver(rendered(screen, render_doctor(analysis, screen.width)), output)
