"""What to say first of a log in which nothing failed, and what to do where that can be said."""

from __future__ import annotations

from typing import NamedTuple

from ckptlog.report.digest import Digest
from ckptlog.report.text_findings import (
    PARTED_ADVICE,
    SLOW_ADVICE,
    not_answered_words,
    parted_words,
    slow_words,
    which_turns,
)
from ckptlog.report.words import plural


class Healthy(NamedTuple):
    """One sentence on the whole log, as it is worst; texts may hold what a log says."""

    first: str
    #: there is nothing at all to be told
    fine: bool = False
    #: who left without an answer is to be told with it
    with_cancelled: bool = False
    todo: str = ""


def healthy(what: Digest) -> Healthy:
    """Of a log without a finding, whose prompts' beginnings did not change."""
    turns = plural(len(what.turns), "turn")
    if what.selection is not None:
        turns = f"the {len(what.turns):,} of {plural(what.selection.total, 'turn')} selected"
    if what.swapped:
        return Healthy(f"Nothing failed in {turns}, but answers were mixed up.")
    if what.unjudged:
        return Healthy(f"Nothing wrong was found, but of {plural(len(what.unjudged), 'turn')} the log does not tell.")
    if what.process_ended:
        return Healthy(f"Nothing failed in {turns}, but a server went down while it was idle.")
    left = bool(what.cancelled)
    if what.parted:
        return Healthy(f"Slow, for what was held was rewritten: {parted_words(what)}", False, left, PARTED_ADVICE)
    if what.slow:
        # (perhaps somebody left because of that)
        return Healthy(f"Slow, but not the cache's fault: {slow_words(what)}", False, left, SLOW_ADVICE)
    if what.unshared:
        return Healthy(f"Nothing failed in {turns}, but little was reused.")
    if what.slept:
        return Healthy(f"Nothing failed in {turns}, but the server slept.")
    if left:
        fixes = what.cancelled[0].turn.fixes
        return Healthy(f"Nothing failed in {turns}, but {not_answered_words(what)}.", False, True, fixes[0].text if fixes else "")
    unended = f"; {which_turns(what.unended)} had not ended where the log ends" if what.unended else ""
    if what.failed_outside:
        return Healthy(f"Nothing failed in {turns}{unended}, but something outside of them did.")
    return Healthy(f"Nothing went wrong in {turns}{unended}.", fine=True)
