"""Logs that hold nothing to judge: one sentence each on what they are instead."""

from __future__ import annotations

import re

from ckptlog.analysis import Analysis
from ckptlog.intake.unwrap import heads_in
from ckptlog.report.router import is_router_only
from ckptlog.report.words import source_name

#: lines from the beginning that are looked through for something like a server's
_LOOKED_AT = 400
#: of these the first with text shows what a file is that is no log
_FEW = 5
#: as the builds of 2023 and early 2024 print what a slot does
_OLDER = re.compile(r"(?:^|\| )slot \d+ ?(?:: |is processing \[|released \()")


def nothing_to_judge(analysis: Analysis) -> list[str]:
    """A sentence for every source without a turn; empty if each has one."""
    with_turns = {turn.source for turn in analysis.report.turns}
    return [
        f"{source_name(source)} {_what_it_is(analysis, index)}"
        for index, source in enumerate(analysis.report.sources)
        if index not in with_turns
    ]


def _what_it_is(analysis: Analysis, index: int) -> str:
    source = analysis.report.sources[index]
    if source.bytes == 0 or source.lines == 0:
        return "is empty"
    if is_router_only(analysis, index):
        return (
            "holds only a router's own lines; the lines of its children, where the turns are, come on the "
            "router's standard output: capture both streams (> server.log 2>&1)"
        )
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
    first = next((line for line in lines[:_FEW] if line.strip()), "")
    head = first[:4096].lstrip("\ufeff \t")
    if "\x00" in head or sum(char == "\ufffd" for char in head) > len(head) // 10 + 1:
        return "is binary data, not a log of llama-server"
    if head.startswith(("{", "[{")):
        return "is JSON, not a log of llama-server (a request or its answer?)"
    return "holds no line of a llama-server"


def _is_like_a_servers(line: str) -> bool:
    return "prompt eval time = " in line or next(heads_in(line), None) is not None
