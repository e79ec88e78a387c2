"""``--where``: a report cut down to some of its turns."""

from __future__ import annotations

import msgspec

from ckptlog.analysis import Analysis
from ckptlog.analysis.to_records import summarize
from ckptlog.query import compile_filter
from ckptlog.records import Report
from ckptlog.report.digest import Selection


def selected(analysis: Analysis, where: str) -> tuple[Report, Selection]:
    """The analysis' report with only the turns for which ``where`` holds, and which those are.

    The summary is of these turns; sources, runs and checkpoints stay whole. Raises
    ``ckptlog.query.QueryError`` for an expression that can't be used.
    """
    frame = analysis.turns.filter(compile_filter(where).expr)
    numbers: list[int] = frame["turn"].to_list()
    turns = [analysis.report.turns[number - 1] for number in numbers]
    report = msgspec.structs.replace(analysis.report, turns=turns, summary=summarize(turns))
    return report, Selection(numbers, len(analysis.report.turns))
