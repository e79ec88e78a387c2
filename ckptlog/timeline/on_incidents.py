"""Messages that belong to no turn: errors of the start, requests that reach no slot, slot files that can't be used."""

from __future__ import annotations

from ckptlog.events import Event
from ckptlog.timeline.incidents import answer_of, incident, says_over, start_over, take_start_error, tell
from ckptlog.timeline.limits import MAX_WAITING
from ckptlog.timeline.refusals import reason_of
from ckptlog.timeline.stream_state import StreamState

#: errors of a task that works on a slot's file
SLOT_FILE = frozenset({"restore_slot", "save_slot"})

#: lines between an error's reason and itself: other threads may print there
CLOSE = 8


class IncidentMessages(StreamState):
    """What happens outside of turns."""

    def on_got_exception(self, e: Event) -> None:
        if e.slot is None:  # (a slot's own is followed by the error of its task)
            status, message = answer_of(str(e.f.get("text") or ""))
            tell(self._need_run(), incident("request-failed", e.line, e.text, message=message, status=status))

    def on_unauthorized(self, e: Event) -> None:
        tell(self._need_run(), incident("request-failed", e.line, e.text, message="Invalid API Key", status=401))

    def on_launch_failed(self, e: Event) -> None:
        """The request whose error was sent just before has no turn."""
        error = self.unplaced_errors.pop(e.f["task"], None)
        if error is not None:
            self._failed_unplaced(error)

    def on_start_error(self, e: Event) -> None:
        run = self._need_run()
        reason = e.f.get("reason")
        message = None if reason is None else str(reason).strip().rstrip("'")
        take_start_error(run, incident("start-failed", e.line, e.text, message=message, how=e.of.wording))
        if says_over(e.of.wording):
            start_over(run)

    def _unplaced(self, task: int, e: Event) -> None:
        """An error of a task without a turn."""
        reason = reason_of(e.of.wording)
        if reason in SLOT_FILE:
            run = self._need_run()
            why = run.file_error
            message = why.text if why is not None and e.line - why.line <= CLOSE else str(e.f.get("text") or "").lstrip(":, ")
            run.file_error = None
            only = self.slots.get(0) if run.n_slots == 1 and reason == "restore_slot" else None
            if only is not None and only.held and only.turn is None:
                self._cleared(only, "cleared", e, lost="cleared")  # (a higher level prints that)
            tell(run, incident("slot-file-failed", e.line, e.text, message=message or None, how=reason))
            return
        # its release will tell the slot, if it has one
        self.unplaced_errors[task] = e
        if len(self.unplaced_errors) > MAX_WAITING:
            self._failed_unplaced(self.unplaced_errors.pop(next(iter(self.unplaced_errors))))

    def _failed_unplaced(self, error: Event) -> None:
        message = str(error.f.get("text") or "") or None
        tell(self._need_run(), incident("request-failed", error.line, error.text, message=message, how="task"))

    def _tell_unplaced(self) -> None:
        """Nothing more will be said of the tasks whose errors are all that the log has of them."""
        waiting, self.unplaced_errors = self.unplaced_errors, {}
        for error in waiting.values():
            self._failed_unplaced(error)
