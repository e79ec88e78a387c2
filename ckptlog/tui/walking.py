"""From failure to failure, from slot to slot, and from a turn to its lines in the log."""

from __future__ import annotations

from ckptlog.tui.checkpoint_table import CheckpointTable
from ckptlog.tui.evidence import EvidenceList
from ckptlog.tui.raw_log import RawLog
from ckptlog.tui.rows import RowList
from ckptlog.tui.showing import Showing


class Walking(Showing):
    """The keys that go somewhere else than to a neighbour."""

    def action_next_failed(self, step: int) -> None:
        item = self.item
        found = self.book.next_failed(item.number if item else 0, step, self.book.shown)
        if found is None:
            self._say(
                "no failed turn"
                + (" among those shown" if len(self.book.shown) < len(self.book.turns) else "")
            )
        else:
            self.select(found)

    def action_step_slot(self, step: int) -> None:
        """The turn of the next slot that is nearest to the selected one."""
        lanes, item = list(self.book.lanes.values()), self.item
        if item is None or len(lanes) < 2:
            return
        lane = lanes[(lanes.index(self.book.lane_of(item)) + step) % len(lanes)]
        self.select(min(lane.turns, key=lambda other: abs(other.number - item.number)))

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self.action_show_log()

    def action_show_log(self) -> None:
        """The raw log at the turn's first line, or at the line that is pointed at."""
        focused = self.focused
        line = source = None
        item = self.item
        if isinstance(focused, EvidenceList):
            evidence = focused.evidence_at(focused.cursor)
            if evidence is not None:
                source, line = evidence.source, evidence.line
        elif isinstance(focused, CheckpointTable) and focused.lives and item is not None:
            record = focused.lives[focused.cursor].record
            source, line = item.turn.source, record.fate_line or record.line
        elif item is not None:
            source, line = item.turn.source, item.turn.lines[0]
        self.action_show_tab("log")
        if line is not None:
            self.raw_log.go_to_line(line, source)
        self.raw_log.focus()

    def action_only(self) -> None:
        self.action_show_tab("log")
        self.raw_log.focus()
        self.raw_log.action_next_only()
        self._show_details()

    def on_raw_log_found(self, message: RawLog.Found) -> None:
        if message.line is None:
            self._say(f"no line matches {message.text}", "warning")
        elif message.wrapped:
            self._say(f"went round the end: line {message.line:,}")
