"""No sequence of keys crashes the app or leaves it without a selected turn."""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptlog.tui.keys import KEYS
from tests.tui.conftest import EVICTED, FOUR_SLOTS, REJECTED, FixedApp, source_of, stored_report, until

_LEAVING = {"q"}
_PANES = [
    "up", "down", "left", "right", "h", "j", "k", "l", "home", "end", "G", "pageup", "pagedown", "tab",
    "shift+tab", "escape", "ctrl+f", "ctrl+b", "space", "backspace", "a", "7", "less_than_sign",
]  # fmt: skip
KEYS_PRESSED = sorted({key.keys for key in KEYS} - _LEAVING) + _PANES
_LOGS = {"evicted": EVICTED, "rejected": REJECTED, "slots": FOUR_SLOTS}


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    name=st.sampled_from(sorted(_LOGS)),
    keys=st.lists(st.sampled_from(KEYS_PRESSED), min_size=20, max_size=60),
    size=st.sampled_from([(20, 6), (60, 20), (80, 24), (140, 45)]),
    ascii_only=st.booleans(),
)
def test_random_keys(name: str, keys: list[str], size: tuple[int, int], ascii_only: bool) -> None:
    async def play() -> None:
        app = FixedApp(stored_report(name), [source_of(_LOGS[name])], ascii_only=ascii_only)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.book.turns, "the report is there")
            for key in keys:
                await pilot.press(key)
                # in the end of an export prompt a file would be written: leave it instead
                if app.prompt.is_open and app.prompt.kind == "export":
                    await pilot.press("escape")
            await pilot.pause()
            assert app.is_running
            assert app.item is not None
            assert app.map.lane is not None
            assert app.item in app.map.lane.turns

    asyncio.run(play())
