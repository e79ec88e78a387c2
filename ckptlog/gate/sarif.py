"""SARIF 2.1.0: one result for each turn behind a failed check, pointing at its line of the log."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote as percent_encoded

from ckptlog.gate.verdict import CheckStatus, CheckVerdict, GateVerdict, LogVerdict, TurnFinding
from ckptlog.report.as_json import encode_json
from ckptlog.report.safe import safe_text

_LEVELS: dict[CheckStatus, str] = {"failed": "error", "warning": "warning", "passed": "none"}


def render_sarif(verdict: GateVerdict) -> bytes:
    """The SARIF log, indented."""
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for log in verdict.logs:
        for check in log.checks:
            rules.setdefault(check.id, _rule(check))
        results += _unread(log, rules) if log.status in ("error", "nothing") else []
    order = {identifier: index for index, identifier in enumerate(rules)}
    for log in verdict.logs:
        for check in log.checks:
            results += _results(log, check, order[check.id])
    driver = {
        "name": verdict.tool.name,
        "version": verdict.tool.version,
        "rules": list(rules.values()),
    }
    run = {
        "tool": {"driver": driver},
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return encode_json(
        {
            "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }
    )


def uri(path: str) -> str:
    """A path as it was given, as a relative or absolute URI reference."""
    if path == "-":
        return "stdin"
    slashed = path.replace("\\", "/")
    encoded = percent_encoded(slashed, safe="/._-~", errors="surrogateescape")
    if slashed.startswith("/"):
        return f"file://{encoded}"
    return encoded.removeprefix("./")


def fingerprint(log: LogVerdict, check: CheckVerdict, turn: TurnFinding | None) -> str:
    """The same for the same finding of the next run, whatever line it is on by then."""
    parts = [log.path, check.id, str(sorted(check.group.items()))]
    parts += [str(turn.turn), turn.outcome, turn.cause or ""] if turn is not None else []
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _rule(check: CheckVerdict) -> dict[str, Any]:
    text = {"outcome": f"The log has {check.name.removeprefix('no ')} turns", "check": check.name}.get(
        check.kind, check.name
    )
    rule: dict[str, Any] = {
        "id": check.id,
        "shortDescription": {"text": safe_text(text.split(" [")[0] if check.group else text)},
    }
    if check.expr is not None:
        rule["fullDescription"] = {
            "text": safe_text(check.expr + (f" where {check.where}" if check.where else ""))
        }
    return rule


def _unread(log: LogVerdict, rules: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    identifier = "log/unreadable" if log.status == "error" else "log/nothing-to-judge"
    rules.setdefault(
        identifier, {"id": identifier, "shortDescription": {"text": "The log could not be judged"}}
    )
    return [
        {
            "ruleId": identifier,
            "level": "error",
            "message": {"text": safe_text(log.message)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(log.path)}}}],
        }
    ]


def _results(log: LogVerdict, check: CheckVerdict, rule: int) -> list[dict[str, Any]]:
    if check.status == "passed":
        return []
    turns: list[TurnFinding | None] = list(check.turns) or [None]
    return [_result(log, check, rule, turn) for turn in turns]


def _result(log: LogVerdict, check: CheckVerdict, rule: int, turn: TurnFinding | None) -> dict[str, Any]:
    text = f"{check.name}: {check.message}."
    line = 1
    related = []
    if turn is not None:
        text += f" Turn {turn.turn}: {turn.says}"
        text += f" Do: {turn.do}" if turn.do else ""
        line = turn.line
        related = [
            {
                "id": number,
                "physicalLocation": _location(log, pointer.line),
                "message": {"text": safe_text(pointer.says)},
            }
            for number, pointer in enumerate(turn.evidence, start=1)
        ]
    result: dict[str, Any] = {
        "ruleId": check.id,
        "ruleIndex": rule,
        "level": _LEVELS[check.status],
        "message": {"text": safe_text(text)},
        "locations": [{"physicalLocation": _location(log, line)}],
        "partialFingerprints": {"ckptlog/v1": fingerprint(log, check, turn)},
    }
    if related:
        result["relatedLocations"] = related
    return result


def _location(log: LogVerdict, line: int) -> dict[str, Any]:
    return {"artifactLocation": {"uri": uri(log.path)}, "region": {"startLine": max(line, 1)}}
