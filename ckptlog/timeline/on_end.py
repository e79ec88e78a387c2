"""A turn's end: timings, release, cancel, errors, sleep."""

from __future__ import annotations

from ckptlog.events import Event
from ckptlog.timeline.cache import RamCache
from ckptlog.timeline.course import refused
from ckptlog.timeline.limits import MAX_WAITING
from ckptlog.timeline.model import Dropped, FailedBatch, Turn
from ckptlog.timeline.on_incidents import IncidentMessages
from ckptlog.timeline.refusals import REFUSALS, reason_of
from ckptlog.timeline.slot import SlotState, quote

#: errors that a batch gives to all that have a part in it
OF_A_BATCH = ("Invalid input batch", "Compute error", "decode() failed", "Input prompt is too big compared to KV size")

#: from about here on the timings are printed before the release, in older builds behind it (formats: questions, E)
TIMED_BEFORE_RELEASE = 6752

#: a head and its bare timings are one record: so many lines, and some that another program may write between
TIMING_LINES = 12


class EndMessages(IncidentMessages):
    """From the first timing line to the release, and what ends a turn otherwise."""

    def on_prompt_eval_time(self, e: Event) -> None:
        self._timed(e)

    def on_eval_time(self, e: Event) -> None:
        self._timed(e)

    def on_draft_acceptance(self, e: Event) -> None:
        self._timed(e)

    def _timed(self, e: Event) -> None:
        turn = self._timed_turn(e)
        if turn is not None:
            _take_timing(turn, e)

    def on_timing_head(self, e: Event) -> None:
        # (a log may begin here; a turn that is settled is not begun again)
        state, turn = self._turn(e, begin=e.task not in self.tasks)
        if state is not None:
            self.last_slot = state
            self._timing_turn, self._timing_head = turn, e.line

    def _timed_turn(self, e: Event) -> Turn | None:
        """Old builds print the three timing lines bare, below a head line that names the slot."""
        if e.slot is not None or e.task is not None:
            return self._turn(e)[1]
        turn = self._timing_turn
        if turn is None or e.line - self._timing_head > TIMING_LINES or _is_next(turn, e):
            turn = self._without_head()
            if turn is None:
                self._wait_for_release(e)
            else:
                turn.timings_unnamed = True
        if turn is not None and not turn.finished:
            if e.line > turn.last_line:
                turn.last_line = e.line
            return turn
        return None

    def _without_head(self) -> Turn | None:
        """Whose bare timings are where the line that names the slot is missing; null where the next release tells."""
        state, run = self.last_slot, self._need_run()
        if state is None:
            return None
        if len(self.slots) == 1 and (state.turn is not None or run.build_min < TIMED_BEFORE_RELEASE):
            return state.turn or state.last_turn
        before = run.build_max is not None and run.build_max < TIMED_BEFORE_RELEASE
        released = state.last_turn if state.turn is None else None
        return released if before and released is not None and released.prompt_ms is None else None

    def _wait_for_release(self, e: Event) -> None:
        """Several slots may be at work: the release behind the timings names the one that is meant."""
        if any(held.kind == e.kind for held in self.bare_timings):
            self.bare_timings.clear()  # of a turn whose release is missing, too
        self.bare_timings.append(e)

    def on_generation_progress(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        turn.prompt_done = turn.sampled = True
        if e.t is not None and not turn.shifts and e.f.get("tg") is not None:
            turn.generation_mark = (e.t, e.f["n_gen"], e.f["tg"])

    def on_stopped_eos(self, e: Event) -> None:
        self._stopped(e, "eos")

    def on_stopped_limit(self, e: Event) -> None:
        self._stopped(e, "limit")

    def on_stopped_context(self, e: Event) -> None:
        self._stopped(e, "context")

    def _stopped(self, e: Event, why: str) -> None:
        _, turn = self._turn(e, begin=False)
        if turn is not None:
            turn.stop_reason = why

    def on_release(self, e: Event) -> None:
        if e.slot is None:
            return
        state, turn = self._turn(e)
        if state is None or turn is None:
            return
        self._forget_comparisons()
        self._timing_turn = None
        if self.unplaced_errors and turn.task in self.unplaced_errors:
            self._failed(turn, self.unplaced_errors.pop(turn.task))
        if self.bare_timings:
            for held in self.bare_timings:
                if turn.error is None:
                    _take_timing(turn, held)
            self.bare_timings.clear()
        turn.released = True
        self._need_run().n_releases += 1
        turn.n_released = e.f["n_tokens"]
        truncated = e.f.get("truncated")
        turn.truncated = None if truncated is None else bool(truncated)
        turn.release_quote = quote(e.line, e.text)
        if turn.ended == "cut":
            turn.ended = "release"
        self.last_slot = state
        self._close(state, turn)
        self._hold_after_release(state, turn)
        self._settle_if_complete(state, turn)

    def _hold_after_release(self, state: SlotState, turn: Turn) -> None:
        """How many tokens the slot holds now; a refused request leaves the old content."""
        assert turn.n_released is not None
        refused_silently = turn.n_released == 0 and turn.n_processed is None and not turn.batch_starts
        if turn.n_released or (turn.error_reason is None and not refused_silently):
            state.held = turn.n_released
        if turn.batch_starts or turn.n_processed is not None:
            state.content_from = "slot"
        elif refused(turn):
            state.maker = turn.previous

    def on_cancel_task(self, e: Event) -> None:
        turn = self.tasks.get(e.f["task"])
        if turn is None or turn.finished:
            return
        turn.cancel = quote(e.line, e.text)
        gave_up = self.tracker.router_gave_up
        if gave_up is not None and self.port is not None:
            self.tracker.router_gave_up = None
            if gave_up.line > turn.first_line:
                turn.router_gave_up = gave_up
        if e.line > turn.last_line and not turn.released:
            turn.last_line = e.line

    def on_decode_cancelled(self, e: Event) -> None:
        """Whoever's request it was that was cancelled: the fork names no task, and one whose client is there may go on."""
        for state in self.slots.values():
            if state.turn is not None and state.turn.decode_cancelled is None:
                state.turn.decode_cancelled = quote(e.line, e.text)

    def on_send_error(self, e: Event) -> None:
        task = e.f.get("task")
        reason = reason_of(e.of.wording)
        turn = self.tasks.get(task) if isinstance(task, int) else None
        if turn is not None and turn.finished:
            return
        if turn is None:
            if not isinstance(task, int):
                return
            if reason not in REFUSALS:
                self._unplaced(task, e)
                return
            turn = self._slotless(e, task)
        self._failed(turn, e)

    def _failed(self, turn: Turn, e: Event) -> None:
        """The turn ends with that error."""
        reason = reason_of(e.of.wording)
        turn.error = quote(e.line, e.text)
        turn.error_reason = reason
        turn.error_fields.update({k: v for k, v in e.f.items() if k not in ("task", "reason")})
        if turn.failed_batch is None and (reason == "context_exceeded" or str(e.f.get("text", "")).startswith(OF_A_BATCH)):
            turn.failed_batch = FailedBatch()  # (the line that says more is missing)
        turn.first_line, turn.last_line = min(turn.first_line, e.line), max(turn.last_line, e.line)
        if reason == "context_exceeded" and self.run is not None and (self.run.n_slots or 0) > 1:
            # a slot with cells of its own is stopped or shifted before they run out
            self.run.kv_unified = self.run.kv_unified is not False
        if e.t is not None:
            turn.t_end = e.t
        state = self.slots.get(turn.slot) if turn.slot is not None else None
        if turn.released and state is not None and not turn.n_released:
            state.held = turn.n_held_slot  # up to b6751 the release of a refused request prints 0

    def _slotless(self, e: Event, task: int) -> Turn:
        """A refusal whose launch the log does not show (a level that prints errors only)."""
        run = self._need_run()
        run.n_turns += 1
        self.seen_turn = True
        turn = Turn(run.n_turns, run.no, self.tracker.source, None, task, e.line, e.line, t_start=e.t, t_end=e.t)
        turn.ended = "error"
        self.tasks[task] = turn
        if len(self.tasks) > 4096:
            self._forget_old_tasks()
        self.unfinished.append((None, turn))
        if len(self.unfinished) > MAX_WAITING:
            self._settle_slotless()
        return turn

    def on_decode_failed(self, e: Event) -> None:
        failed = FailedBatch(e.f.get("off"), e.f.get("ret"), quote(e.line, e.text))
        for state in self.slots.values():
            if state.turn is not None and state.turn.error is None and state.turn.failed_batch is None:
                state.turn.failed_batch = failed

    def on_exiting_sleep(self, e: Event) -> None:
        """The model is loaded anew in the same process: slots, lists and cache are empty."""
        self.waking = True
        self._settle_all()
        old, self.cache = self.cache, RamCache(complete=True)
        old.settle()
        self.cache.dropped = old.dropped
        held = {state.held for state in self.slots.values()} | {entry.n_tokens for entry in old.entries}
        for n_tokens in sorted(n for n in held if n):
            self.cache.drop(Dropped(n_tokens, e.line, e.text, "sleep"))
        for state in self.slots.values():
            state.held, state.maker = 0, None
            state.clear_list("sleep", e.line, e.text, None)
            state.new_content()


#: timing message -> the figures that it gives a turn
_FIGURES = {"prompt_eval_time": ("prompt_ms", "n_processed"), "eval_time": ("generation_ms", "n_generated")}


def _is_next(turn: Turn, e: Event) -> bool:
    """Is it another turn's, whose head is missing (a prompt's timing comes before the answer's)?"""
    return e.kind == "prompt_eval_time" and turn.generation_ms is not None


def _take_timing(turn: Turn, e: Event) -> None:
    """A timing line's figures, if it is the turn's first of its kind."""
    if e.kind == "draft_acceptance":
        turn.has_draft = True
        turn.n_accepted = e.f.get("accepted")
        return
    time, count = _FIGURES[e.kind]
    if getattr(turn, time) is None:
        setattr(turn, time, e.f["ms"])
        setattr(turn, count, e.f["n_tokens"])
        turn.basis[count] = "observed"
