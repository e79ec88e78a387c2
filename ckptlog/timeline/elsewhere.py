"""What other slots, and entries of the RAM prompt cache, held of a prompt, and how much of it could be resumed there.

A common prefix is worth nothing by itself to memory that can't be rewound: it takes a checkpoint within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ckptlog.timeline.cache import CacheEntry
from ckptlog.timeline.model import Checkpoint, Held, Run, Selection
from ckptlog.timeline.slot import SlotState

#: of what has fewer tokens in common nothing worth telling is lost, resumed or not (most prompts share a template's head)
_TOO_FEW = 64


def held_by_slot(state: SlotState | None, n_common: int) -> Held | None:
    """What a slot that is compared with a prompt holds of it; null where its checkpoints are not known, or it is next to
    nothing."""
    if n_common < _TOO_FEW or state is None or state.held is None or not state.list_known:
        return None
    return Held(state.held, _furthest(state.checkpoints, n_common), _furthest(state.dead, n_common))


def held_by_entries(entries: list[CacheEntry], rows: Iterable[tuple[Any, ...]], first: int) -> list[Held | None]:
    """The same of saved prompts; ``rows``: what the server compared (length, common prefix, ...), the first of them
    being the one at place ``first``."""
    found: list[Held | None] = []
    for at, (n_tokens, n_common, *_) in enumerate(rows, first):
        entry = entries[at] if n_common >= _TOO_FEW and at < len(entries) else None
        if entry is None or entry.n_tokens != n_tokens or entry.checkpoints is None:
            found.append(None)
        else:
            found.append(Held(n_tokens, _furthest(entry.checkpoints, n_common), _furthest(entry.dead, n_common)))
    return found


def _furthest(checkpoints: Iterable[Checkpoint], n_common: int) -> int:
    furthest = 0
    for checkpoint in checkpoints:
        if furthest < checkpoint.n_tokens <= n_common:
            furthest = checkpoint.n_tokens
    return furthest


class Place(msgspec.Struct, frozen=True):
    """A slot, or a saved prompt of ``saved`` tokens, that holds ``n_common`` tokens of a prompt, and how many of them
    could be resumed from: now, and had no checkpoint been pushed out."""

    n_common: int
    resume: int
    resume_once: int
    slot: int | None = None
    saved: int | None = None


def best_elsewhere(run: Run, selection: Selection, slot: int | None) -> Place | None:
    """The place, of all that the server compared with the prompt but ``slot``, from which most could be resumed (had no
    checkpoint been pushed out); null if it compared none."""
    places = [
        _place(run, n_common, selection.held.get(other), slot=other)
        for other, n_common in selection.slot_lcp.items()
        if other != slot
    ]
    for at, (n_tokens, n_common, _, _) in enumerate(selection.candidates):
        held = selection.held_saved[at] if at < len(selection.held_saved) else None
        places.append(_place(run, n_common, held, saved=n_tokens))
    return max(places, key=lambda place: (place.resume_once, place.n_common), default=None)


def _place(run: Run, n_common: int, held: Held | None, *, slot: int | None = None, saved: int | None = None) -> Place:
    """All that is in common can be resumed from where no checkpoint is needed, or the log does not tell."""
    if held is None or _needs_none(run, held, n_common):
        return Place(n_common, n_common, n_common, slot, saved)
    return Place(n_common, held.resume, max(held.resume, held.resume_once), slot, saved)


def _needs_none(run: Run, held: Held, n_common: int) -> bool:
    if run.memory in ("plain", "unknown") or run.swa_full or n_common >= held.n_tokens:
        return True
    return run.memory == "swa" and _may_reach_back(run, held, n_common)


def _may_reach_back(run: Run, held: Held, n_common: int) -> bool:
    """May the live memory of a sliding window still hold what lies before the place where the prompts part?"""
    return run.swa_cells is None or held.n_tokens - n_common <= run.swa_cells
