"""Many logs through the gate: one verdict a log, several at a time."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from ckptlog import __version__
from ckptlog.errors import CkptlogError, NothingToJudge
from ckptlog.gate.baseline import against, choose
from ckptlog.gate.evaluate import judge
from ckptlog.gate.policy import Policy
from ckptlog.gate.verdict import SCHEMA, CheckVerdict, GateVerdict, LogVerdict
from ckptlog.records import Tool
from ckptlog.report.snapshot import Snapshot, snapshot

#: below this many bytes in all, starting further processes costs more than it gains
_WORTH_PROCESSES = 24 * 1024 * 1024


@dataclass(frozen=True)
class Job:
    """One log to be judged; ``old`` is its baseline."""

    path: str
    policy: Policy
    old: Snapshot | None


@dataclass(frozen=True)
class Judged:
    """A verdict, and what the log would be as a baseline (None if it could not be judged)."""

    verdict: LogVerdict
    snapshot: Snapshot | None
    warnings: tuple[str, ...] = ()


def run_gate(
    paths: Sequence[str],
    policy: Policy,
    baselines: Sequence[Snapshot] | None,
    baseline_file: str = "",
    jobs: int | None = None,
) -> tuple[GateVerdict, list[Judged]]:
    """The verdict on the logs ``paths`` (each one file, or ``-``), in that order.

    Raises ``BaselineError`` where a baseline is wanted and has nothing on one of the logs. A log that
    can't be read or holds no turn is told in its verdict and keeps no other from being judged.
    """
    work = [
        Job(
            path,
            policy,
            None if baselines is None else choose(baselines, path, baseline_file, len(paths) == 1),
        )
        for path in paths
    ]
    judged = list(_judge_all(work, jobs or os.cpu_count() or 1))
    logs = [one.verdict for one in judged]
    passed = all(log.status == "passed" for log in logs)
    return GateVerdict(SCHEMA, Tool("ckptlog", __version__), policy.file, passed, logs), judged


def judge_log(job: Job) -> Judged:
    """Analyze and judge one log."""
    from ckptlog.analysis import analyze
    from ckptlog.report.incidents import ends
    from ckptlog.report.nothing import nothing_to_judge

    try:
        analysis = analyze([job.path])
        if not analysis.report.turns:
            raise NothingToJudge("; ".join(nothing_to_judge(analysis)) or "there is no turn in it")
    except NothingToJudge as error:
        return Judged(LogVerdict(job.path, "nothing", str(error)), None)
    except CkptlogError as error:
        return Judged(LogVerdict(job.path, "error", str(error)), None)
    checks: list[CheckVerdict] = []
    notes: list[str] = []
    if job.old is not None:
        checks, notes = against(analysis.report, job.path, job.old, job.policy)
    verdict = judge(analysis.report, analysis.turns, job.path, job.policy, checks, notes)
    return Judged(verdict, snapshot(analysis.report, job.path), (*analysis.warnings, *ends(analysis.report)))


def _judge_all(work: Sequence[Job], jobs: int) -> Iterator[Judged]:
    sizes = [os.path.getsize(job.path) if os.path.isfile(job.path) else 0 for job in work]
    if jobs < 2 or len(work) < 2 or sum(sizes) < _WORTH_PROCESSES or "-" in {job.path for job in work}:
        yield from map(judge_log, work)
        return
    # spawn and not fork: Polars keeps threads, and a fork of a threaded process may hang
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(min(jobs, len(work)), mp_context=context) as pool:
            yield from pool.map(judge_log, work)
    except BrokenProcessPool:
        raise CkptlogError(
            "a process that read one of the logs was killed (out of memory?): try --jobs 1"
        ) from None
