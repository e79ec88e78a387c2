"""Numbers in fixes come from a replay of the log under other settings, not from a rule of thumb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ckptlog.records import Fix, TurnRecord
from ckptlog.replay.follow import Followed, follow
from ckptlog.replay.from_timeline import NotReplayable, run_from_timeline
from ckptlog.replay.sweep import Alternatives, Needed, is_costly
from ckptlog.timeline.model import Run
from ckptlog.verdict import fixes

#: causes whose fix is a number
NUMBERED = frozenset({"checkpoint-evicted", "checkpoint-thinned", "checkpoints-sparse"})
#: turns replayed for one report; a longer log has its costliest runs replayed, `ckptlog whatif` all
MOST_TURNS = 2000
#: and so many runs at most (a log of many short runs)
MOST_RUNS = 8
#: the spacing at which thinning keeps the oldest checkpoint of a stretch for long
WIDE_STEP = 8192


def put_numbers(runs: Sequence[Run], turns: Sequence[TurnRecord]) -> None:
    """Replace the estimated fixes of turns by what a replay says they need; in place."""
    number_runs(runs, turns, runs_to_number(turns))


def runs_to_number(turns: Sequence[TurnRecord]) -> list[int]:
    """The numbers of the runs that are replayed for a report: the costliest, as far as the budget goes."""
    length = Counter(turn.run for turn in turns)
    cost: Counter[int] = Counter()
    for turn in turns:
        if wants_number(turn):
            cost[turn.run] += turn.n_lost or 0
    budget = MOST_TURNS
    chosen: list[int] = []
    for no in sorted(cost, key=lambda n: (-cost[n], n))[:MOST_RUNS]:
        if length[no] <= budget:
            budget -= length[no]
            chosen.append(no)
    return chosen


def number_runs(runs: Sequence[Run], turns: Sequence[TurnRecord], chosen: Collection[int]) -> None:
    """As ``put_numbers``, for the runs of these numbers; ``runs`` must have their turns still."""
    wanted: dict[int, list[TurnRecord]] = {no: [] for no in chosen}
    for turn in turns:
        if turn.run in wanted and wants_number(turn):
            wanted[turn.run].append(turn)
    for run in runs:
        if run.turns and wanted.get(run.no):
            _number_run(run, wanted[run.no])


def wants_number(turn: TurnRecord) -> bool:
    """Is a number missing from the turn's fixes that a replay could give?"""
    return turn.cause in NUMBERED and turn.failed


def _number_run(run: Run, failed: list[TurnRecord]) -> None:
    try:
        followed = follow(run_from_timeline(run))
    except NotReplayable:
        return
    alternatives = Alternatives(followed)
    index = {(turn.slot, turn.task): i for i, turn in enumerate(followed.run.turns)}
    wrong = {(m.turn.slot, m.turn.task) for m in followed.mismatches}
    own = alternatives.under(alternatives.own).turns
    for record in failed:
        key = (record.slot, record.task)
        if record.slot is None or record.task is None or key not in index or key in wrong:
            continue
        if not own[index[record.slot, record.task]].as_logged:
            continue  # what does not tell what was can't tell what would be
        found = _fixes(run, alternatives, followed, index[record.slot, record.task], record)
        if found is not None:
            record.fixes = fixes.listed(found, run)


def _fixes(
    run: Run, alternatives: Alternatives, followed: Followed, index: int, record: TurnRecord
) -> list[Fix] | None:
    kept = [f for f in record.fixes if f.name not in ("raise-checkpoint-count", "smaller-spacing")]
    count = _worth(alternatives.needed_count(index), record)
    step = _worth(alternatives.needed_step(index), record)
    found: list[tuple[float, Fix]] = []
    wide = _worth(_wide(alternatives, index), record) if count is not None else None
    if wide is not None:
        found.append((_price(wide), _both(run, wide)))
    if count is not None:
        found.append((_price(count), _count(run, count, record)))
    if step is not None:
        found.append((_price(step), _step(run, step)))
    both = _worth(alternatives.needed_both(index), record) if not found else None
    if both is not None:
        found.append((_price(both), _closer_and_more(run, both)))
    if not found:
        if record.cause == "checkpoints-sparse":
            # the replay knows only the message starts that the log shows; there may be more behind a large spacing
            return None
        if record.checkpoints is None or alternatives.needed_count(index) is not None:
            return None
        text = "No count of checkpoints alone saves this turn: replayed on this log up to 64."
        return [Fix("no-count-helps", text), *kept]
    found.sort(key=lambda priced: priced[0])  # cheapest first; of several as cheap, in the order above
    return [*(fix for _, fix in found), *kept]


def _price(needed: Needed) -> float:
    """Host RAM, or the count where the log shows no size."""
    return needed.ram_mib if needed.ram_mib is not None else float(needed.settings.max_checkpoints)


def _worth(needed: Needed | None, record: TurnRecord) -> Needed | None:
    """Only a setting under which the turn really resumes later than it did (at -lv 3 a replay knows little)."""
    if needed is None or needed.n_cached <= (record.n_cached or 0) + (record.n_lost or 0) // 2:
        return None
    return needed


def _wide(alternatives: Alternatives, index: int) -> Needed | None:
    """A smaller count that does it together with the wide spacing, where thinning then keeps the oldest."""
    own = alternatives.own
    if own.min_step >= WIDE_STEP or alternatives.rules.create not in ("last-user", "user-start"):
        return None
    if alternatives.rules.thin == "never":
        return None
    full = alternatives.needed_count(index)
    for count in (3, 4, 6, 8):
        if full is None or count >= full.settings.max_checkpoints:
            return None
        settings = replace(own, max_checkpoints=count, min_step=WIDE_STEP)
        if not is_costly(alternatives.under(settings).turns[index]):
            return alternatives.needed_under(settings, index)
    return None


def _ram(needed: Needed) -> str:
    if needed.ram_mib is None:
        return "host RAM for the checkpoints, no VRAM"
    amount = f"{needed.ram_mib:,.0f}" if needed.ram_mib >= 10 else f"{needed.ram_mib:.2f}"
    return f"{amount} MiB of host RAM for checkpoints in all, no VRAM"


def _count(run: Run, needed: Needed, record: TurnRecord) -> Fix:
    n = needed.settings.max_checkpoints
    text = f"Replayed on this log, this turn then resumes at token {needed.n_cached:,} ({_ram(needed)}).{_thumb(needed, record)}"
    return Fix("raise-checkpoint-count", text, [fixes.count_flag(run), str(n)])


def _thumb(needed: Needed, record: TurnRecord) -> str:
    """The rule of thumb beside the number, where it says something else."""
    step = needed.settings.min_step
    if step <= 0:
        return ' The rule of thumb "length / min-step + 1" is undefined at a spacing of 0.'
    length = record.n_prompt or 0
    rule = length // step + 1
    n = needed.settings.max_checkpoints
    if rule == n:
        return ""
    return f' (The rule of thumb "length / min-step + 1" would say {rule}.)'


def _both(run: Run, needed: Needed) -> Fix:
    n = needed.settings.max_checkpoints
    text = (
        f"With the wide spacing the oldest checkpoint of a stretch is kept: replayed, {n} are then enough, and this "
        f"turn resumes at token {needed.n_cached:,} ({_ram(needed)})."
    )
    return Fix(
        "wider-spacing", text, [fixes.count_flag(run), str(n), "--checkpoint-min-step", str(needed.settings.min_step)]
    )


def _closer_and_more(run: Run, needed: Needed) -> Fix:
    flag = fixes.spacing_flag(run) or "--checkpoint-min-step"
    n = needed.settings.max_checkpoints
    text = (
        "It takes both, checkpoints that lie closer together and room for them: replayed on this log, this turn then "
        f"resumes at token {needed.n_cached:,} ({_ram(needed)})."
    )
    return Fix("smaller-spacing", text, [flag, str(needed.settings.min_step), fixes.count_flag(run), str(n)])


def _step(run: Run, needed: Needed) -> Fix:
    flag = fixes.spacing_flag(run) or "--checkpoint-min-step"
    text = f"Replayed on this log, this turn then resumes at token {needed.n_cached:,} ({_ram(needed)})."
    return Fix("smaller-spacing", text, [flag, str(needed.settings.min_step)])
