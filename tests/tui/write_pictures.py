"""Writes the pictures of docs/img from the sample logs: ``python -m tests.tui.write_pictures``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from ckptlog.tui.app import TimelineApp
from ckptlog.tui.panes import WHAT_IF
from tests.tui.conftest import EVICTED, REJECTED, ROOT, SHIFTED, opened, until

#: a log, the keys that are pressed, and the height
PICTURES: dict[str, tuple[Path, Sequence[str], int]] = {
    "tui-evicted": (EVICTED, (), 34),
    "tui-rejected": (REJECTED, (), 34),
    "tui-shift": (SHIFTED, (), 34),
    "tui-what-if": (EVICTED, ("i", "8"), 40),
}


async def picture(path: Path, keys: Sequence[str], height: int) -> str:
    async with opened(path, (104, height)) as (app, pilot):
        assert isinstance(app, TimelineApp)
        for key in keys:
            await pilot.press(key)
            if app.tab == WHAT_IF:
                await until(pilot, lambda: app.what_if.own is not None, "the log's own flags are known")
        if keys:
            await until(pilot, lambda: app.what_if.turns, "the replay answers")
        await pilot.pause(0.3)
        drawn = app.export_screenshot(title=f"ckptlog tui {path.name}")
    # the picture must not fetch a font from anywhere
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def main() -> None:
    folder = ROOT / "docs" / "img"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (path, keys, height) in PICTURES.items():
        (folder / f"{name}.svg").write_text(asyncio.run(picture(path, keys, height)), encoding="utf-8")


if __name__ == "__main__":
    main()
