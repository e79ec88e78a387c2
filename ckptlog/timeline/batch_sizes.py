"""The sizes of batches, -b and -ub, where the log begins behind the lines that print them: what the cuts prove.

A prompt is cut at T - min(n_batch, 4 + n_ubatch), and the batches from there on make a checkpoint, as does every batch
that ends within n_ubatch of the end (formats: policy, section 3). So the one distance from the end at which every
prompt that is long enough is cut, and beyond which a batch made none, tells the sizes.
"""

from __future__ import annotations

from itertools import pairwise

from ckptlog.server.rules import rules_for
from ckptlog.timeline.model import Cuts, Run, Turn

#: sizes that are taken for one are multiples of this
UNIT = 32
#: the cut that every finished prompt has, so far before its end
LAST_CUT = 4
#: so many full batches alike are no coincidence
ALIKE = 2


def learn_sizes(run: Run, turn: Turn) -> None:
    """Take in a turn whose figures are settled; sets ``n_batch`` and ``n_ubatch`` of the run once they are certain."""
    if (run.n_batch is not None and run.n_ubatch is not None) or not _tells(run, turn):
        return
    if run.cuts is None:
        run.cuts = Cuts()
    _take_in(run.cuts, turn)
    _conclude(run, run.cuts)


def _tells(run: Run, turn: Turn) -> bool:
    """Was the whole prompt evaluated, its batches cut by nothing else, under rules that make a checkpoint near its end?"""
    n_prompt, starts = turn.n_prompt, turn.batch_starts
    done = turn.prompt_done or turn.sampled or turn.n_generated is not None
    if n_prompt is None or not done or turn.n_alone is not None or turn.cut_by_media or turn.shifts or not turn.created:
        return False
    if not all(rules.near_end_ignores_step for rules in rules_for(run.build_min or None, run.build_max)):
        return False
    made = {c.n_tokens for c in turn.created}
    return n_prompt - LAST_CUT in starts and made.issubset(starts) and n_prompt - LAST_CUT in made


def _take_in(cuts: Cuts, turn: Turn) -> None:
    n_prompt, starts = turn.n_prompt or 0, turn.batch_starts
    made = {c.n_tokens for c in turn.created}
    reach = n_prompt - starts[0]
    here = {n_prompt - start for start in starts[1:] if start in made} - {LAST_CUT}
    if cuts.distances is None:
        cuts.distances = here
    else:
        both = {d for d in cuts.distances if d in here or d >= reach}
        cuts.distances = both | {d for d in here if d >= cuts.reach}
    cuts.reach = max(cuts.reach, reach)
    empty = turn.before_known and len(turn.before or ()) == len(turn.invalidated)
    for start, end in pairwise([*starts, n_prompt]):
        cuts.largest = max(cuts.largest, end - start)
        if start in made:
            empty = False
        elif start > 0:
            cuts.most = min(cuts.most or n_prompt, n_prompt - end)
        if empty and end not in made and end < n_prompt - LAST_CUT:
            # (into an empty list a user message that begins there would have made one)
            cuts.full[end - start] = cuts.full.get(end - start, 0) + 1


def _conclude(run: Run, cuts: Cuts) -> None:
    if cuts.most is None or cuts.distances is None or cuts.reach <= cuts.most + LAST_CUT:
        return
    found = [d for d in cuts.distances if d <= cuts.most + LAST_CUT and (d % UNIT == 0 or (d - LAST_CUT) % UNIT == 0)]
    if len(found) != 1:
        return
    distance = found[0]
    if distance % UNIT == 0:
        # n_batch was the smaller of the two: n_ubatch is no larger than it
        if cuts.largest <= distance:
            run.n_batch = run.n_ubatch = distance
        return
    run.n_ubatch = distance - LAST_CUT
    if cuts.full.get(cuts.largest, 0) >= ALIKE and cuts.largest >= distance:
        run.n_batch = cuts.largest
