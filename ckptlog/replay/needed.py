"""Which flags would have saved a turn, found by replay: the numbers behind "raise it to N"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ckptlog.replay.follow import Followed, follow
from ckptlog.replay.from_timeline import NotReplayable, run_from_timeline
from ckptlog.replay.predict import predict
from ckptlog.replay.sweep import Alternatives, Needed, is_costly, ram_mib
from ckptlog.timeline import model


@dataclass(frozen=True, slots=True)
class NeededFlags:
    """What one turn needs. ``count``/``step``: --ctx-checkpoints / --checkpoint-min-step, None if the
    log's own will do; both None: no flag helps. ``n_cached``: what the turn then reuses; ``ram_mib``
    and ``ram_mib_now``: host RAM of all checkpoints at their fullest, None if the log shows no size.
    ``rule_of_thumb``: length / min step + 1, None at step 0 where it is not defined."""

    count: int | None
    step: int | None
    n_cached: int | None
    ram_mib: float | None
    ram_mib_now: float | None
    rule_of_thumb: int | None

    @property
    def helps(self) -> bool:
        """Whether any flag would have saved the turn."""
        return self.count is not None or self.step is not None

    @property
    def flags(self) -> list[str]:
        """As arguments of the server."""
        found = [] if self.count is None else ["--ctx-checkpoints", str(self.count)]
        return found if self.step is None else [*found, "--checkpoint-min-step", str(self.step)]


def needed_flags(run: model.Run, turns: Iterable[tuple[int, int]]) -> dict[tuple[int, int], NeededFlags]:
    """For each costly turn, given as (slot, task), what would have saved it.

    Empty if the run can't be replayed, or if the replay does not reproduce the log; a turn is left out if
    its common prefix is not known or if the replay finds it not costly.
    """
    wanted = list(turns)
    if not wanted:
        return {}
    try:
        followed = follow(run_from_timeline(run))
    except NotReplayable:
        return {}
    if not followed.reproduced or not followed.n_judged:
        return {}
    alternatives = Alternatives(followed)
    now = ram_mib(followed, predict(followed, followed.run.settings, bounds=False))
    found = {}
    for slot, task in wanted:
        index = followed.index_of(slot, task)
        # what some other slot or a cache entry held is lost in another way; no checkpoint brings it back
        if index is not None and is_costly(alternatives.under(alternatives.own).turns[index]):
            found[slot, task] = _flags(followed, alternatives.needed(index), index, now)
    return found


def _flags(followed: Followed, needed: Needed | None, index: int, now: float | None) -> NeededFlags:
    own = followed.run.settings
    turn = followed.learned[index].turn
    thumb = turn.n_prompt // own.min_step + 1 if own.min_step > 0 else None
    if needed is None:
        return NeededFlags(None, None, None, None, now, thumb)
    settings = needed.settings
    return NeededFlags(
        settings.max_checkpoints if settings.max_checkpoints != own.max_checkpoints else None,
        settings.min_step if settings.min_step != own.min_step else None,
        needed.n_cached,
        needed.ram_mib,
        now,
        thumb,
    )
