"""A turn with which nothing is wrong, in a log in which something was outside of turns."""

from __future__ import annotations

from pathlib import Path

import ckptlog
from ckptlog.tui.book import Book
from ckptlog.tui.finding import _elsewhere

LOG = Path(__file__).parents[1] / "data" / "binary" / "10434" / "rkill-kill-lv3.log.gz"


def test_it_is_told_there() -> None:
    text = _elsewhere(Book(ckptlog.analyze(LOG).report)).plain
    assert text.startswith("No turn failed. The router's child on port ")
    assert "ended while no request was at work" in text
