"""From the timeline's objects and a verdict to the public records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import lru_cache

from ckptlog.records import (
    Basis,
    CheckpointRecord,
    CheckpointSettings,
    IncidentRecord,
    MismatchRecord,
    RunRecord,
    ShiftRecord,
    Summary,
    TurnCheckpoints,
    TurnRecord,
)
from ckptlog.timeline.model import Checkpoint, Incident, Run, Turn
from ckptlog.verdict.incidents import incident_says
from ckptlog.verdict.judge import Verdict

FIGURES = ("n_prompt", "n_common", "n_common_slot", "n_known", "n_cached", "n_processed", "n_generated")


#: one empty list for all records, which are never changed in place: most lists of most turns are empty
_NONE: list[int] = []


@lru_cache(maxsize=4096)
def _basis(items: tuple[tuple[str, Basis], ...]) -> dict[str, Basis]:
    """One object for all turns that know the same figures in the same way."""
    return dict(items)


def _positions(checkpoints: list[Checkpoint]) -> list[int]:
    return sorted([c.n_tokens for c in checkpoints]) if checkpoints else _NONE


def _seconds(t: int | None) -> float | None:
    return None if t is None else t / 1e6


def turn_record(run: Run, turn: Turn, verdict: Verdict) -> TurnRecord:
    """One turn as the report shows it."""
    known = turn.basis
    basis = [(name, known[name]) for name in FIGURES if name in known and getattr(turn, name) is not None]
    if verdict.n_lost is not None:
        basis.append(("n_lost", _weaker(turn, "n_common", "n_cached")))
    return TurnRecord(
        source=turn.source,
        run=turn.run,
        slot=turn.slot,
        task=turn.task,
        child_of=turn.child_of,
        lines=(turn.first_line, max(turn.first_line, turn.last_line)),
        t_start=_seconds(turn.t_start),
        t_end=_seconds(turn.t_end),
        ended=turn.ended,
        outcome=verdict.outcome,
        severity=verdict.severity,
        failed=verdict.failed,
        also=verdict.also,
        variant=verdict.variant,
        trigger=verdict.trigger,
        cause=verdict.cause,
        confidence=verdict.confidence,
        n_prompt=turn.n_prompt,
        n_common=turn.n_common,
        n_common_slot=turn.n_common_slot,
        n_common_range=turn.n_common_range if turn.n_common is None else None,
        n_known=turn.n_known,
        n_cached=turn.n_cached,
        n_processed=turn.n_processed,
        n_generated=turn.n_generated,
        n_lost=verdict.n_lost,
        truncated=turn.truncated,
        prompt_ms=turn.prompt_ms,
        generation_ms=turn.generation_ms,
        lost_ms=verdict.lost_ms,
        basis=_basis(tuple(basis)),
        mismatch=_mismatch(turn),
        checkpoints=_turn_checkpoints(turn),
        shifts=[
            ShiftRecord(s.line, s.n_keep, s.n_left, s.n_discard, s.hole, s.variant) for s in turn.shifts
        ],
        evidence=verdict.evidence,
        fixes=verdict.fixes,
        headline=verdict.headline,
        explanation=verdict.explanation,
        not_fixes=verdict.not_fixes,
        missing=verdict.missing,
    )


def _weaker(turn: Turn, *names: str) -> Basis:
    order: tuple[Basis, ...] = ("observed", "derived", "inferred")
    return order[max(order.index(turn.basis.get(name, "derived")) for name in names)]


def _mismatch(turn: Turn) -> MismatchRecord | None:
    """Null where nothing parts: no dump and no position, or a prompt that only adds to the slot's content."""
    if turn.mismatch_seen:
        if turn.mismatch_old is None and turn.mismatch_new is None and turn.n_common == turn.n_held:
            return None
        return MismatchRecord(turn.n_common, turn.mismatch_old, turn.mismatch_new)
    return None


def _turn_checkpoints(turn: Turn) -> TurnCheckpoints | None:
    if not turn.list_visible:
        return None
    restored = turn.restored
    return TurnCheckpoints(
        before=_positions(turn.before or []),
        created=_positions(turn.created),
        restored=restored.n_tokens if restored is not None else None,
        evicted=_positions(turn.evicted),
        thinned=_positions(turn.thinned),
        superseded=_positions(turn.superseded),
        invalidated=_positions(turn.invalidated),
        cleared=_positions(turn.cleared),
        after=_positions(turn.after or []),
    )


def writers_told(runs: list[Run]) -> set[int]:
    """The sources into which several servers write, as their wrappers tell.

    Processes of one program of which one begins when the other is over are one server, started anew.
    """
    last: dict[tuple[int, str], Run] = {}
    told = set()
    for run in sorted(runs, key=lambda run: run.first_line):
        if run.writer is None:
            continue
        before = last.setdefault((run.source, run.writer.program), run)
        if before.writer != run.writer and before.last_line > run.first_line:
            told.add(run.source)
        if run.last_line >= before.last_line:
            last[run.source, run.writer.program] = run
    programs = Counter(source for source, _ in last)
    return told | {source for source, n in programs.items() if n > 1}


def run_record(run: Run, named: Collection[int] = (), mixed: Collection[int] = ()) -> RunRecord:
    """``named``: the sources whose servers are told by name; ``mixed``: those into which several seem to write, so that
    a start is no other one's end."""
    settings = None
    if run.checkpoints_enabled is not None:
        settings = CheckpointSettings(run.checkpoints_enabled, run.checkpoints_max, run.checkpoints_min_step)
    build = build_min = build_max = run.told_build
    if build is None:
        build_min, build_max = run.build_min or None, run.build_max
        if run.bracket_broken:
            build_min = build_max = None
    return RunRecord(
        run=run.no,
        source=run.source,
        lines=(run.first_line, run.last_line),
        build=f"b{build}" if build is not None else None,
        build_min=build_min,
        build_max=build_max,
        model=run.model,
        arch=run.arch,
        memory=run.memory,
        n_swa=run.n_swa,
        n_slots=run.n_slots,
        n_ctx_slot=run.n_ctx_slot,
        checkpoints=settings,
        prompt_cache_mib=run.prompt_cache_mib,
        context_shift=run.context_shift,
        slots_debug=run.slots_debug,
        verbosity=run.verbosity,
        port=run.port,
        server=run.writer.name if run.writer is not None and run.source in named else None,
        kv_unified=run.kv_unified,
        n_ctx=run.n_ctx,
        prompt_cache_dropped=run.prompt_cache_dropped,
        fork=run.fork,
        incidents=[
            incident_record(run, each)
            for each in sorted(run.incidents, key=lambda one: one.line)
            if is_told(run, each, mixed)
        ],
    )


def is_told(run: Run, incident: Incident, mixed: Collection[int]) -> bool:
    """Not an end that only another start shows, in a source into which several servers seem to write (``mixed``)."""
    return incident.how != "unsaid" or run.source not in mixed


def incident_record(run: Run, incident: Incident) -> IncidentRecord:
    return IncidentRecord(
        kind=incident.kind,
        lines=(incident.line, incident.last_line),
        count=incident.count,
        status=incident.status,
        message=incident.message,
        says=incident_says(run, incident),
        text=incident.text,
    )


def checkpoint_record(checkpoint: Checkpoint) -> CheckpointRecord:
    return CheckpointRecord(
        run=checkpoint.run,
        slot=checkpoint.slot,
        task=checkpoint.task,
        line=checkpoint.line,
        origin=checkpoint.origin,
        n_tokens=checkpoint.n_tokens,
        pos_min=checkpoint.pos_min,
        pos_max=checkpoint.pos_max,
        size_mib=checkpoint.size_mib,
        fate=checkpoint.fate,
        fate_line=checkpoint.fate_line,
        fate_task=checkpoint.fate_task,
        restored_by=checkpoint.restored_by,
    )


def summarize(turns: list[TurnRecord]) -> Summary:
    """Totals over the turns; ``reuse`` leaves out refusals, children, and turns with a figure missing.

    It is null where more than half of the others miss one: what is left says nothing of the whole.
    """
    total = Summary(by_outcome={}, by_cause={})
    reusable_prompt = reusable_cached = told = untold = 0
    for turn in turns:
        total.turns += 1
        total.failed += turn.failed
        total.by_outcome[turn.outcome] = total.by_outcome.get(turn.outcome, 0) + 1
        if turn.cause is not None:
            total.by_cause[turn.cause] = total.by_cause.get(turn.cause, 0) + 1
        if turn.outcome == "arrival-rejection" or turn.child_of is not None:
            continue
        total.n_prompt += turn.n_prompt or 0
        total.n_cached += turn.n_cached or 0
        total.n_processed += turn.n_processed or 0
        total.n_lost += turn.n_lost or 0
        total.lost_ms += turn.lost_ms or 0.0
        if turn.outcome == "not-completion":
            continue
        untold += turn.n_cached is None
        if turn.n_prompt and turn.n_cached is not None:
            told += 1
            reusable_prompt += turn.n_prompt
            reusable_cached += turn.n_cached
    total.by_outcome = dict(sorted(total.by_outcome.items(), key=lambda kv: (-kv[1], kv[0])))
    total.by_cause = dict(sorted(total.by_cause.items(), key=lambda kv: (-kv[1], kv[0])))
    total.lost_ms = round(total.lost_ms, 3)
    total.reuse = round(reusable_cached / reusable_prompt, 6) if reusable_prompt and told >= untold else None
    return total
