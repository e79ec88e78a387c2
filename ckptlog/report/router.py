"""A router's own log: the part that stderr alone catches, without its children's lines."""

from __future__ import annotations

from ckptlog.analysis import Analysis
from ckptlog.grammar import messages

#: messages that only a router prints
_KINDS = ("proxying", "spawning")
#: a router says so early on; a log without a turn may still be long
_LINES_LOOKED_AT = 2000


def is_router_only(analysis: Analysis, source: int) -> bool:
    """Whether this source is a router's log in which no child's line is to be seen."""
    if any(run.source == source and run.port is not None for run in analysis.report.runs):
        return False
    if any(turn.source == source for turn in analysis.report.turns):
        return False
    heads = [head for kind in _KINDS for head in messages().heads_of(kind)]
    lines = analysis.lines(source, 1, _LINES_LOOKED_AT)
    return any(head in line for line in lines for head in heads)
