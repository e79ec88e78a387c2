"""Where user messages begin, as far as the cuts of the prompt's batches show it."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from ckptlog.server.rules import rules_for
from ckptlog.timeline.batches import not_full
from ckptlog.timeline.model import Run, Turn

#: fewer tokens than this between two places are not worth looking for a message in between
FEW_TOKENS = 64
#: batch sizes that people choose are multiples of the one and at most the other
SIZE_UNIT, LARGEST_SIZE = 16, 8192


def _may_be_a_size(n: int) -> bool:
    return n % SIZE_UNIT == 0 and n <= LARGEST_SIZE


def batch_missing(run: Run, turn: Turn) -> bool:
    """Is the line of a batch not in the log: a gap of more than one, or a checkpoint made where none begins?

    (formats: policy, section 3: a checkpoint is made at the start of a batch)
    """
    starts, size = turn.batch_starts, run.n_batch
    if run.build_min >= 9306 and any(c.n_tokens not in starts for c in turn.created):
        return True
    return size is not None and any(start - before > size for before, start in pairwise(starts))


def user_starts(run: Run, turn: Turn) -> tuple[list[int], bool]:
    """Batch starts that are neither where reuse ended, nor a full batch later, nor near the prompt's end.

    From b9310 on such a cut is the start of a user message (formats: policy, section 3). Also says whether the
    first of them is sure to be the first.
    """
    starts, n_prompt = turn.batch_starts, turn.n_prompt
    if n_prompt is None or len(starts) < 2 or run.build_min < 9306:
        # (where the build is not known yet, one of them may be the start of a message all the same)
        return [], n_prompt is not None and len(starts) < 2
    n_batch, n_ubatch = run.n_batch, run.n_ubatch
    created = {checkpoint.n_tokens for checkpoint in turn.created}
    if n_batch is None or n_ubatch is None:
        # the log begins behind the lines that print them: what could be a full batch, or near the end, proves nothing
        open_starts: list[int] = []
        found: list[int] = []
        for i in range(1, len(starts)):
            before, start = starts[i - 1], starts[i]
            if start == n_prompt - 4:
                continue
            left = n_prompt - start
            size = _may_be_a_size(start - before) or _may_be_a_size(left - 4) or _may_be_a_size(left)
            foreign = turn.n_alone is not None and i > turn.n_alone and start not in created
            (open_starts if size or foreign else found).append(start)
        return found, not open_starts or (bool(found) and open_starts[0] > found[0])
    tail = {n_prompt - 4, n_prompt - min(n_batch, 4 + n_ubatch), n_prompt - n_batch}
    found, open_starts = [], []
    for_checkpoints = _cuts(run.build_min, run.build_max) == {"useful"}
    for i in range(1, len(starts)):
        before, start = starts[i - 1], starts[i]
        if start - before == n_batch or start in tail:
            continue
        if turn.n_alone is None or i <= turn.n_alone or not_full(turn, i, n_batch):
            # (the one behind the first checkpoint of an empty list is cut too, and makes none: policy, section 3)
            found.append(start)
            continue
        made = start in created
        # other slots, or an image, may have cut the batch: only a checkpoint tells that a message begins there
        n_end = starts[i + 1] if i + 1 < len(starts) else n_prompt
        near_end = n_prompt < n_end + n_ubatch
        if made and not near_end:
            found.append(start)
        elif made or not for_checkpoints:
            open_starts.append(start)
    return found, not open_starts or (bool(found) and open_starts[0] > found[0])


def hidden_between(run: Run, turn: Turn, found: list[int]) -> list[tuple[int, int]]:
    """Between which tokens of the turn's prompt user messages may begin that the log does not show.

    Where a cut is made only for a checkpoint, a start within the spacing behind the newest one is not cut, unless it is
    the last one. Into an empty list the first one is cut, and so is the next one: the list is still empty when the
    batch behind the first is filled (formats: policy, section 3).
    """
    starts, spacing = turn.batch_starts, run.checkpoints_min_step
    if not starts or turn.n_prompt is None or turn.n_prompt - starts[0] <= FEW_TOKENS:
        return []
    if spacing == 0 or "useful" not in _cuts(run.build_min, run.build_max):
        return []
    gone = set(map(id, turn.invalidated))
    listed = [c.n_tokens for c in turn.before or () if id(c) not in gone]
    end = found[-1] if found and _is_last(run, turn, found[-1], listed) else turn.n_prompt
    created = {c.n_tokens for c in turn.created}
    known = turn.before_known
    newest = listed[-1] if listed else None
    hidden: list[tuple[int, int]] = []
    for low, high in pairwise([*(start for start in starts if start < end), end]):
        if newest is not None or not known:
            reach = high if newest is None or spacing is None or not known else min(high, newest + spacing)
            if hidden and hidden[-1][1] == low < reach:
                hidden[-1] = (hidden[-1][0], reach)
            elif low < reach:
                hidden.append((low, reach))
        if low in created:
            newest, known = low, True
    return [(low, high) for low, high in hidden if high - low > FEW_TOKENS]


def _is_last(run: Run, turn: Turn, start: int, listed: list[int]) -> bool:
    """Is it the start of the prompt's last user message: cut although the newest checkpoint is no further away than
    the spacing?"""
    spacing = run.checkpoints_min_step
    if spacing is None:
        return False
    before = max([at for at in turn.batch_starts if at < start], default=0)
    newest = [*listed, *[c.n_tokens for c in turn.created if c.n_tokens < before]]
    return bool(newest) and start <= newest[-1] + spacing


@cache
def _cuts(build_min: int, build_max: int | None) -> frozenset[str]:
    """At which starts of user messages builds of the bracket may cut: where that makes a checkpoint (``useful``), ...
    (formats: policy, section 3)."""
    return frozenset(rules.user_cuts for rules in rules_for(build_min or None, build_max))
