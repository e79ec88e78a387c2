"""Helpers of the TUI's tests: an app opened on a real log, and one that is handed a finished report."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from ckptlog.intake.sources import Source
from ckptlog.records import Report
from ckptlog.timeline.model import Run
from ckptlog.tui.app import TimelineApp
from ckptlog.tui.loading import Picture, Progress
from ckptlog.tui.timeline import Timeline

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_logs"
LOGS = ROOT / "tests" / "data" / "logs"
REPORTS = Path(__file__).parent / "reports"

EVICTED = SAMPLES / "evicted-system-prompt.log"
REJECTED = SAMPLES / "rejected.log"
SHIFTED = SAMPLES / "context-shift-head.log"
LIMIT = SAMPLES / "limit-stop.log"
HEALTHY = SAMPLES / "healthy.log"
FOUR_SLOTS = LOGS / "b11549" / "hybrid" / "kv_full.log.gz"

#: seconds to wait for something on a busy machine
PATIENCE = 60.0


async def until(pilot: Pilot[Any], holds: Callable[[], object], what: str = "") -> None:
    """Wait until something holds; fail with ``what`` if it never does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while not holds():
        if loop.time() > end:
            raise AssertionError(f"never happened: {what or holds}")
        await pilot.pause(0.02)
    await pilot.pause()


@asynccontextmanager
async def opened(
    path: Path | Sequence[Path], size: tuple[int, int] = (100, 32), **options: Any
) -> AsyncIterator[tuple[TimelineApp, Pilot[Any]]]:
    """The app on a log, read to its end (or, if it is followed, to what is there)."""
    paths = [path] if isinstance(path, Path) else list(path)
    app = TimelineApp([os.fspath(each) for each in paths], **options)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.progress.phase != "reading", "the log is read")
        yield app, pilot
    app.loader_ended(PATIENCE)


class FixedApp(TimelineApp):
    """The app with a report made earlier: nothing is read but the raw lines of its log."""

    def __init__(
        self,
        report: Report,
        sources: Sequence[Source] = (),
        runs: Sequence[Run] | None = None,
        **options: Any,
    ) -> None:
        super().__init__([source.path for source in report.sources], **options)
        self._fixed = report
        self._fixed_sources, self._fixed_runs = tuple(sources), runs
        self._loader.start = self._hand_over_fixed  # type: ignore[method-assign]

    def _hand_over_fixed(self) -> None:
        progress = Progress("done", 0, 0, 0.0)
        timeline = None if self._fixed_runs is None else Timeline(self._fixed_sources, self._fixed_runs)
        self._hand_over(Picture(self._fixed, self._fixed_sources, progress, timeline=timeline))


def stored_report(name: str) -> Report:
    """A report of tests/tui/reports, written by ``python -m tests.tui.write_reports``."""
    return msgspec.json.decode(gzip.decompress((REPORTS / f"{name}.json.gz").read_bytes()), type=Report)


def source_of(path: Path) -> Source:
    """A log as the reader leaves it: its lines counted."""
    source = Source(os.fspath(path))
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        source.facts.lines = sum(1 for _ in file)
    return source


def screen_text(app: TimelineApp) -> str:
    """What is on the screen, without colours."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def messages(app: TimelineApp) -> str:
    """What the app has told in its corner."""
    return "\n".join(note.message for note in app._notifications)


@pytest.fixture(autouse=True)
def _no_colour_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pictures must not depend on who runs the tests."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
