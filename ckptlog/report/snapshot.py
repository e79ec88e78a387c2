"""What of a log is worth comparing with another: its settings, sums, and a line a turn.

The same records are a baseline file (``ckptlog gate --write-baseline``) and the two sides of
``ckptlog compare``. No prompt text, no times of day; of paths and models only the names given.
"""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import Literal, get_args

import msgspec

from ckptlog.records import FAILURES, Outcome, Report, RunRecord, TurnRecord
from ckptlog.report.loss import loss

#: sums over the turns in which the value is known
Sum = Literal["n_prompt", "n_processed", "n_lost", "prompt_ms", "generation_ms", "lost_ms"]
SUMS: tuple[Sum, ...] = get_args(Sum)
#: outcomes of which more is worse, whatever ``failed`` says
BAD_OUTCOMES: tuple[Outcome, ...] = (*FAILURES, "error", "unknown")


class TurnSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn; ``turn`` counts from 1. ``line`` is left out of a baseline, where it would only be noise."""

    turn: int
    outcome: str
    slot: int | None = None
    child_of: int | None = None
    failed: bool = False
    severity: str | None = None
    variant: str | None = None
    cause: str | None = None
    n_prompt: int | None = None
    n_cached: int | None = None
    n_lost: int | None = None
    line: int | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """One log.

    ``settings`` are the servers' builds, models and flags as words, in the order of the runs;
    ``sums`` and ``unknown`` (turns in which the summed value is not known) are keyed by ``Sum``.
    """

    path: str
    settings: list[dict[str, str]]
    turns_total: int
    failed: int
    outcomes: dict[str, int]
    reuse: float | None
    sums: dict[str, float]
    unknown: dict[str, int]
    turns: list[TurnSnapshot]


def snapshot(report: Report, path: str) -> Snapshot:
    """The snapshot of one log's report."""
    sums: dict[str, float] = {}
    unknown: dict[str, int] = {}
    for name in SUMS:
        values = [_value(turn, name) for turn in report.turns if _counts_for(turn, name)]
        total = sum(value for value in values if value is not None)
        sums[name] = round(total, 1) if isinstance(total, float) else total
        unknown[name] = sum(value is None for value in values)
    reuse = report.summary.reuse
    return Snapshot(
        path=path,
        settings=[_settings(run) for run in report.runs],
        turns_total=len(report.turns),
        failed=sum(turn.failed for turn in report.turns),
        outcomes=dict(sorted(Counter(turn.outcome for turn in report.turns).items())),
        reuse=None if reuse is None else round(reuse, 6),
        sums=sums,
        unknown=unknown,
        turns=[_turn(number, turn) for number, turn in enumerate(report.turns, start=1)],
    )


def _counts_for(turn: TurnRecord, name: Sum) -> bool:
    """Children share their parent's prompt; a refused request has no prompt that was processed."""
    if name in ("n_prompt", "n_processed", "n_lost", "prompt_ms", "lost_ms"):
        return turn.child_of is None and turn.outcome not in ("arrival-rejection", "not-completion")
    return turn.outcome not in ("arrival-rejection", "not-completion")


def _value(turn: TurnRecord, name: Sum) -> float | None:
    """A turn's part of a sum; of what was lost, what the report says: also what was held elsewhere than in
    the slot, and nothing where only bounds are known."""
    if name not in ("n_lost", "lost_ms"):
        value: float | None = getattr(turn, name)
        return value
    gone = loss(turn)
    if gone is None or not gone.exact:
        return None
    if name == "n_lost":
        return gone.tokens
    return gone.ms if turn.prompt_ms is not None else turn.lost_ms


def _turn(number: int, turn: TurnRecord) -> TurnSnapshot:
    lost = _value(turn, "n_lost")
    return TurnSnapshot(
        turn=number,
        outcome=turn.outcome,
        slot=turn.slot,
        child_of=turn.child_of,
        failed=turn.failed,
        severity=turn.severity,
        variant=turn.variant,
        cause=turn.cause,
        n_prompt=turn.n_prompt,
        n_cached=turn.n_cached,
        n_lost=None if lost is None else int(lost),
        line=turn.lines[0],
    )


def _settings(run: RunRecord) -> dict[str, str]:
    """A server's build, model and flags as words; what the log does not say is left out."""
    checkpoints = run.checkpoints
    found = {
        "build": run.build or _bracket(run),
        "model": None if run.model is None else PurePosixPath(run.model.replace("\\", "/")).name,
        "arch": run.arch,
        "memory": None if run.memory == "unknown" else run.memory,
        "slots": run.n_slots,
        "context per slot": run.n_ctx_slot,
        "checkpoints": None if checkpoints is None or checkpoints.enabled else "off",
        "--ctx-checkpoints": None if checkpoints is None else checkpoints.max,
        "--checkpoint-min-step": None if checkpoints is None else checkpoints.min_step,
        "prompt cache MiB": None if run.prompt_cache_mib is None else f"{run.prompt_cache_mib:g}",
        "context shift": None if run.context_shift is None else ("on" if run.context_shift else "off"),
        "-lv": run.verbosity,
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _bracket(run: RunRecord) -> str | None:
    if run.build_min is None and run.build_max is None:
        return None
    low = "" if run.build_min is None else f"b{run.build_min}"
    high = "" if run.build_max is None else f"b{run.build_max}"
    return f"{low}..{high}"
