"""Logs that hold nothing to judge: one sentence each on what they are instead."""

from __future__ import annotations

import re

from ckptlog.analysis import Analysis
from ckptlog.grammar import messages
from ckptlog.intake.unwrap import heads_in
from ckptlog.records import IncidentRecord, Report
from ckptlog.report.incidents import ENDS, incident_sentence
from ckptlog.report.router import is_router_only
from ckptlog.report.safe import shorten
from ckptlog.report.words import source_name

#: lines from the beginning that are looked through for something like a server's
_LOOKED_AT = 400
#: of these the first with text shows what a file is that is no log
_FEW = 5
#: as the builds of 2023 and early 2024 print what a slot does
_OLDER = re.compile(r"(?:^|\| )slot \d+ ?(?:: |is processing \[|released \()")
#: of a command line that is refused, what it is refused with stands among the first
_LINES_OF_USAGE = 8
#: characters quoted of a log
_WORDS = 200


def nothing_to_judge(analysis: Analysis, shown: Report | None = None) -> list[str]:
    """A sentence for every source without a turn; empty if each has one.

    What happened is told from ``shown``, the report that is shown of it, where that is another one (redacted).
    """
    with_turns = {turn.source for turn in analysis.report.turns}
    return [
        f"{source_name(source)} {_what_it_is(analysis, shown or analysis.report, index)}"
        for index, source in enumerate(analysis.report.sources)
        if index not in with_turns
    ]


def _what_it_is(analysis: Analysis, shown: Report, index: int) -> str:
    source = analysis.report.sources[index]
    if source.bytes == 0 or source.lines == 0:
        return "is empty"
    if is_router_only(analysis, index):
        return (
            "holds only a router's own lines; the lines of its children, where the turns are, come on the "
            "router's standard output: capture both streams (> server.log 2>&1)"
        )
    incident = _incident(shown, index)
    if incident is not None:
        return f"holds no turn. {incident_sentence(incident, f'line {incident.lines[0]:,}').rstrip('.')}"
    lines = [analysis.line(index, number) or "" for number in range(1, min(source.lines, _LOOKED_AT) + 1)]
    runs = any(run.source == index for run in analysis.report.runs)
    strange = source.unknown_slot_lines + source.drifted_lines
    if (strange and not runs) or any(map(_OLDER.search, lines)):
        return "is of a llama-server in a form that ckptlog does not read (an older, a newer or a forked one, or lines that were cut)"
    if runs or source.format is not None:
        return "holds lines of a llama-server but no turn: nothing was asked of it, or the log ends before that"
    looks = next((number for number, line in enumerate(lines, 1) if _is_like_a_servers(line)), None)
    if looks is not None:
        return (
            f"has lines that look like a llama-server's (line {looks}), but too few with a head (`slot ...: id`, `srv ...:`) "
            "to tell what stands around them: give them as the server printed them"
        )
    refused = _refused_command(lines)
    if refused is not None:
        return f"holds the error of a command line, with which no server starts: {refused}"
    first = next((line for line in lines[:_FEW] if line.strip()), "")
    head = first[:4096].lstrip("\ufeff \t")
    if "\x00" in head or sum(char == "\ufffd" for char in head) > len(head) // 10 + 1:
        return "is binary data, not a log of llama-server"
    if head.startswith(("{", "[{")):
        return "is JSON, not a log of llama-server (a request or its answer?)"
    return "holds no line of a llama-server"


def _incident(report: Report, index: int) -> IncidentRecord | None:
    """What happened instead of turns: the last thing that ended a server, else the first request that failed."""
    found = [each for run in report.runs if run.source == index for each in run.incidents]
    ends = [each for each in found if each.kind in ENDS]
    return ends[-1] if ends else next((each for each in found if each.kind == "request-failed"), None)


def _refused_command(lines: list[str]) -> str | None:
    """The line that says what a command line is refused with, if the log begins with one."""
    heads = tuple(messages().heads_of("usage_error"))
    return next((shorten(line.strip(), _WORDS) for line in lines[:_LINES_OF_USAGE] if line.lstrip().startswith(heads)), None)


def _is_like_a_servers(line: str) -> bool:
    return "prompt eval time = " in line or next(heads_in(line), None) is not None
