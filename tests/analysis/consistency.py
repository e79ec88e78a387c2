"""What must hold of any report, of whatever damaged log."""

from __future__ import annotations

from ckptlog.records import FAILURES, Report

FIGURES = (
    "n_prompt", "n_common", "n_common_slot", "n_known", "n_cached", "n_processed", "n_generated", "n_lost",
)  # fmt: skip


def contradictions(report: Report) -> list[str]:
    """Figures of one report that can't all be true."""
    found = []
    for turn in report.turns:
        where = f"task {turn.task}: "
        numbers = {name: getattr(turn, name) for name in FIGURES}
        found += [f"{where}{name} = {n}" for name, n in numbers.items() if n is not None and n < 0]
        if turn.n_prompt is not None and turn.n_cached is not None:
            if turn.n_cached > turn.n_prompt:
                found.append(f"{where}cached {turn.n_cached} of {turn.n_prompt}")
            finished = turn.prompt_ms is not None and turn.child_of is None
            cut_prompt = turn.variant == "input"
            judged = finished and not cut_prompt and turn.n_processed is not None
            if judged and turn.n_cached + (turn.n_processed or 0) != turn.n_prompt:
                found.append(f"{where}{turn.n_prompt} != {turn.n_cached} + {turn.n_processed}")
        if turn.n_lost is not None and turn.n_lost != max(0, (turn.n_common or 0) - (turn.n_cached or 0)):
            found.append(f"{where}lost {turn.n_lost} of {turn.n_common} - {turn.n_cached}")
        if turn.n_common_range is not None and turn.n_common_range[0] > turn.n_common_range[1]:
            found.append(f"{where}range {turn.n_common_range}")
        if turn.n_common is not None and turn.n_common_range is not None:
            found.append(f"{where}both a common prefix and a range")
        if turn.lines[0] > turn.lines[1] or turn.lines[0] < 1:
            found.append(f"{where}lines {turn.lines}")
        for name, basis in turn.basis.items():
            if numbers.get(name) is None:
                found.append(f"{where}{basis} {name} is null")
        if turn.failed != (turn.outcome in FAILURES and turn.severity != "harmless"):
            found.append(f"{where}failed {turn.failed} as {turn.outcome} {turn.severity}")
        if turn.cause is not None and turn.outcome != "checkpoint-reprefill":
            found.append(f"{where}cause {turn.cause} of {turn.outcome}")
    return found
