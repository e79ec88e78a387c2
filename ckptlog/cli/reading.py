"""Reading logs for a command: the analysis, with a progress bar where that helps."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptlog.cli.common import tell, warn_all
from ckptlog.processes import start_early

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ckptlog.analysis import Analysis

#: a bar that is gone at once only flickers
_PATIENCE_S = 1.0
#: small chunks where the reading may be stopped between two of them
_PARTIAL_CHUNK = 4 << 20


class _Bar:
    """Bytes read, on stderr if that is a terminal; appears after a second."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._begun = time.monotonic()
        self._done = 0
        self._current = 0
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, bytes_of_source: int) -> None:
        # the count begins anew with each source
        step = bytes_of_source - self._current if bytes_of_source >= self._current else bytes_of_source
        self._current = bytes_of_source
        self._done += step
        if self._progress is None and time.monotonic() - self._begun > _PATIENCE_S:
            self._show()
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("reading"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR"))),
            transient=True,
        )
        self._task = self._progress.add_task("reading", total=self._total)
        self._progress.start()

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


def _total_bytes(logs: Sequence[str]) -> int | None:
    """The size of all files named, None if one has none (a pipe)."""
    from ckptlog.intake.sources import expand

    sizes = [os.path.getsize(source.path) for source in expand(logs) if os.path.isfile(source.path)]
    return sum(sizes) if len(sizes) == len(expand(logs)) else None


class _Interrupt:
    """While it holds, the first Ctrl-C only asks to stop; a second one is the usual."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self) -> bool:
        return self._asked

    def __enter__(self) -> _Interrupt:
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _ask(self, _number: int, _frame: object) -> None:
        self._asked = True
        signal.signal(signal.SIGINT, self._before)


def read(
    logs: Sequence[str], max_bytes: int | None = None, quiet: bool = False, partial: bool = False, timeline: bool = False
) -> Analysis:
    """Analyse ``logs``; warnings go to stderr, and a bar if that is a terminal and ``quiet`` is not set.

    ``partial``: Ctrl-C ends the reading, and what was read until then is analysed. ``timeline``:
    ``Analysis.timeline`` will be asked for.
    """
    if not (partial or timeline):  # those are read in one go
        start_early(logs)
    from ckptlog.analysis import analyze

    # the process ends with the report: cycles may stay, and the collector would look at millions of records
    gc.disable()
    bar = None if quiet or not sys.stderr.isatty() else _Bar(_total_bytes(logs))
    try:
        if partial:
            with _Interrupt() as asked:
                analysis = analyze(
                    logs, chunk_bytes=_PARTIAL_CHUNK, max_bytes=max_bytes, progress=bar, stopped=asked
                )
        else:
            analysis = analyze(logs, max_bytes=max_bytes, progress=bar, timeline=timeline)
    finally:
        if bar is not None:
            bar.close()
    warn_all(analysis.warnings)
    if analysis.interrupted:
        read_bytes = sum(source.facts.raw_bytes for source in analysis.analyzer.sources)
        tell(f"interrupted: this is what the first {read_bytes:,} bytes show")
    return analysis
