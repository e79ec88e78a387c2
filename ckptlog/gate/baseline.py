"""Baseline files: what earlier logs came to, in JSON that is small and reads well in a diff."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ckptlog.gate.errors import BaselineError
from ckptlog.gate.evaluate import warned
from ckptlog.gate.findings import findings
from ckptlog.gate.policy import Policy
from ckptlog.gate.tolerance import DEFAULT, Tolerance, parse_tolerance
from ckptlog.gate.verdict import CheckStatus, CheckVerdict
from ckptlog.records import Report
from ckptlog.report.brief import number
from ckptlog.report.compare import METRICS, Comparison, compare
from ckptlog.report.snapshot import BAD_OUTCOMES, Snapshot, snapshot
from ckptlog.report.words import plural

SCHEMA = 1
KIND = "ckptlog-baseline"


class BaselineFile(msgspec.Struct, frozen=True):
    """The whole file."""

    kind: str
    schema: int
    logs: list[Snapshot]


def render_baseline(snapshots: Sequence[Snapshot]) -> bytes:
    """The file's bytes: two spaces a level, one line a turn, the order of the logs as given."""
    logs = []
    for log in snapshots:
        fields: dict[str, Any] = msgspec.to_builtins(log)
        rows = []
        for turn in fields.pop("turns"):
            turn.pop("line", None)
            rows.append("        " + json.dumps(turn, ensure_ascii=True))
        head = json.dumps(fields, indent=2, ensure_ascii=True).removesuffix("\n}")
        body = ",\n".join(rows)
        turns = f'"turns": [\n{body}\n      ]' if rows else '"turns": []'
        logs.append("\n".join("    " + line for line in head.splitlines()) + f",\n      {turns}\n    }}")
    listed = ",\n".join(logs)
    return f'{{\n  "kind": "{KIND}",\n  "schema": {SCHEMA},\n  "logs": [\n{listed}\n  ]\n}}\n'.encode()


def read_baseline(file: str) -> list[Snapshot]:
    """The snapshots in a baseline file. Raises ``BaselineError``."""
    try:
        content = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise BaselineError(f"can't read the baseline {file}: {reason}") from None
    try:
        decoded = msgspec.json.decode(content, type=BaselineFile)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BaselineError(
            f"{file} is no baseline: {str(error)[:1].lower()}{str(error)[1:]} "
            "(one is written by ckptlog gate LOG --write-baseline FILE)"
        ) from None
    if decoded.kind != KIND:
        raise BaselineError(f"{file} is no baseline: its kind is '{decoded.kind}', not '{KIND}'")
    if decoded.schema != SCHEMA:
        raise BaselineError(
            f"{file} has baseline schema {decoded.schema}, and this ckptlog reads {SCHEMA}: write it again"
        )
    return decoded.logs


def choose(baselines: Sequence[Snapshot], path: str, file: str, alone: bool) -> Snapshot:
    """The baseline of one log: by its path, else by its file name, else the only one for the only log."""
    exact = [log for log in baselines if log.path == path]
    named = [log for log in baselines if os.path.basename(log.path) == os.path.basename(path)]
    for found in (exact, named, list(baselines) if alone else []):
        if len(found) == 1:
            return found[0]
    known = ", ".join(log.path for log in baselines[:5]) or "no log at all"
    raise BaselineError(f"the baseline {file} has nothing on {path}: it has {known}")


def against(report: Report, path: str, old: Snapshot, policy: Policy) -> tuple[list[CheckVerdict], list[str]]:
    """The checks of a log against its baseline, and notes on what else has changed."""
    comparison = compare(old, snapshot(report, path))
    given = policy.gate.baseline.max_regression if policy.gate.baseline else None
    checks = [
        _check(name, tolerance, comparison, report, policy)
        for name, tolerance in _tolerances(DEFAULT if given is None else given)
    ]
    if policy.gate.baseline is not None and policy.gate.baseline.warn_only:
        checks = [warned(check) for check in checks]
    return checks, list(_notes(comparison))


def _tolerances(given: dict[str, int | float | str]) -> Iterator[tuple[str, Tolerance]]:
    for name in METRICS:  # in a fixed order, whatever the policy's
        tolerance = parse_tolerance(given[name]) if name in given else None
        if tolerance is not None:
            yield name, tolerance


def _check(
    name: str, tolerance: Tolerance, comparison: Comparison, report: Report, policy: Policy
) -> CheckVerdict:
    metric = comparison.metric(name)
    better = METRICS[name]
    message = f"{number(metric.new)}, was {number(metric.old)}"
    message += f"; {tolerance} worse is allowed" if tolerance.amount else ""
    status: CheckStatus = "passed"
    turns = _worse_turns(name, comparison)
    unknown = max(0, metric.unknown_new - metric.unknown_old)
    if name == "reuse" and metric.old is metric.new is None and not _has_prompts(report):
        message = "no prompt in either that could have reused anything"
    elif metric.old is None or metric.new is None or unknown:
        status = "warning" if policy.gate.allow_unknown else "failed"
        message += f"; {plural(unknown, 'more turn')} without a known {name} than before" if unknown else ""
    if metric.old is not None and metric.new is not None:
        assert better != "neither"
        worse = not tolerance.allows(metric.old, metric.new, better)
        if name == "failed" and not worse and not tolerance.relative and len(turns) > tolerance.amount:
            # one turn mended and another broken is no draw
            worse = True
            message += f"; {plural(len(turns), 'turn')} failed that did not fail before"
        status = "failed" if worse else status
    return CheckVerdict(
        id=f"baseline/{name}",
        name=f"{name} against the baseline",
        kind="baseline",
        status=status,
        message=message,
        unknown=unknown,
        turns=findings(report, turns) if status != "passed" else [],
        turns_total=len(turns) if status != "passed" else 0,
    )


def _has_prompts(report: Report) -> bool:
    """Whether a prompt was processed that could have reused anything (embeddings can't)."""
    return any(turn.outcome not in ("arrival-rejection", "not-completion") for turn in report.turns)


def _worse_turns(name: str, comparison: Comparison) -> list[int]:
    """Turns that account for a worse figure: those that have got worse, of the figure's own kind."""
    worse = comparison.worse
    if name == "failed":
        worse = [change for change in worse if change.new.failed and not change.old.failed]
    elif name in BAD_OUTCOMES:
        worse = [c for c in worse if c.new.outcome == name and c.old.outcome != name]
    return [change.new.turn for change in worse]


def _notes(comparison: Comparison) -> Iterator[str]:
    for setting in comparison.settings[:12]:
        yield (
            f"since the baseline: {setting.name} {setting.old or 'not in the log'}"
            f" -> {setting.new or 'not in the log'}"
        )
    if not comparison.aligned:
        yield (
            f"{plural(comparison.matched, 'turn')} correspond to the baseline's; "
            f"{len(comparison.only_new):,} of this log and {len(comparison.only_old):,} of the baseline "
            "do not (other order or prompt sizes) and were compared in sum only"
        )
