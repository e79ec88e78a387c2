"""What the first screen says of slots that were given another conversation while they were at work."""

from __future__ import annotations

from pathlib import Path

import ckptlog
from ckptlog.report.digest import digest
from ckptlog.report.notes import swapped_words
from ckptlog.report.text import render_text

PLAYED = Path(__file__).parents[1] / "data" / "played"


def test_healthy_turns_whose_answers_may_be_off_are_not_all_well() -> None:
    report = ckptlog.analyze(PLAYED / "b10566" / "hybrid" / "busy-slot.log.gz").report
    what = digest(report)
    assert what.findings == []
    assert [item.number for item in what.swapped] == [4, 7]
    assert swapped_words(what).startswith("While turns 4 and 7 ran, another request asked for their slot by number")
    first_screen = "\n".join(line.plain for line in render_text(report, 80, None))
    assert "Nothing failed in 9 turns, but answers were mixed up." in first_screen
