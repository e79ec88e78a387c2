"""Findings for turns that ended with their server process: by what was said of it, and what to do next."""

from __future__ import annotations

import re
from typing import NamedTuple

from ckptlog.records import Fix
from ckptlog.timeline.model import LastWord
from ckptlog.verdict import faults
from ckptlog.verdict.case import Case
from ckptlog.verdict.fixes import newer_or_report
from ckptlog.verdict.rule import Finding

#: lines of a crash that are quoted
QUOTED = 3


class _Reason(NamedTuple):
    """Why a process died: the wordings and words that show it, in a sentence, and the next step."""

    wordings: frozenset[str]
    words: re.Pattern[str]
    why: str
    fix: Fix


def _reason(wordings: str, words: str, why: str, name: str, text: str) -> _Reason:
    return _Reason(frozenset(wordings.split()), re.compile(words, re.IGNORECASE), why, Fix(name, text))


_NEWER = newer_or_report("that line")

_DEVICE_FAILED = (
    "the device or its driver failed", "device-failed",
    f"Look at the driver and the device (the system's log may say more). {_NEWER}",
)  # fmt: skip

#: the first that fits holds
_REASONS = (
    _reason(
        "device abort exception", r"out[ _]?of[ _]?(device[ _]?)?memory|insufficient memory",
        "the device's memory ran out", "device-memory",
        "Leave the device more room: a smaller -c or -ub, fewer layers on it (-ngl), or a quantized cache (-ctk and -ctv q8_0).",
    ),
    _reason(
        "service signal exception terminate", r"\boom\b|\boom-kill|\bkilled\b|status=9/KILL|bad_alloc",
        "it was killed or ended for want of the host's memory, as far as that tells", "host-memory",
        "Look for the OOM killer in the system's log (dmesg); if it was that, a smaller --cache-ram, fewer --ctx-checkpoints "
        "or a smaller -c leave the host more room.",
    ),
    _reason("device", "", *_DEVICE_FAILED),
    _reason("abort", r"(CUDA|ROCm|MUSA) error", *_DEVICE_FAILED),
    _reason("abort", "", "the server's own check failed, and it ended itself", "report-crash", _NEWER),
    _reason("exception terminate", "", "an error was thrown that nothing caught", "report-crash", _NEWER),
)  # fmt: skip
_UNKNOWN = _Reason(
    frozenset(), re.compile(""), "why is not in the log", Fix(
        "look-before-restart", "Look at the lines before that, and at the system's log (out of memory?)."
    ),
)  # fmt: skip

_OF_DEVICE = re.compile(r"vk::|(CUDA|ROCm|MUSA) error", re.IGNORECASE)
#: what is no fault of the server's
_OF_MACHINE = frozenset({"device-memory", "host-memory", "device-failed"})

#: what a line of a crash shows, by the grammar's wording
_SAYS = {
    "device": "the device's error, behind which the server said nothing more",
    "abort": "the check that failed, and ended the process",
    "exception": "the error that nothing caught",
    "terminate": "an error that nothing caught ended the process",
    "signal": "the process ended by a signal",
    "service": "the process ended, as its service manager saw it",
    "exit_code": "the process ended with this code",
    "exited": "the process ended, as the router saw it",
    "backtrace": "the trace of a process that ends itself",
}


def why_ended(words: list[LastWord]) -> tuple[str, Fix]:
    """Why a process died as far as what was said of it tells, in half a sentence, and what to do next."""
    found = next((reason for reason in _REASONS if any(_fits(reason, word) for word in words)), _UNKNOWN)
    return found.why, found.fix


def fix_for_thrown(text: str) -> list[Fix]:
    """What to do about an error that the server caught and gave a request as its own, where memory or a device failed."""
    how = "device" if _OF_DEVICE.search(text) else "exception"
    found = next((reason for reason in _REASONS if _fits(reason, LastWord(0, text, how))), _UNKNOWN)
    return [found.fix] if found.fix.name in _OF_MACHINE else []


def crashed(case: Case) -> Finding:
    """The process ended in the turn: because something says so, or because another one started."""
    words = case.turn.crash
    for word in words[:QUOTED]:
        case.quote(word.line, word.text, _SAYS[word.how])
    reason = next((reason for reason in _REASONS if any(_fits(reason, word) for word in words)), _UNKNOWN)
    if words:
        text = f"The server's process ended while this turn was running (line {words[0].line}): {reason.why}."
        fix = reason.fix
    else:
        text = "The server started anew while this turn was running: it had crashed or was stopped."
        fix = Fix("look-before-restart", "Look at the lines before the restart, and at the system's log (out of memory?).")
    told, upgrade = _loading_a_checkpoint(case) if reason is _UNKNOWN else ("", [])
    if told:
        return Finding("crash", f"{text} {told}", "inferred", upgrade)
    return Finding("crash", text, "observed", [fix])


def _fits(reason: _Reason, word: LastWord) -> bool:
    return word.how in reason.wordings and reason.words.search(word.text) is not None


def _loading_a_checkpoint(case: Case) -> tuple[str, list[Fix]]:
    """The fault of builds that end when a checkpoint can't be loaded, where that was the last thing said."""
    turn = case.turn
    if not turn.checks or turn.restored is not None or turn.forced is not None or turn.batch_starts:
        return "", []
    words, upgrade = faults.told(case.run, "restore-aborts")
    if not words:
        return "", []
    case.quote(turn.checks[-1].line, turn.checks[-1].text, "the last thing said: a checkpoint was about to be loaded")
    return f"The last thing it did was to load a checkpoint. {words}", upgrade
