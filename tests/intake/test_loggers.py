"""The words that Python looks for on its own are those of the envelope's grammar."""

from __future__ import annotations

import re

import pytest

from ckptlog.grammar.kinds import FAMILIES
from ckptlog.intake.loggers import LETTERS, LEVEL_WORDS, LOGGERS, MAIN_LOGGERS, TAG_LEVELS
from ckptlog.intake.unwrap import date_pattern, unwrap


def test_loggers_are_the_families_with_a_head() -> None:
    assert {*LOGGERS, "bare", "tagged"} == set(FAMILIES)
    assert set(MAIN_LOGGERS) < set(LOGGERS)


@pytest.mark.parametrize("logger", LOGGERS)
def test_each_logger_begins_a_head(logger: str) -> None:
    line = "slot release: id  0 | task 1 | x" if logger == "slot" else f"{logger}  init: x"
    assert unwrap(line).family == logger


@pytest.mark.parametrize("level", TAG_LEVELS)
def test_each_level_begins_a_tagged_line(level: str) -> None:
    envelope = unwrap(f'{level} [ release] x | tid="1" timestamp=1')
    assert (envelope.family, envelope.level) == ("tagged", LETTERS[level])


@pytest.mark.parametrize("word", ["TRACE", "NOTE", "FATAL"])
def test_no_other_level_does(word: str) -> None:
    assert unwrap(f'{word} [ release] x | tid="1" timestamp=1').family != "tagged"


def test_level_words_hold_those_of_the_server() -> None:
    assert {level.lower() for level in LETTERS if len(level) > 1} <= set(LEVEL_WORDS)


@pytest.mark.parametrize(
    "date",
    ["2026-08-14T20:47:08.996+02:00", "2026-08-14 20:47:08,99", "Aug 14 20:47:08", "Fri 2026-08-14 20:47:08 UTC", "[  12.345678]"],
)
def test_dates(date: str) -> None:
    pattern = re.compile(date_pattern())
    assert pattern.fullmatch(date)
    assert pattern.groups == 0
