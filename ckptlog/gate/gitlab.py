"""GitLab's Code Quality report: one entry for each turn behind a failed check."""

from __future__ import annotations

from typing import Any

from ckptlog.gate.sarif import fingerprint
from ckptlog.gate.verdict import CheckStatus, GateVerdict, LogVerdict
from ckptlog.report.as_json import encode_json
from ckptlog.report.safe import safe_text

_SEVERITIES: dict[CheckStatus, str] = {"failed": "major", "warning": "minor", "passed": "info"}


def render_gitlab(verdict: GateVerdict) -> bytes:
    """The JSON array that ``artifacts:reports:codequality`` takes."""
    return encode_json([entry for log in verdict.logs for entry in _entries(log)])


def _entries(log: LogVerdict) -> list[dict[str, Any]]:
    path = "stdin" if log.path == "-" else safe_text(log.path).removeprefix("./")
    if log.status in ("error", "nothing"):
        return [_entry(path, 1, f"log/{log.status}", log.message, log.path, "blocker")]
    found = []
    for check in log.checks:
        if check.status == "passed":
            continue
        for turn in check.turns or [None]:  # type: ignore[list-item]
            text = f"{check.name}: {check.message}"
            text += f". Turn {turn.turn}: {turn.says}" if turn is not None else ""
            found.append(
                _entry(
                    path,
                    turn.line if turn is not None else 1,
                    check.id,
                    text,
                    fingerprint(log, check, turn),
                    _SEVERITIES[check.status],
                )
            )
    return found


def _entry(path: str, line: int, check: str, text: str, mark: str, severity: str) -> dict[str, Any]:
    return {
        "description": safe_text(text),
        "check_name": check,
        "fingerprint": mark,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": max(line, 1)}},
    }
