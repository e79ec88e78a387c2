"""Pictures: each pane, each outcome, narrow and wide, light and dark, ASCII.

They are made of the reports in tests/tui/reports, so that they show the TUI and not the engine. After a
wanted change: ``pytest tests/tui/test_snapshots.py --snapshot-update``, and look at every picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from ckptlog.analysis import analyze
from tests.tui.conftest import (
    EVICTED,
    FOUR_SLOTS,
    HEALTHY,
    LIMIT,
    LOGS,
    REJECTED,
    SHIFTED,
    FixedApp,
    source_of,
    stored_report,
    until,
)

#: the pictures change with nearly every minor version of Textual
_TEXTUAL = "8.2"
pytestmark = pytest.mark.skipif(
    not textual.__version__.startswith(_TEXTUAL + "."),
    reason=f"the pictures were made with Textual {_TEXTUAL}, this is {textual.__version__}",
)

_LOGS: dict[str, Path] = {
    "evicted": EVICTED,
    "rejected": REJECTED,
    "limit": LIMIT,
    "shift": SHIFTED,
    "healthy": HEALTHY,
    "slots": FOUR_SLOTS,
    "level3": LOGS / "b11549" / "hybrid" / "lv3.log.gz",
    "partial": LOGS / "b11549" / "hybrid" / "minstep_8192.log.gz",
}


@pytest.fixture
def pictured(snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Compare the picture of a stored report after some keys with the one that is kept."""

    def compare(
        name: str,
        keys: Sequence[str] = (),
        size: tuple[int, int] = (100, 32),
        theme: str = "textual-dark",
        **options: Any,
    ) -> bool:
        monkeypatch.setattr("ckptlog.tui.taking.__version__", "VERSION")
        app = FixedApp(stored_report(name), [source_of(_LOGS[name])], **options)

        async def prepare(pilot: Pilot[Any]) -> None:
            app.theme = theme
            await until(pilot, lambda: app.book.turns, "the report is there")
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
            await pilot.pause(0.1)

        return snap_compare(app, terminal_size=size, run_before=prepare)

    return compare


@pytest.mark.parametrize("name", list(_LOGS))
def test_outcomes(name: str, pictured: Callable[..., bool]) -> None:
    assert pictured(name)


@pytest.mark.parametrize("tab", ["evidence", "mismatch", "checkpoints", "log"])
def test_tabs(tab: str, pictured: Callable[..., bool]) -> None:
    presses = ["evidence", "mismatch", "checkpoints", "log"].index(tab) + 1
    assert pictured("evicted", ["full_stop"] * presses)


@pytest.mark.parametrize(
    "size", [(60, 20), (80, 24), (140, 44), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_sizes(size: tuple[int, int], pictured: Callable[..., bool]) -> None:
    assert pictured("evicted", size=size)


@pytest.mark.parametrize("name", ["evicted", "rejected", "shift"])
def test_light(name: str, pictured: Callable[..., bool]) -> None:
    assert pictured(name, theme="textual-light")


@pytest.mark.parametrize("name", ["evicted", "rejected"])
def test_ascii(name: str, pictured: Callable[..., bool]) -> None:
    assert pictured(name, ascii_only=True)


def test_help(pictured: Callable[..., bool]) -> None:
    assert pictured("evicted", ["question_mark"])


def test_report(pictured: Callable[..., bool]) -> None:
    assert pictured("evicted", ["w"])


def test_filter_with_an_error(pictured: Callable[..., bool]) -> None:
    assert pictured("evicted", ["f", *"failed and n_los"])


def test_zoomed_out(pictured: Callable[..., bool]) -> None:
    assert pictured("rejected", ["Z"] * 9)


def test_one_slot_of_four(pictured: Callable[..., bool]) -> None:
    assert pictured("slots", ["s", "s"])


def test_what_if(snap_compare: Callable[..., bool]) -> None:
    app = FixedApp(stored_report("evicted"), [source_of(EVICTED)], runs=analyze([str(EVICTED)]).timeline)

    async def prepare(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: app.book.turns, "the report is there")
        await pilot.press("i")
        await until(pilot, lambda: app.what_if.own is not None, "the log's own flags are known")
        await pilot.press("8")
        await until(pilot, lambda: app.what_if.turns, "the replay answers")

    assert snap_compare(app, terminal_size=(100, 50), run_before=prepare)
