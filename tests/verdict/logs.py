"""Turns of recorded logs, by name: ``logs/BUILD/MODEL/SCENARIO``, ``live/BUILD/MODEL/SCENARIO``, ``sample/NAME``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ckptlog
from ckptlog.records import Report, TurnRecord

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "sample_logs"


@cache
def report(name: str) -> Report:
    where, _, rest = name.partition("/")
    path = SAMPLES / f"{rest}.log" if where == "sample" else DATA / where / f"{rest}.log.gz"
    return ckptlog.analyze(path).report


def turn(name: str, number: int) -> TurnRecord:
    """The turn with that number in the log, counted from 1 as the reports do."""
    return report(name).turns[number - 1]
