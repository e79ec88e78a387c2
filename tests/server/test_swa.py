"""Cells of the sliding window: which positions survive, and bulk strokes against single steps."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog.server.swa import SwaCells, SwaMemory, swa_cells


def test_number_of_cells() -> None:
    assert swa_cells(4096, 64, 64) == 256
    assert swa_cells(1024, 512, 64) == 768
    assert swa_cells(512, 512, 64) == 512
    assert swa_cells(4096, 64, 64, n_sequences=4) == 512


def test_filled_in_one_stroke() -> None:
    for n, low in ((767, 0), (932, 164), (1003, 235)):
        memory = SwaMemory(SwaCells(768, 512))
        memory.append(n, 1)
        assert memory.pos_min() == low


def test_a_rewind_inside_the_window_reuses_cells_and_keeps_the_oldest() -> None:
    memory = SwaMemory(SwaCells(768, 512))
    memory.append(531, 64)
    state = memory.store(window_only=True)
    memory.load(state, 531)
    assert memory.pos_min() == 19
    memory.append(215, 64)
    assert (memory.pos_min(), memory.pos_max()) == (19, 745)


def test_a_shift_starts_over_at_cell_0_and_costs_the_kept_head() -> None:
    memory = SwaMemory(SwaCells(256, 64))
    memory.append(250, 64)
    memory.shift(4, 100)
    assert (memory.pos_min(), memory.pos_max()) == (0, 149)
    memory.generate(1)
    assert memory.pos_min() > 0


class OneByOne:
    """The same rules, cell by cell, as plain as they can be written."""

    def __init__(self, n_cells: int, window: int) -> None:
        self.cells: list[tuple[int, int] | None] = [None] * n_cells
        self.window = window
        self.head = 0

    def high(self, seq: int) -> int:
        return max((cell[0] for cell in self.cells if cell and cell[1] == seq), default=-1)

    def low(self, seq: int) -> int:
        return min((cell[0] for cell in self.cells if cell and cell[1] == seq), default=-1)

    def place(self, positions: list[int], seq: int) -> bool:
        used = sum(cell is not None for cell in self.cells)
        if self.head > used + 2 * len(positions):
            self.head = 0
        head, found = self.head, []
        for _ in range(len(self.cells)):
            head = 0 if head >= len(self.cells) else head
            cell = self.cells[head]
            if cell is None or self.high(cell[1]) + 1 - cell[0] >= self.window:
                found.append(head)
            head += 1
            if len(found) == len(positions):
                break
        if len(found) < len(positions):
            return False
        lost: dict[int, int] = {}
        for at, pos in zip(found, positions, strict=True):
            old = self.cells[at]
            if old:
                lost[old[1]] = max(lost.get(old[1], -1), old[0])
            self.cells[at] = (pos, seq)
        for owner, top in lost.items():
            if self.low(owner) <= top:
                self.cells = [None if c and c[1] == owner and c[0] <= top else c for c in self.cells]
        self.head = found[-1] + 1
        return True

    def drop(self, low: int, seq: int) -> None:
        gone = [at for at, c in enumerate(self.cells) if c and c[1] == seq and c[0] >= low]
        for at in gone:
            self.cells[at] = None
        if gone:
            self.head = min(self.head, gone[0])

    def shift(self, keep: int, discard: int, seq: int) -> None:
        self.cells = [None if c and c[1] == seq and keep <= c[0] < keep + discard else c for c in self.cells]
        self.cells = [(c[0] - discard, seq) if c and c[1] == seq and c[0] >= keep else c for c in self.cells]
        self.head = 0


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(48, 12), (64, 16), (40, 20)]), st.integers(1, 2))
def test_runs_equal_single_cells(seed: int, size: tuple[int, int], n_seqs: int) -> None:
    rng = random.Random(seed)
    n_cells, window = size
    fast, slow = SwaCells(n_cells, window), OneByOne(n_cells, window)
    memories = [SwaMemory(fast, seq) for seq in range(n_seqs)]
    for _ in range(12):
        seq = rng.randrange(n_seqs)
        memory = memories[seq]
        end = memory.pos_max() + 1
        what = rng.choice(["append", "generate", "drop", "shift", "reload"])
        if what == "append":
            n, ubatch = rng.randint(1, 60), 8
            fits = True
            for at in range(0, n, ubatch):
                chunk = list(range(end + at, end + min(n, at + ubatch)))
                fits = slow.place(chunk, seq)
                if not fits:
                    return
            memory.append(n, ubatch)
        elif what == "generate":
            n = rng.randint(1, 90)
            for pos in range(end, end + n):
                if not slow.place([pos], seq):
                    return
            memory.generate(n)
        elif what == "drop" and end:
            low = rng.randint(max(0, memory.pos_min()), end)
            slow.drop(low, seq)
            memory.drop_tail(low)
        elif what == "shift" and end - memory.pos_min() > 6 and memory.pos_min() == 0:
            slow.shift(2, 3, seq)
            memory.shift(2, 3)
        elif what == "reload" and end:
            state = memory.store(window_only=True)
            positions = [c[0] for c in slow.cells if c and c[1] == seq and c[0] > memory.pos_max() - window]
            slow.drop(0, seq)
            if not slow.place(positions, seq):
                return
            memory.load(state, end)
        for number in range(n_seqs):
            assert (fast.pos_min(number), fast.high.get(number, -1)) == (slow.low(number), slow.high(number))
        assert fast.used == sum(cell is not None for cell in slow.cells)
        assert fast.head == slow.head or n_cells in (fast.head, slow.head)
