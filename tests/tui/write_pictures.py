"""Writes the pictures of docs/img from the sample logs: ``python -m tests.tui.write_pictures``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from ckptlog.tui.app import TimelineApp
from tests.tui.conftest import EVICTED, REJECTED, ROOT, SHIFTED, opened

PICTURES = {"tui-evicted": EVICTED, "tui-rejected": REJECTED, "tui-shift": SHIFTED}


async def picture(path: Path) -> str:
    async with opened(path, (104, 34)) as (app, pilot):
        assert isinstance(app, TimelineApp)
        await pilot.pause(0.3)
        drawn = app.export_screenshot(title=f"ckptlog tui {path.name}")
    # the picture must not fetch a font from anywhere
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def main() -> None:
    folder = ROOT / "docs" / "img"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in PICTURES.items():
        (folder / f"{name}.svg").write_text(asyncio.run(picture(path)), encoding="utf-8")


if __name__ == "__main__":
    main()
