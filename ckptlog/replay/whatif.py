"""The result of a what-if as records: what ``ckptlog whatif --format json`` prints.

Token counts are integers, times milliseconds at the turn's own prompt speed, sizes MiB of host RAM.
A figure that hangs on something the log does not show is null, with a range beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ckptlog.errors import NothingToJudge, UsageError
from ckptlog.records import SCHEMA, SourceRecord, Tool, TurnRecord
from ckptlog.replay.follow import Followed, follow_all, is_judged
from ckptlog.replay.from_timeline import NotReplayable, run_from_timeline
from ckptlog.replay.inputs import Turn
from ckptlog.replay.loss import is_costly_loss, is_costly_turn
from ckptlog.replay.predict import Prediction, predict
from ckptlog.replay.sweep import Alternatives, Together, Totals, ms_per_token, ram_mib, sweep
from ckptlog.replay.verdicts import Verdicts
from ckptlog.server.builds import flag_exists
from ckptlog.server.policy import Settings
from ckptlog.server.rules import Rules, rules_at
from ckptlog.timeline import model

#: of builds that the log leaves open, so many are replayed
BUILDS_TRIED = 3
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Flags:
    """What to change; None leaves what the log shows."""

    ctx_checkpoints: int | None = None
    checkpoint_min_step: int | None = None
    swa_full: bool = False
    build: int | None = None

    def __bool__(self) -> bool:
        return self != Flags()


class WhatIfTurn(msgspec.Struct):
    """One turn, as it was and as it would have been. ``cause``: of a turn that stays a costly re-prefill,
    and of one that was."""

    run: int
    slot: int
    task: int
    n_prompt: int
    n_common: int | None
    n_cached: int | None
    n_cached_whatif: int | None
    n_cached_whatif_range: Range | None
    n_saved: int | None
    ms_saved: float | None
    cause: str | None
    #: a costly re-prefill now; and under the other flags (null: the range leaves it open)
    costly: bool = False
    costly_whatif: bool | None = None
    #: resumed from this checkpoint (n_tokens)
    restored: int | None = None


class WhatIfSummary(msgspec.Struct):
    """``n_saved``/``ms_saved``: over the turns whose outcome is certain; ``n_open`` are not, and
    ``n_saved_range`` bounds the sum over all. ``ram_mib``: the most the checkpoints of all slots held."""

    n_saved: int
    ms_saved: float
    ram_mib: float | None
    ram_mib_now: float | None = None
    n_open: int = 0
    n_saved_range: Range | None = None
    #: costly re-prefills then (of ``n_costly_open`` the range leaves it open) and now
    n_costly: int = 0
    n_costly_open: int = 0
    n_costly_now: int = 0


class Parting(msgspec.Struct):
    """A turn that the model does not reproduce under the log's own flags."""

    run: int
    slot: int
    task: int
    n_cached: int | None
    #: null: the model could not go on (its sliding-window cache was full)
    n_cached_model: int | None


class Reproduced(msgspec.Struct):
    """The licence of the what-if: ``right`` of the ``turns`` that can be judged came out as in the log."""

    turns: int
    right: int
    partings: list[Parting] = []

    @property
    def doubtful(self) -> bool:
        return self.right < self.turns or not self.turns


class Skipped(msgspec.Struct):
    """A run that can't be replayed, and why."""

    run: int
    why: str


class SettingSummary(msgspec.Struct):
    """One setting of a sweep, added up over the runs."""

    flags: dict[str, int | bool | str]
    summary: WhatIfSummary


class Recommended(msgspec.Struct):
    """``cheapest``: the least RAM that reuses at least 99 % of what the best setting reuses;
    ``saving_all``: the least RAM that leaves no costly re-prefill; ``count_alone``: the least count that
    leaves none at the log's own spacing (what ``diagnose`` names). Null where none is better than now."""

    cheapest: dict[str, int | bool | str] | None
    saving_all: dict[str, int | bool | str] | None
    helps: bool = False
    count_alone: dict[str, int | bool | str] | None = None


class WhatIf(msgspec.Struct, omit_defaults=True):
    """The whole answer; with flags ``flags``/``turns``/``summary``, without a sweep's ``settings``."""

    schema: int
    tool: Tool
    sources: list[SourceRecord]
    reproduced: Reproduced
    flags: dict[str, int | bool | str]
    turns: list[WhatIfTurn]
    summary: WhatIfSummary
    settings: list[SettingSummary] | None = None
    recommended: Recommended | None = None
    skipped: list[Skipped] = []
    #: sentences about flags that do something else than one might think here
    notes: list[str] = []
    #: what else went wrong, which no checkpoint mends: turns by outcome (failures of other kinds, errors)
    elsewhere: dict[str, int] = {}


@dataclass(slots=True)
class Replayed:
    """One run, followed under every set of rules that fits the log equally well, newest first; and what the
    first of them says under the log's own flags."""

    run: model.Run
    followed: list[Followed]
    own: Prediction

    @property
    def first(self) -> Followed:
        return self.followed[0]


def replay_runs(runs: Sequence[model.Run]) -> tuple[list[Replayed], list[Skipped]]:
    """Follow every run that has turns; those that can't be replayed come with the reason."""
    found, skipped = [], []
    for run in runs:
        if not run.turns:
            continue
        try:
            converted = run_from_timeline(run)
        except NotReplayable as error:
            skipped.append(Skipped(run.no, str(error)))
            continue
        if converted.turns:
            followed = follow_all(converted)[:BUILDS_TRIED]
            found.append(Replayed(run, followed, predict(followed[0], converted.settings, bounds=False)))
        else:
            skipped.append(Skipped(run.no, "no prompt was processed in it"))
    return found, skipped


def whatif(runs: Sequence[model.Run], flags: Flags, verdicts: Verdicts) -> WhatIf:
    """Replay all runs under ``flags``; without any, sweep counts and spacings and show the cheapest.
    ``verdicts``: of the log that the runs are of.

    NothingToJudge if no run can be replayed; UsageError for a flag that the build does not have.
    """
    return whatif_of(replay_runs(runs), flags, verdicts)


def whatif_of(
    runs: tuple[Sequence[Replayed], list[Skipped]], flags: Flags, verdicts: Verdicts
) -> WhatIf:
    """As ``whatif``, of runs that ``replay_runs`` gave: for who asks for one setting after the other."""
    replayed, skipped = runs
    if not replayed:
        why = skipped[0].why if skipped else "no log holds a turn"
        raise NothingToJudge(f"nothing can be replayed: {why}")
    answer = WhatIf(
        SCHEMA,
        verdicts.tool,
        verdicts.sources,
        _reproduced(replayed),
        _flag_names(flags),
        [],
        WhatIfSummary(0, 0.0, None),
    )
    answer.skipped = skipped
    answer.elsewhere = verdicts.elsewhere
    if flags:
        for item in replayed:
            _check(item, flags)
        answer.notes = _notes(replayed, flags)
        chosen = [_settings(item.first, flags) for item in replayed]
    else:
        chosen = _swept(replayed, answer)
    summaries = []
    for item, settings in zip(replayed, chosen, strict=True):
        turns, summary = _turns(item, settings, flags.build, verdicts)
        answer.turns += turns
        summaries.append(summary)
    answer.summary = _sum(summaries)
    return answer


def _reproduced(replayed: Sequence[Replayed]) -> Reproduced:
    partings: list[Parting] = []
    for item in replayed:
        parted: dict[int, int | None] = {id(m.turn): m.n_cached for m in item.first.mismatches}
        for predicted in item.own.turns:
            turn = predicted.turn
            if not predicted.as_logged and is_judged(turn, predicted.n_common):
                parted.setdefault(id(turn), predicted.likely)
            if id(turn) in parted:
                partings.append(Parting(item.run.no, turn.slot, turn.task, turn.n_cached, parted[id(turn)]))
    judged = sum(item.first.n_judged for item in replayed)
    return Reproduced(judged, judged - len(partings), partings[:20])


def _flag_names(flags: Flags) -> dict[str, int | bool | str]:
    found: dict[str, int | bool | str] = {}
    if flags.ctx_checkpoints is not None:
        found["--ctx-checkpoints"] = flags.ctx_checkpoints
    if flags.checkpoint_min_step is not None:
        found["--checkpoint-min-step"] = flags.checkpoint_min_step
    if flags.swa_full:
        found["--swa-full"] = True
    if flags.build is not None:
        found["build"] = f"b{flags.build}"
    return found


def _check(item: Replayed, flags: Flags) -> None:
    low, high = item.run.build_min or None, item.run.build_max
    if flags.build is not None:
        low = high = flags.build
    if flags.checkpoint_min_step is not None and flag_exists("--checkpoint-min-step", low, high) is False:
        raise UsageError(
            "--checkpoint-min-step is not known to the build this is about (b9310 and later have it; "
            "--build b11549 tries such a one)"
        )
    for name, value in (
        ("--ctx-checkpoints", flags.ctx_checkpoints),
        ("--checkpoint-min-step", flags.checkpoint_min_step),
    ):
        if value is not None and value < 0:
            raise UsageError(f"{name} can't be negative")


def _notes(replayed: Sequence[Replayed], flags: Flags) -> list[str]:
    notes = []
    memories = {item.first.run.settings.memory for item in replayed}
    if flags.swa_full and memories != {"swa"}:
        kinds = " and ".join(sorted(memories - {"swa"}))
        notes.append(f"--swa-full does nothing for {kinds} memory, which has no sliding window.")
    if flags.swa_full and "swa" in memories:
        notes.append(
            "With --swa-full no checkpoints are made; its price is the whole context's memory for the "
            "sliding-window layers, which is not in the figures here."
        )
    if memories == {"plain"}:
        notes.append("Plain memory can be cut back to any token: it makes no checkpoints and needs none.")
    return notes


def _settings(followed: Followed, flags: Flags) -> Settings:
    """The log's settings with the flags applied; a spacing that the log's build did not have yet gets
    the other build's default."""
    settings = followed.run.settings
    if flags.build is not None:
        settings = _for_build(settings, followed.rules, rules_at(flags.build))
    if flags.ctx_checkpoints is not None:
        settings = replace(settings, max_checkpoints=flags.ctx_checkpoints)
    if flags.checkpoint_min_step is not None:
        settings = replace(settings, min_step=flags.checkpoint_min_step)
    return replace(settings, swa_full=True) if flags.swa_full else settings


def _for_build(settings: Settings, old: Rules, new: Rules) -> Settings:
    def spaced(rules: Rules) -> bool:
        return rules.create in ("last-user", "user-start")

    if spaced(new) and (not spaced(old) or settings.min_step == old.default_min_step):
        settings = replace(settings, min_step=new.default_min_step)
    if settings.max_checkpoints == old.default_max:
        settings = replace(settings, max_checkpoints=new.default_max)
    if settings.every_nt == old.default_every_nt:
        settings = replace(settings, every_nt=new.default_every_nt)
    return settings


def _turns(
    item: Replayed, settings: Settings, build: int | None, verdicts: Verdicts
) -> tuple[list[WhatIfTurn], WhatIfSummary]:
    followed = item.followed if build is None else [replace(f, rules=rules_at(build)) for f in item.followed]
    predictions = [predict(f, settings, f.rules) for f in followed]
    summary = WhatIfSummary(
        0, 0.0, ram_mib(item.first, predictions[0]), ram_mib(item.first, item.own), n_saved_range=(0, 0)
    )
    turns = []
    for at, predicted in enumerate(predictions[0].turns):
        turn = predicted.turn
        if not turn.completion:
            continue
        same = [prediction.turns[at] for prediction in predictions]
        low, high = min(p.low for p in same), max(p.high for p in same)
        if not item.own.turns[at].as_logged:
            # what does not tell what was can't tell what would be
            low, high = 0, predicted.n_common if predicted.n_common is not None else turn.n_prompt
        exact = low if low == high else None
        known = predicted.n_common
        verdict = verdicts.of(item.run.no, turn.slot, turn.task)
        costly_low, costly_high = (_costly(turn, known, n_cached, verdict) for n_cached in (low, high))
        record = WhatIfTurn(
            run=item.run.no,
            slot=turn.slot,
            task=turn.task,
            n_prompt=turn.n_prompt,
            n_common=known,
            n_cached=turn.n_cached,
            n_cached_whatif=exact,
            n_cached_whatif_range=None if exact is not None else (low, high),
            n_saved=None if exact is None or turn.n_cached is None else exact - turn.n_cached,
            ms_saved=None,
            cause=None,
            costly=_costly(turn, known, turn.n_cached, verdict),
            costly_whatif=costly_low if costly_low == costly_high else None,
            restored=predicted.restored if exact is not None else None,
        )
        _add(record, summary, turn.prompt_ms, (low, high))
        if record.costly or record.costly_whatif is not False:
            record.cause = _cause(verdict, settings)
        turns.append(record)
    return turns, summary


#: causes of a loss under the log's own flags that would be another one without any checkpoint
_OF_CHECKPOINTS = frozenset({None, "checkpoint-evicted", "checkpoint-thinned", "checkpoints-sparse"})


def _cause(verdict: TurnRecord | None, settings: Settings) -> str | None:
    """Why a turn is costly under ``settings``: the log's own verdict, unless these flags make none."""
    cause = None if verdict is None else verdict.cause
    makes_none = settings.max_checkpoints == 0 and settings.memory != "plain" and not settings.swa_full
    return "checkpoints-disabled" if makes_none and cause in _OF_CHECKPOINTS else cause


def _costly(turn: Turn, n_common: int | None, n_cached: int | None, verdict: TurnRecord | None) -> bool:
    """Whether reusing ``n_cached`` is a costly re-prefill: measured by what the slot held, and by what the
    server held elsewhere where the log's verdict knows that (no checkpoint brings that back)."""
    if n_common is None or n_cached is None:
        return False
    if is_costly_turn(n_common, n_cached, turn.n_prompt):
        return True
    if verdict is None or verdict.outcome != "checkpoint-reprefill" or verdict.n_known is None:
        return False
    return verdict.severity == "costly" and is_costly_loss(
        verdict.n_known - max(n_common, n_cached), turn.n_prompt
    )


def _add(record: WhatIfTurn, summary: WhatIfSummary, prompt_ms: float | None, bounds: Range) -> None:
    """Add a turn to the sums and give it its time."""
    summary.n_costly_now += record.costly
    summary.n_costly += record.costly_whatif is True
    summary.n_costly_open += record.costly_whatif is None
    summary.n_open += record.n_cached_whatif is None
    if record.n_cached is None or summary.n_saved_range is None:
        return
    low, high = summary.n_saved_range
    summary.n_saved_range = (low + bounds[0] - record.n_cached, high + bounds[1] - record.n_cached)
    if record.n_saved is None:
        return
    summary.n_saved += record.n_saved
    speed = ms_per_token(prompt_ms, record.n_prompt, record.n_cached)
    if speed is not None:
        record.ms_saved = round(record.n_saved * speed, 3)
        summary.ms_saved += record.ms_saved


def _sum(summaries: Sequence[WhatIfSummary]) -> WhatIfSummary:
    total = WhatIfSummary(0, 0.0, None, None, n_saved_range=(0, 0))
    for summary in summaries:
        total.n_saved += summary.n_saved
        total.ms_saved = round(total.ms_saved + summary.ms_saved, 3)
        total.n_open += summary.n_open
        total.n_costly += summary.n_costly
        total.n_costly_open += summary.n_costly_open
        total.n_costly_now += summary.n_costly_now
        total.ram_mib = _larger(total.ram_mib, summary.ram_mib)
        total.ram_mib_now = _larger(total.ram_mib_now, summary.ram_mib_now)
        if total.n_saved_range is not None and summary.n_saved_range is not None:
            low, high = total.n_saved_range
            total.n_saved_range = (low + summary.n_saved_range[0], high + summary.n_saved_range[1])
    return total


def _larger(one: float | None, other: float | None) -> float | None:
    """Runs follow each other, so their RAM does not add up."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _swept(replayed: Sequence[Replayed], answer: WhatIf) -> list[Settings]:
    """Sweep over all runs together, and give the setting to show for each run: what saves every costly
    turn, else what is nearly as good as the best, else the log's own."""
    parts = [Alternatives(item.first) for item in replayed]
    found = sweep(*parts)
    now = found.now
    helps = found.helps or bool(now.n_costly and found.saving_all is not None)
    wanted = found.saving_all if now.n_costly and found.saving_all is not None else found.cheapest
    answer.settings = [
        SettingSummary(_names(total, now), _summary(total, now, found.certain.get(total.settings)))
        for total in found.tried
    ]
    answer.recommended = Recommended(
        None if not helps or found.cheapest is now else _names(found.cheapest, now),
        # (where nothing is costly none is better than the log's own, though fewer may do as far as it shows)
        None if found.saving_all is None or not now.n_costly else _names(found.saving_all, now),
        helps,
        None if found.count_alone is None else _names(found.count_alone, now),
    )
    answer.flags = _names(wanted, now) if helps else {}
    if not helps:
        return [part.own for part in parts]
    together = Together(parts)
    return [together.of(part, wanted.settings) for part in parts]


def _names(total: Totals, now: Totals) -> dict[str, int | bool | str]:
    """A setting as flags; the spacing only where it differs from the log's own."""
    found: dict[str, int | bool | str] = {"--ctx-checkpoints": total.settings.max_checkpoints}
    if total.settings.min_step != now.settings.min_step:
        found["--checkpoint-min-step"] = total.settings.min_step
    if total.settings.every_nt != now.settings.every_nt:
        found["--checkpoint-every-n-tokens"] = total.settings.every_nt
    return found


def _summary(total: Totals, now: Totals, certain: Totals | None) -> WhatIfSummary:
    summary = WhatIfSummary(
        total.n_saved,
        round(total.ms_saved, 3),
        total.ram_mib,
        now.ram_mib,
        n_costly=total.n_costly,
        n_costly_now=now.n_costly,
    )
    if certain is not None and certain.n_saved < total.n_saved:
        summary.n_open = certain.n_open or 0
        summary.n_saved_range = (certain.n_saved, certain.n_saved_most)
        summary.n_costly_open = max(0, certain.n_costly - total.n_costly)
    return summary
