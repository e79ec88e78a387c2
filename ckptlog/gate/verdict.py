"""What the gate found: the records behind every one of its outputs.

Nothing here depends on when or where the gate ran: paths are as they were given, there is no time of day.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ckptlog.errors import ExitCode
from ckptlog.records import Tool

SCHEMA = 1

CheckStatus = Literal["passed", "failed", "warning"]
LogStatus = Literal["passed", "failed", "error", "nothing"]
CheckKind = Literal["outcome", "check", "baseline"]


class Pointer(msgspec.Struct, frozen=True):
    """A line of the log and what it shows; the line's text stays in the log."""

    line: int
    says: str


class TurnFinding(msgspec.Struct, frozen=True):
    """A turn behind a check: ``line`` is its first, ``says`` what happened, ``do`` the first fix."""

    turn: int
    line: int
    slot: int | None
    task: int | None
    outcome: str
    cause: str | None
    says: str
    do: str | None = None
    evidence: list[Pointer] = []


class CheckVerdict(msgspec.Struct, frozen=True):
    """One check on one log.

    ``id`` names the check in machine formats. ``unknown`` counts the turns that could not be judged;
    ``turns_total`` is larger than ``turns`` is long where very many turns are behind it.
    """

    id: str
    name: str
    kind: CheckKind
    status: CheckStatus
    message: str
    unknown: int = 0
    turns: list[TurnFinding] = []
    turns_total: int = 0
    expr: str | None = None
    where: str | None = None
    group: dict[str, str | int | float | bool | None] = {}
    #: what to do, where the log says too little
    hint: str | None = None
    #: neither passed nor failed by its figures: `turns` are those of which too little is known
    undecided: bool = False


class LogVerdict(msgspec.Struct, frozen=True):
    """One log. ``message`` says in one line why it passed or failed (or could not be judged)."""

    path: str
    status: LogStatus
    message: str
    turns: int = 0
    failed_turns: int = 0
    reuse: float | None = None
    checks: list[CheckVerdict] = []
    notes: list[str] = []

    @property
    def exit_code(self) -> ExitCode:
        return {
            "passed": ExitCode.OK,
            "failed": ExitCode.GATE_FAILED,
            "error": ExitCode.USAGE,
            "nothing": ExitCode.NOTHING_TO_JUDGE,
        }[self.status]


class GateVerdict(msgspec.Struct, frozen=True):
    """All logs. ``policy`` is the policy file as it was given, None for the default policy."""

    schema: int
    tool: Tool
    policy: str | None
    passed: bool
    logs: list[LogVerdict]

    @property
    def exit_code(self) -> ExitCode:
        """Of several logs the worst counts: unreadable, then failed, then nothing to judge."""
        codes = {log.exit_code for log in self.logs}
        order = (ExitCode.USAGE, ExitCode.GATE_FAILED, ExitCode.NOTHING_TO_JUDGE)
        return next((code for code in order if code in codes), ExitCode.OK)
