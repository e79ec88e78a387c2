"""``--until EXPR``: does a condition hold for a turn that just ended?"""

from __future__ import annotations

from ckptlog import __version__
from ckptlog.query import compile_filter
from ckptlog.records import SCHEMA, Report, Summary, Tool, TurnRecord


class Until:
    """A condition of the filter language on one turn. Raises ``ckptlog.query.QueryError``."""

    def __init__(self, text: str) -> None:
        self._filter = compile_filter(text)

    def holds(self, turn: TurnRecord) -> bool:
        """Whether it is true; what the log does not say makes nothing true."""
        from ckptlog.query.frames import turns_frame

        report = Report(SCHEMA, Tool("ckptlog", __version__), [], [], [turn], [], Summary())
        return turns_frame(report).filter(self._filter.expr).height > 0
