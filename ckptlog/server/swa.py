"""The ring of cells behind a sliding-window (SWA) cache: which positions are still there.

The server keeps fewer cells than tokens; a new token takes the next cell that is empty or whose
token has left the window. Which old tokens survive decides whether an edited prompt can resume
without a checkpoint, so the placement is followed cell by cell, kept as runs of cells that hold
consecutive positions (there are seldom more than four).
"""

from __future__ import annotations

from ckptlog.server.memory import State

#: (first cell, number of cells, position in the first cell, sequence)
Run = tuple[int, int, int, int]


class NoFreeCell(Exception):
    """All cells hold tokens inside a window: there is no room for what is to be placed."""


def swa_cells(n_ctx_seq: int, n_swa: int, n_ubatch: int, n_sequences: int = 1, padding: int = 256) -> int:
    """Cells of the sliding part: the window (of every sequence, if the cache is unified) plus one
    physical batch, at most the context, padded (b8156 and later; printed as ``creating     SWA KV
    cache, size = C cells``)."""
    wanted = min(n_ctx_seq, n_swa * n_sequences + n_ubatch)
    return -(-wanted // padding) * padding


class SwaCells:
    """The cells of one stream; slots of a unified cache share one, each with its own sequence."""

    __slots__ = ("head", "high", "n_cells", "n_swa", "runs", "used")

    def __init__(self, n_cells: int, n_swa: int) -> None:
        self.n_cells = n_cells
        self.n_swa = n_swa
        #: where the search for a cell begins
        self.head = 0
        #: runs in the order of their cells
        self.runs: list[Run] = []
        self.used = 0
        #: highest position of each sequence
        self.high: dict[int, int] = {}

    def copy(self) -> SwaCells:
        """The same cells once more."""
        twin = SwaCells(self.n_cells, self.n_swa)
        twin.head, twin.used = self.head, self.used
        twin.runs, twin.high = list(self.runs), dict(self.high)
        return twin

    def become(self, other: SwaCells) -> None:
        """Take over another's state (slots of a unified cache keep sharing this object)."""
        self.head, self.used = other.head, other.used
        self.runs, self.high = list(other.runs), dict(other.high)

    def pos_min(self, seq: int) -> int:
        """Lowest position of the sequence; -1 when it has none."""
        return min((run[2] for run in self.runs if run[3] == seq), default=-1)

    def place(self, pieces: list[tuple[int, int]], n: int, seq: int) -> None:
        """Put ``n`` tokens, given as (first position, length) pieces, as one physical batch.

        NoFreeCell if the cells do not suffice (the server would refuse the batch, or fail to restore).
        """
        if self.head > self.used + 2 * n:
            self.head = 0
        taken = self._find(n)
        lost = self._vacate(taken)
        self._fill(taken, pieces, seq)
        self.head = taken[-1][0] + taken[-1][1]
        for owner, pos in lost.items():
            self._purge(owner, pos)

    def generate(self, n: int, seq: int) -> None:
        """Put ``n`` tokens one at a time. Equal cells in a row are taken in one stroke."""
        while n:
            pos = self.high.get(seq, -1) + 1
            n_stroke = self._stroke(n, seq)
            self.place([(pos, n_stroke)], n_stroke, seq)
            n -= n_stroke

    def _stroke(self, n: int, seq: int) -> int:
        """How many single tokens can be placed as one piece with the same outcome."""
        if self.head > self.used + 2:
            self.head = 0
        head = 0 if self.head >= self.n_cells else self.head
        for first, length, pos, owner in self.runs:
            if head < first:
                # a gap: each token takes one cell and adds one used cell, so nothing else changes
                return min(n, first - head)
            if head < first + length:
                n_outside = self.high[owner] + 2 - self.n_swa - pos
                if head != first or owner != seq or n_outside < 1 or pos != self.pos_min(seq):
                    return 1
                # the oldest tokens, overwritten in order: stop where the search would start over
                return max(1, min(n, length, n_outside, self.used + 3 - head))
        return min(n, self.n_cells - head) or 1

    def _find(self, n: int) -> list[tuple[int, int]]:
        """Cells for ``n`` tokens as (first cell, length), from the head on, wrapping once."""
        taken: list[tuple[int, int]] = []
        head = 0 if self.head >= self.n_cells else self.head
        for low, high in ((head, self.n_cells), (0, head)):
            at = low
            for first, length, pos, owner in [*self.runs, (self.n_cells, 0, 0, -1)]:
                if first + length < at:
                    continue
                n_free = min(first, high) - at
                if n_free > 0:
                    n -= self._take(taken, at, min(n, n_free))
                    if not n:
                        return taken
                if first >= high:
                    break
                # cells whose token is outside its sequence's window come first in their run
                start = max(first, at)
                end = min(first + length, high, first + self.high.get(owner, -1) + 2 - self.n_swa - pos)
                if end > start:
                    n -= self._take(taken, start, min(n, end - start))
                    if not n:
                        return taken
                at = max(at, min(first + length, high))
        raise NoFreeCell

    @staticmethod
    def _take(taken: list[tuple[int, int]], cell: int, n: int) -> int:
        if taken and sum(taken[-1]) == cell:
            taken[-1] = (taken[-1][0], taken[-1][1] + n)
        else:
            taken.append((cell, n))
        return n

    def _vacate(self, taken: list[tuple[int, int]]) -> dict[int, int]:
        """Empty the cells; the highest position lost, for each sequence that lost any."""
        lost: dict[int, int] = {}
        for cell, n in taken:
            kept: list[Run] = []
            for run in self.runs:
                first, length, pos, owner = run
                low, high = max(first, cell), min(first + length, cell + n)
                if low >= high:
                    kept.append(run)
                    continue
                self.used -= high - low
                lost[owner] = max(lost.get(owner, -1), pos + high - 1 - first)
                if low > first:
                    kept.append((first, low - first, pos, owner))
                if high < first + length:
                    kept.append((high, first + length - high, pos + high - first, owner))
            self.runs = kept
        return lost

    def _fill(self, taken: list[tuple[int, int]], pieces: list[tuple[int, int]], seq: int) -> None:
        queue = list(pieces)
        for cell, n in taken:
            while n:
                pos, length = queue[0]
                step = min(n, length)
                self.runs.append((cell, step, pos, seq))
                self.used += step
                self.high[seq] = max(self.high.get(seq, -1), pos + step - 1)
                cell += step
                n -= step
                if step == length:
                    queue.pop(0)
                else:
                    queue[0] = (pos + step, length - step)
        self._tidy()

    def _tidy(self) -> None:
        """Sort by cell and join runs that continue each other."""
        self.runs.sort()
        joined: list[Run] = []
        for run in self.runs:
            if joined:
                first, length, pos, owner = joined[-1]
                if first + length == run[0] and pos + length == run[2] and owner == run[3]:
                    joined[-1] = (first, length + run[1], pos, owner)
                    continue
            joined.append(run)
        self.runs = joined

    def _purge(self, seq: int, pos: int) -> None:
        """A sequence must hold every position from its lowest on: what lies up to ``pos`` goes too."""
        if self.pos_min(seq) <= pos:
            self._remove(seq, 0, pos + 1)

    def _remove(self, seq: int, low: int, high: int) -> int:
        """Empty the sequence's cells with a position in [low, high); the first such cell, or n_cells."""
        first_cell = self.n_cells
        kept: list[Run] = []
        for run in self.runs:
            first, length, pos, owner = run
            cut_low, cut_high = max(low, pos), min(high, pos + length)
            if owner != seq or cut_low >= cut_high:
                kept.append(run)
                continue
            first_cell = min(first_cell, first + cut_low - pos)
            self.used -= cut_high - cut_low
            if cut_low > pos:
                kept.append((first, cut_low - pos, pos, owner))
            if cut_high < pos + length:
                kept.append((first + cut_high - pos, pos + length - cut_high, cut_high, owner))
        self.runs = kept
        self.high[seq] = max((run[2] + run[1] - 1 for run in kept if run[3] == seq), default=-1)
        return first_cell

    def remove(self, seq: int, low: int, high: int | None = None) -> None:
        """Drop positions [low, high) of the sequence; the head goes back to the first cell emptied."""
        first_cell = self._remove(seq, low, 1 << 62 if high is None else high)
        self.head = min(self.head, first_cell)

    def shift(self, seq: int, n_keep: int, n_discard: int) -> None:
        """Context shift: delete a slice, move what follows down, start searching from cell 0."""
        self.remove(seq, n_keep, n_keep + n_discard)
        self.runs = [
            (first, length, pos - n_discard if owner == seq and pos >= n_keep else pos, owner)
            for first, length, pos, owner in self.runs
        ]
        self.high[seq] = max((run[2] + run[1] - 1 for run in self.runs if run[3] == seq), default=-1)
        self.head = 0
        self._tidy()

    def store(self, seq: int, low: int) -> State:
        """The sequence's cells from position ``low`` up, in the order of the cells."""
        return tuple(
            (max(pos, low), pos + length - max(pos, low))
            for _, length, pos, owner in self.runs
            if owner == seq and pos + length > low
        )

    def load(self, seq: int, state: State) -> None:
        """Write a stored state back: the same search, over cells that no longer hold the sequence."""
        self.remove(seq, 0)
        n = sum(length for _, length in state)
        if n:
            self.place(list(state), n, seq)


class SwaMemory:
    """One slot's part of a sliding-window cache."""

    __slots__ = ("cells", "n", "seq")

    def __init__(self, cells: SwaCells, seq: int = 0) -> None:
        self.cells = cells
        self.seq = seq

    def pos_min(self) -> int:
        return self.cells.pos_min(self.seq)

    def pos_max(self) -> int:
        return self.cells.high.get(self.seq, -1)

    def append(self, n: int, n_ubatch: int) -> None:
        pos = self.pos_max() + 1
        while n > 0:
            step = min(n, n_ubatch)
            self.cells.place([(pos, step)], step, self.seq)
            pos += step
            n -= step

    def generate(self, n: int) -> None:
        self.cells.generate(n, self.seq)

    def drop_tail(self, n_tokens: int) -> None:
        self.cells.remove(self.seq, n_tokens)

    def clear(self) -> None:
        self.cells.remove(self.seq, 0)

    def shift(self, n_keep: int, n_discard: int) -> None:
        self.cells.shift(self.seq, n_keep, n_discard)

    def mark(self) -> SwaCells:
        return self.cells.copy()

    def undo(self, mark: SwaCells) -> None:
        self.cells.become(mark)

    def store(self, window_only: bool) -> State:
        low = self.pos_max() - self.cells.n_swa + 1 if window_only else 0
        return self.cells.store(self.seq, max(0, low))

    def load(self, state: State, n_tokens: int) -> None:
        self.cells.load(self.seq, state)
