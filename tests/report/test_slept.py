"""What the first screen says of prompts that came back to a server which had slept."""

from __future__ import annotations

from pathlib import Path

import ckptlog
from ckptlog.report.digest import digest
from ckptlog.report.notes import slept_words

PLAYED = Path(__file__).parents[1] / "data" / "played"


def test_the_sleep_and_not_the_number_of_slots_is_why_little_was_reused() -> None:
    what = digest(ckptlog.analyze(PLAYED / "b11549" / "hybrid" / "sleep.log.gz").report)
    assert [item.number for item in what.slept] == [7, 8, 9]
    assert what.little_reused
    assert what.unshared == []  # turn 3 is a new conversation, and less than what the sleep cost
    words = slept_words(what)
    assert words.startswith("Turns 7, 8 and 9 found nothing: the server had slept (--sleep-idle-seconds)")
    assert "If these conversations had been here before, up to 2,671 tokens were read again" in words


def test_a_prompt_that_is_too_short_to_have_come_back_is_not_told_of() -> None:
    what = digest(ckptlog.analyze(PLAYED / "b11549" / "hybrid" / "sleep-lv3.log.gz").report)
    assert [item.number for item in what.slept] == [3]  # of turns 3 and 5, the first behind a sleep each
    assert slept_words(what).startswith("Turn 3 found nothing")


def test_words_in_a_users_text_are_no_sleep() -> None:
    report = ckptlog.analyze(PLAYED / "b11549" / "hybrid" / "sleep.log.gz").report
    for turn in report.turns:
        for evidence in turn.evidence:
            evidence.mark, evidence.text = None, f"old: ... exiting sleeping state {evidence.text}"
    assert digest(report).slept == []
