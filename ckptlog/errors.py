"""The errors a user can meet, each with the exit code it ends the program with."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes, everywhere (docs/commands.md)."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2  # wrong usage, or input that is missing or can't be read
    NOTHING_TO_JUDGE = 3  # readable, but no turn in it
    INTERRUPTED = 130


class CkptlogError(Exception):
    """A problem to be told in one sentence, without a traceback."""

    exit_code = ExitCode.USAGE


class InputError(CkptlogError):
    """Input that is missing, unreadable, or matches no file."""


class NothingToJudge(CkptlogError):
    """Input that was read but holds no turn of a llama-server."""

    exit_code = ExitCode.NOTHING_TO_JUDGE


class UsageError(CkptlogError):
    """An option, expression or policy that can't be used."""
