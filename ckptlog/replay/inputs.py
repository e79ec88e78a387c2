"""What the replay is fed: one run of the server as settings plus steps in the order of the log.

A turn is taken as a whole at the place where it starts; two turns that ran side by side on different
slots only meet in their batches, and those are in ``batch_starts``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from ckptlog.server.policy import Settings
from ckptlog.server.rules import Rules

OpKind = Literal[
    "checked", "restored", "forced", "invalidated", "thinned", "evicted", "superseded", "created"
]


@dataclass(frozen=True, slots=True, order=True)
class Op:
    """One thing that happened to the list: ``n_tokens`` of the checkpoint (for "checked": how many
    were looked at; for "forced": 0)."""

    kind: OpKind
    n_tokens: int


@dataclass(frozen=True, slots=True)
class ShiftStep:
    """A context shift while answering, when the slot held ``at`` tokens."""

    at: int
    n_keep: int
    n_discard: int


@dataclass(slots=True)
class Turn:
    """One task on one slot that had its prompt (at least partly) processed.

    ``n_common``: tokens shared with what the slot holds after any cache load; None if the log does not
    say, then ``n_common_range`` may bound it. ``n_after``: tokens in the slot when it was released.
    ``batch_starts``: where its batches began, the first being the reuse point; None if the log's level
    hides them. ``shared``: another slot was at work, so a cut may be its doing. ``media_starts``: those of
    its batches that began with an image. ``ops``: what the log shows of the list, None if hidden. ``n_ended``: tokens processed when a client left in mid-prompt.
    ``list_known``: whether the slot's checkpoints are known when it begins (a log may begin in mid-run).
    """

    slot: int
    task: int
    n_prompt: int
    n_common: int | None
    n_common_range: tuple[int, int] | None = None
    n_cached: int | None = None
    n_after: int | None = None
    cache_prompt: bool = True
    completion: bool = True
    chat: bool | None = None
    batch_starts: tuple[int, ...] | None = None
    shared: bool = False
    media_starts: tuple[int, ...] = ()
    ops: tuple[Op, ...] | None = None
    shifts: tuple[ShiftStep, ...] = ()
    n_ended: int | None = None
    copies_to: tuple[int, ...] = ()
    list_known: bool = True
    prompt_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Clear:
    """The slot was emptied."""

    slot: int


@dataclass(frozen=True, slots=True)
class Save:
    """The slot was put into the RAM prompt cache or a slot file, under a key of the reader's choice."""

    slot: int
    key: Hashable


@dataclass(frozen=True, slots=True)
class Load:
    """The slot's content was replaced from the prompt cache (``file`` False) or a slot file."""

    slot: int
    key: Hashable
    file: bool = False


@dataclass(frozen=True, slots=True)
class Adopt:
    """The slot is found with content whose origin the log does not show: ``n_tokens`` and the
    checkpoints as far as they are known, (n_tokens, pos_min, pos_max) each, oldest first."""

    slot: int
    n_tokens: int
    checkpoints: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A child of a request with n > 1: the prompt was copied into the slot, then it answered."""

    slot: int
    task: int
    n_after: int | None


Between = Clear | Save | Load | Adopt | Answer
Step = Turn | Between


@dataclass(slots=True)
class Run:
    """One server process. ``rules``: the sets its build bracket allows, oldest first. ``n_cells``:
    cells of the sliding part, None if not printed; ``unified``: one cache for all slots."""

    settings: Settings
    rules: tuple[Rules, ...]
    n_slots: int = 1
    n_ctx_slot: int | None = None
    n_cells: int | None = None
    unified: bool = False
    #: MiB of one checkpoint (recurrent and hybrid: always the same), and of one cell in one (SWA)
    checkpoint_mib: float | None = None
    cell_mib: float | None = None
    steps: list[Step] = field(default_factory=list)

    @property
    def turns(self) -> list[Turn]:
        """The turns alone."""
        return [step for step in self.steps if isinstance(step, Turn)]
