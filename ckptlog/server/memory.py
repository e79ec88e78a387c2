"""What the sequence memory of a slot holds, as far as the checkpoint rules look at it.

Without images a token's position is its index, so everything here counts tokens from 0.
"""

from __future__ import annotations

from typing import Any, Protocol

#: a stored state: (first position, number of cells) pieces in the order of the cells; () for kinds
#: of memory whose state is told by its length alone
State = tuple[tuple[int, int], ...]


class SlotMemory(Protocol):
    """The memory of one slot (one sequence)."""

    def pos_min(self) -> int:
        """Lowest position from which on everything is present; -1 when empty."""
        ...

    def pos_max(self) -> int:
        """Highest position present; -1 when empty."""
        ...

    def append(self, n: int, n_ubatch: int) -> None:
        """Decode ``n`` more tokens as one batch, in pieces of ``n_ubatch``."""
        ...

    def generate(self, n: int) -> None:
        """Decode ``n`` more tokens one by one."""
        ...

    def drop_tail(self, n_tokens: int) -> None:
        """Forget every position from ``n_tokens`` on."""
        ...

    def clear(self) -> None:
        """Forget everything."""
        ...

    def shift(self, n_keep: int, n_discard: int) -> None:
        """Context shift: delete [n_keep, n_keep + n_discard) and move what follows down."""
        ...

    def mark(self) -> Any:
        """What ``undo`` needs to bring back the present state."""
        ...

    def undo(self, mark: Any) -> None:
        """Back to a marked state."""
        ...

    def store(self, window_only: bool) -> State:
        """The state as a checkpoint, a cache entry or a slot file stores it."""
        ...

    def load(self, state: State, n_tokens: int) -> None:
        """Put a stored state of ``n_tokens`` tokens in place of what is there."""
        ...


class PlainMemory:
    """Full attention: everything from position 0 is always there."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def pos_min(self) -> int:
        return 0 if self.n else -1

    def pos_max(self) -> int:
        return self.n - 1

    def append(self, n: int, n_ubatch: int) -> None:
        self.n += n

    def generate(self, n: int) -> None:
        self.n += n

    def drop_tail(self, n_tokens: int) -> None:
        self.n = min(self.n, n_tokens)

    def clear(self) -> None:
        self.n = 0

    def shift(self, n_keep: int, n_discard: int) -> None:
        self.n -= n_discard

    def mark(self) -> int:
        return self.n

    def undo(self, mark: int) -> None:
        self.n = mark

    def store(self, window_only: bool) -> State:
        return ()

    def load(self, state: State, n_tokens: int) -> None:
        self.n = n_tokens


class RecurrentMemory(PlainMemory):
    """Recurrent or hybrid: one state, that of the last position (hybrid reports the narrower part)."""

    __slots__ = ()

    def pos_min(self) -> int:
        return self.n - 1
