"""Which turns are shown: by outcome, by slot, by an expression."""

from __future__ import annotations

from ckptlog.tui.book import id_of
from ckptlog.tui.lanes import LaneKey
from ckptlog.tui.showing import Showing


class Filters(Showing):
    """The filters of the book and the keys that set them; a hidden turn does not stay selected."""

    def action_step_scope(self, step: int) -> None:
        """All slots, then each one alone."""
        keys: list[LaneKey | None] = [None, *self.book.lanes]
        if len(keys) == 2:
            self._say("there is only one slot")
            return
        at = keys.index(self.book.lane_filter) if self.book.lane_filter in keys else 0
        self.book.lane_filter = keys[(at + step) % len(keys)]
        self._filters_changed()

    def action_toggle_outcome(self, outcome: str) -> None:
        self.book.outcomes = self.book.outcomes ^ {outcome}
        self._filters_changed()

    def action_clear_filters(self) -> None:
        self.book.outcomes, self.book.lane_filter, self._filter = frozenset(), None, None
        self._filters_changed()

    def _filters_changed(self) -> None:
        self._apply_filter()
        item, shown = self.item, self.book.shown
        if shown and (item is None or item not in shown):
            number = item.number if item else 0
            self.selected = id_of(min(shown, key=lambda other: abs(other.number - number)).turn)
            self._touched = True
        self._show_all()

    def _apply_filter(self) -> None:
        self.book.let_through(self._filter)
