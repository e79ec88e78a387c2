"""Looking through the raw lines in a thread: for a search, or for the lines of a slot or task."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from threading import Event, Thread

from ckptlog.intake.lines import LineStore

_BATCH = 2000


class Scan:
    """The numbers of the lines between ``first`` and ``last`` that are ``wanted``, in reading order.

    ``found`` grows while it runs. With ``step`` -1 it goes from ``last`` to ``first``; with ``limit``
    it ends when it has found so many.
    """

    def __init__(
        self,
        store: LineStore,
        first: int,
        last: int,
        wanted: Callable[[str], bool],
        *,
        step: int = 1,
        limit: int | None = None,
    ) -> None:
        self.found = array("Q")
        self.at = first if step > 0 else last
        self.done = False
        self._store, self._first, self._last = store, first, last
        self._wanted, self._step, self._limit = wanted, step, limit
        self._stop = Event()
        self._thread = Thread(target=self._run, name="ckptlog-scan", daemon=True)

    def start(self) -> Scan:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while self._first <= self._last and not self._stop.is_set() and not self._enough():
                self._batch()
        finally:
            self.done = True

    def _enough(self) -> bool:
        return self._limit is not None and len(self.found) >= self._limit

    def _batch(self) -> None:
        if self._step > 0:
            low, high = self._first, min(self._first + _BATCH - 1, self._last)
            self._first = high + 1
        else:
            low, high = max(self._first, self._last - _BATCH + 1), self._last
            self._last = low - 1
        lines = list(enumerate(self._store.lines(low, high), low))
        if not lines and self._step > 0:  # beyond the end of what is there
            self._first = self._last + 1
        for number, line in lines if self._step > 0 else reversed(lines):
            if self._wanted(line):
                self.found.append(number)
                if self._enough():
                    return
        self.at = high if self._step > 0 else low
