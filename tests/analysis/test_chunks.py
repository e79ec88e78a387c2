"""However a log is cut, follow mode and batch mode give the same report."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

#: windows over several lines, JSON, cache listings, old timing blocks, colours, two servers in one file
CUT = [
    "b11549/hybrid/debug_window",
    "b11549/hybrid/unicode_text",
    "b11549/plain/json_log",
    "b11549/hybrid/pcache_tiny",
    "b8672/swa/lv4",
    "b11549/hybrid/fmt_colors",
    "b10068/hybrid/save_restore",
]


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("name", CUT)
def test_a_line_at_a_time(
    name: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    log = recorded(name)
    lines = log.data.splitlines(keepends=True)
    # start-up lines by the dozen, the turns one by one
    head = b"".join(lines[:150])
    cut = analyse(b"", pieces=[head, *lines[150:]])
    assert changed(log.report, cut.report) == []
    assert [(d.line, d.count) for d in cut.drift] == [(d.line, d.count) for d in log.analysis.drift]


@pytest.mark.parametrize("name", CUT)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cut(
    name: str,
    recorded: Callable[[str], Any],
    analyse: Callable[..., Any],
    changed: Callable[..., Any],
    data: st.DataObject,
) -> None:
    log = recorded(name)
    cuts = data.draw(st.lists(st.integers(0, len(log.data)), max_size=12))
    assert changed(log.report, analyse(b"", pieces=pieces(log.data, cuts)).report) == []


def test_settling_between_chunks_loses_nothing(
    recorded: Callable[[str], Any], changed: Callable[..., Any]
) -> None:
    """A follower hands turns over as soon as nothing more was written; the figures are those of the batch."""
    from ckptlog.analysis import Analyzer
    from ckptlog.intake.reader import Feeder
    from ckptlog.intake.sources import Source

    log = recorded("b11549/hybrid/lv4")
    lines = log.data.splitlines(keepends=True)
    source = Source("server.log")
    told: list[int | None] = []
    feeder, analyzer = Feeder(source), Analyzer(lambda turn: told.append(turn.task))
    analyzer.begin(source)
    for number, line in enumerate(lines):
        for chunk in feeder.feed(line):
            analyzer.feed(chunk)
        released = any(b"stop processing" in earlier for earlier in lines[max(0, number - 12) : number + 1])
        if number > 150 and b"stop processing" not in line and not released:
            analyzer.settle()
    for chunk in feeder.finish():
        analyzer.feed(chunk)
    analyzer.finish()
    from ckptlog.analysis import Analysis

    assert changed(log.report, Analysis(analyzer).report) == []
    assert told == [turn.task for turn in log.report.turns]
