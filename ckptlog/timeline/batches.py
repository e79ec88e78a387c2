"""Batches that several slots share: a prompt is cut by what others put into a batch only where that batch was full."""

from __future__ import annotations

import msgspec

from ckptlog.timeline.model import Batch, Turn

#: an answer that is generated beside a prompt takes so many tokens of a batch at most, drafted ones included
ANSWER = 65


class Sharing(msgspec.Struct):
    """The batch that is being filled. Slots are served in the order of their numbers (source: update_slots)."""

    batch: Batch | None = None
    last_slot: int = 0

    def begins(self, turn: Turn, start: int, answers: int) -> None:
        """A part of a prompt begins at ``start``, beside so many answers."""
        if turn.slot is None:
            return
        ends(turn, start)
        batch = self.batch
        if batch is None or turn.slot <= self.last_slot:
            batch = self.batch = Batch()
        # (where no other slot began a new one, it is taken for the one before: more than there was, never less)
        if answers > batch.answers:
            batch.answers = answers
        batch.n_open += 1
        self.last_slot = turn.slot
        turn.batches.append(batch)


def ends(turn: Turn, end: int) -> None:
    """The turn's part of its last batch ends before ``end``."""
    if not turn.batches or not turn.batch_starts or end < turn.batch_starts[-1]:
        return
    batch = turn.batches[-1]
    batch.n_tokens += end - turn.batch_starts[-1]
    batch.n_open -= 1


def not_full(turn: Turn, i: int, n_batch: int) -> bool:
    """Had the batch that ended where the turn's ``i``-th begins room for more, so that the turn itself ended it?"""
    if turn.cut_by_media:
        return False
    at = i - 1 - (len(turn.batch_starts) - len(turn.batches))
    if at < 0:
        return False
    batch = turn.batches[at]
    return batch.n_open == 0 and batch.n_tokens + batch.answers * ANSWER < n_batch
