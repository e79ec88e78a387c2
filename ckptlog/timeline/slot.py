"""One slot's state between and during turns: what it holds and which checkpoints live in its list."""

from __future__ import annotations

import msgspec

from ckptlog.records import Fate
from ckptlog.timeline.limits import MAX_BETWEEN, MAX_DEAD
from ckptlog.timeline.model import Checkpoint, Quote, Selection, Turn
from ckptlog.timeline.starts import NO_STARTS, Starts


class SlotState(msgspec.Struct):
    """``held`` is the number of tokens in the slot (null when a change left no line)."""

    id: int
    held: int | None = None
    checkpoints: list[Checkpoint] = []
    #: false when entries may exist that the log did not show (it began in mid-run, or lines lack)
    list_known: bool = False
    #: checkpoints that died but whose prefix the slot's content still has
    dead: list[Checkpoint] = []
    dead_max: int = -1
    #: ("shift" | "slot-file" | "cleared" | "purged" | "prompt-cache", line, text) since the last turn
    list_lost: list[tuple[str, int | None, str | None]] = []
    turn: Turn | None = None
    last_turn: Turn | None = None
    #: the turn that left the content; null if it came from elsewhere
    maker: Turn | None = None
    content_from: str = "slot"
    selection: Selection | None = None
    #: of the content held now
    starts: Starts = NO_STARTS
    #: the last change of the content that an old build's list survived (why, line, text)
    outlived: tuple[str, int, str | None] | None = None
    #: tokens at the beginning that came from a slot file without checkpoints
    bare_until: int = 0
    #: tokens at the beginning that came back from the RAM prompt cache
    came_back_until: int = 0

    def new_content(self) -> None:
        """The slot holds other content now: nothing remembered of the old one applies."""
        self.dead, self.dead_max = [], -1
        self.starts = NO_STARTS
        self.bare_until = 0
        self.came_back_until = 0

    def remember_dead(self, checkpoint: Checkpoint) -> None:
        if len(self.dead) >= MAX_DEAD:
            return
        self.dead.append(checkpoint)
        self.dead_max = max(self.dead_max, checkpoint.n_tokens)

    def forget_dead_beyond(self, n_common: int) -> None:
        """The content parts at ``n_common``: a dead checkpoint beyond it never fits again."""
        if self.dead_max > n_common:
            self.dead = [c for c in self.dead if c.n_tokens <= n_common]
            self.dead_max = max((c.n_tokens for c in self.dead), default=-1)

    def kill(self, checkpoint: Checkpoint, fate: Fate, line: int | None, text: str | None, turn: Turn | None) -> None:
        checkpoint.fate = fate
        checkpoint.fate_line = line
        checkpoint.fate_text = text
        if turn is not None:
            checkpoint.fate_task = turn.task
        self.checkpoints = [c for c in self.checkpoints if c is not checkpoint]

    def clear_list(self, why: str, line: int | None, text: str | None, turn: Turn | None) -> list[Checkpoint]:
        """The whole list goes without lines of its own; returns what went."""
        gone = list(self.checkpoints)
        for checkpoint in gone:
            self.kill(checkpoint, "cleared", line, text, turn)
        if (gone or not self.list_known) and len(self.list_lost) < MAX_BETWEEN:
            self.list_lost.append((why, line, text))
        self.checkpoints = []
        return gone

    def find(self, n_tokens: int | None, pos_min: int | None, pos_max: int | None) -> Checkpoint | None:
        """The oldest live entry with these positions."""
        for checkpoint in self.checkpoints:
            if n_tokens is not None and checkpoint.n_tokens != n_tokens:
                continue
            if pos_max is not None and checkpoint.pos_max != pos_max:
                continue
            if pos_min is not None and checkpoint.pos_min is not None and checkpoint.pos_min != pos_min:
                continue
            return checkpoint
        return None


def quote(line: int, text: str | None) -> Quote:
    return Quote(line, text or "")
