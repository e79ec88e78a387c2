"""docs/tui.md tells the keys and characters that there are."""

from __future__ import annotations

from ckptlog.tui.glyphs import ASCII, NAMES, UNICODE
from ckptlog.tui.keys import KEYS, PANE_KEYS, shown
from tests.tui.conftest import ROOT

TEXT = (ROOT / "docs" / "tui.md").read_text(encoding="utf-8")


def test_every_key_is_documented() -> None:
    for key in KEYS:
        assert f"| `{shown(key.keys)}` | {key.about} |" in TEXT
    for keys, about, _ in PANE_KEYS:
        assert f"| {keys} | {about} |" in TEXT


def test_every_character_is_documented() -> None:
    for name in NAMES:
        for glyphs in (ASCII, UNICODE):
            assert f"`{getattr(glyphs, name)}`" in TEXT, name


def test_the_pictures_are_there() -> None:
    for line in TEXT.splitlines():
        if line.startswith("!["):
            assert (ROOT / "docs" / line.partition("(")[2].rstrip(")")).exists()
