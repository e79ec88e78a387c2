"""What watch says of a log is what diagnose says of the whole file, however it comes in."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog import analyze
from ckptlog.records import TurnRecord
from ckptlog.watch.session import Session

from .conftest import SAMPLES


def followed(path: Path, data: bytes, cuts: list[int]) -> list[TurnRecord]:
    turns: list[TurnRecord] = []
    session = Session(str(path), turns.append)
    for start, end in pairwise([0, *sorted(cuts), len(data)]):
        session.take(data[start:end])
    session.finish()
    return turns


def as_json(turns: list[TurnRecord]) -> list[bytes]:
    return sorted(msgspec.json.encode(turn) for turn in turns)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_equal_to_diagnose(path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(path.stem)
    cuts = [chance.randrange(len(data)) for _ in range(25)]
    whole = as_json(analyze(path).report.turns)
    assert whole
    assert as_json(followed(path, data, cuts)) == whole


@given(cuts=st.lists(st.floats(0, 1), max_size=40), path=st.sampled_from(SAMPLES[:6]))
@settings(max_examples=25, deadline=None)
def test_equal_to_diagnose_in_any_pieces(cuts: list[float], path: Path) -> None:
    data = path.read_bytes()
    places = [int(cut * len(data)) for cut in cuts]
    assert as_json(followed(path, data, places)) == as_json(analyze(path).report.turns)


def test_a_turn_is_told_when_it_ends_not_when_the_log_does(sample: Path) -> None:
    turns: list[TurnRecord] = []
    session = Session(str(sample), turns.append)
    told: list[int] = []
    for line in sample.read_bytes().splitlines(keepends=True):
        before = len(turns)
        session.take(line)
        if b"all slots are idle" in line:
            session.analyzer.settle()  # as after a while without a new line
        if len(turns) > before:
            told.append(session.source.facts.lines - turns[-1].lines[1])
    assert len(turns) > 3
    assert max(told) <= 10
    assert as_json(turns) == as_json(analyze(sample).report.turns)


def test_a_replaced_file_numbers_its_lines_anew(sample: Path) -> None:
    turns: list[TurnRecord] = []
    session = Session(str(sample), turns.append)
    session.take(sample.read_bytes())
    session.replaced()
    session.take(sample.read_bytes())
    session.finish()
    assert len(turns) == 2 * len(analyze(sample).report.turns)
    assert [turn.lines for turn in turns if turn.source] == [turn.lines for turn in turns if not turn.source]
