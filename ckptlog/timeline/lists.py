"""What the checkpoint messages do to a slot's list."""

from __future__ import annotations

from typing import Any, cast

from ckptlog.events import Event
from ckptlog.records import Fate
from ckptlog.timeline.limits import MAX_BETWEEN
from ckptlog.timeline.model import Checkpoint, Run, Turn
from ckptlog.timeline.slot import SlotState, quote
from ckptlog.timeline.starts import UNSURE_STARTS, Starts
from ckptlog.timeline.user_starts import batch_missing, hidden_between, user_starts

#: from this build a context shift (and any clear of a slot) empties the list, without a line
CLEARS_LIST_SINCE = 10012
#: a checkpoint of the first few tokens (BOS, a header) is worth nothing
TRIVIAL = 8

Spans = tuple[tuple[int, int], ...]


def _n_tokens(f: dict[str, Any]) -> int:
    """Builds up to b7964 print positions only; without images position = token index."""
    n_tokens = f.get("n_tokens")
    return n_tokens if isinstance(n_tokens, int) else int(f["pos_max"]) + 1


class ListKeeper:
    """Keeps the lists by the messages, and notices where a message shows that they were wrong."""

    def created(self, run: Run, state: SlotState, turn: Turn, e: Event) -> Checkpoint:
        f = e.f
        index, maximum = f.get("index"), f.get("max")
        if isinstance(maximum, int):
            run.checkpoints_max = run.checkpoints_max or maximum
            run.checkpoints_enabled = True
        checkpoint = Checkpoint(
            _n_tokens(f), f.get("pos_min"), f.get("pos_max"), f.get("size_mib"),
            run.no, state.id, turn.task, e.line, turn_no=turn.no,
        )  # fmt: skip
        self.memory_hint(run, e)
        run.n_created += 1
        if checkpoint.size_mib:
            run.cp_size_mib = max(run.cp_size_mib or 0.0, checkpoint.size_mib)
        if isinstance(index, int):
            self._agree(state, turn, index - 1)
        state.checkpoints.append(checkpoint)
        turn.created.append(checkpoint)
        return checkpoint

    def _agree(self, state: SlotState, turn: Turn, size: int) -> None:
        """The server's list held ``size`` entries just before this one came."""
        ours = len(state.checkpoints)
        if ours == size:
            if size == 0:
                state.list_known = True
            return
        if ours > size:
            # entries went without a line: all of them (a shift, a slot action), or the oldest ones
            for checkpoint in state.checkpoints[: ours - size]:
                state.kill(checkpoint, "cleared", None, None, turn)
                turn.cleared.append(checkpoint)
                if size:
                    state.remember_dead(checkpoint)
            if size == 0:
                turn.list_lost.append(("cleared", None, None))
            state.list_known = state.list_known or size == 0
        else:
            state.list_known = False

    def erased(self, run: Run, state: SlotState, turn: Turn, e: Event, fate: str) -> Checkpoint | None:
        """Kill the entry named by the line; returns a record to keep if it was born before the log."""
        f = e.f
        n_tokens = f.get("n_tokens")
        pos_min, pos_max = f.get("pos_min"), f.get("pos_max")
        n_swa = f.get("n_swa")
        # up to b8352 the line shows max(1, n_swa): a 1 there says nothing
        if isinstance(n_swa, int) and run.n_swa is None and (n_swa > 1 or f.get("pos_next") is not None):
            run.n_swa = n_swa
        checkpoint = state.find(n_tokens, pos_min, pos_max)
        unknown: Checkpoint | None = None
        if checkpoint is None:
            if n_tokens is None and pos_max is None:
                return None
            unknown = checkpoint = Checkpoint(
                _n_tokens(f), pos_min, pos_max, f.get("size_mib"), run.no, state.id, None, None
            )
            if checkpoint.size_mib:
                run.cp_size_mib = max(run.cp_size_mib or 0.0, checkpoint.size_mib)
            self.memory_hint(run, e)
            # what is erased was there: the list was not what the log had shown
            _forget_entry(state, turn)
            turn.before_known = False
            state.list_known = turn.forced is not None  # (the sweep ends with an empty list)
            if turn.before is not None:
                turn.before.append(checkpoint)
        state.kill(checkpoint, cast(Fate, fate), e.line, e.text, turn)
        getattr(turn, fate).append(checkpoint)
        return unknown

    def swa_erased(self, state: SlotState, turn: Turn, e: Event) -> None:
        """Up to b6628 one message serves overflow and invalidation, and its numbers are wrong.

        Overflow comes when the prompt is done and drops the oldest; invalidation comes before,
        newest first (formats: policy, sections 2 and 4).
        """
        if not state.checkpoints:
            return
        fate: Fate = "evicted" if turn.prompt_done else "invalidated"
        checkpoint = state.checkpoints[0] if turn.prompt_done else state.checkpoints[-1]
        state.kill(checkpoint, fate, e.line, e.text, turn)
        getattr(turn, fate).append(checkpoint)

    @staticmethod
    def memory_hint(run: Run, e: Event) -> None:
        """Recurrent memory is one state at one position; a sliding window spans many (policy, section 0)."""
        low, high = e.f.get("pos_min"), e.f.get("pos_max")
        if low is None or high is None or high == 0:
            return
        if low == high:
            run.cp_equal += 1
        else:
            run.cp_wide += 1

    def restored(self, run: Run, state: SlotState, turn: Turn, e: Event) -> Checkpoint | None:
        """Resume from the entry named by the line; returns a record to keep if it was born before the log."""
        f = e.f
        unknown: Checkpoint | None = None
        self.memory_hint(run, e)
        checkpoint = state.find(f.get("n_tokens"), f.get("pos_min"), f.get("pos_max"))
        if checkpoint is None:
            unknown = checkpoint = Checkpoint(
                _n_tokens(f), f.get("pos_min"), f.get("pos_max"), f.get("size_mib"), run.no, state.id, None, None
            )
            state.checkpoints.append(checkpoint)
            state.list_known = False
            _forget_entry(state, turn)
            if turn.before is not None:
                turn.before.append(checkpoint)
        if turn.task is not None:
            checkpoint.restored_by.append(turn.task)
        if state.outlived is not None and checkpoint.line is not None and checkpoint.line < state.outlived[1]:
            turn.stale = state.outlived
        turn.restored = checkpoint
        turn.restored_at = (f.get("n_tokens"), f.get("n_past"))
        turn.restored_quote = quote(e.line, e.text)
        return unknown

    def shifted(self, run: Run, state: SlotState, turn: Turn, e: Event) -> None:
        """A context shift renumbers the content: what was remembered of it is void."""
        state.new_content()
        old_rule = run.build_max is not None and run.build_max < CLEARS_LIST_SINCE
        if old_rule:
            if state.checkpoints:
                state.list_lost.append(("shift", e.line, e.text))
                state.outlived = ("shift", e.line, e.text)
            return
        gone = state.clear_list("shift", e.line, e.text, turn)
        turn.cleared.extend(gone)

    def after_turn(self, run: Run, state: SlotState, turn: Turn) -> None:
        """Settle which dead checkpoints this turn could have used, and which the next one can."""
        n_common = turn.n_common
        if n_common is None:
            n_common = turn.n_common_range[0] if turn.n_common_range else (turn.n_cached or 0)
        swept = [c for c in turn.invalidated if c.n_tokens <= n_common]
        if turn.n_cached is not None and turn.n_cached < n_common:
            turn.dead = [c for c in state.dead if c.n_tokens <= n_common]
        if turn.shifts:
            return
        self._starts(run, state, turn, n_common)
        if turn.error_reason is None or turn.batch_starts:
            state.forget_dead_beyond(n_common)
        for checkpoint in (*turn.evicted, *turn.thinned):
            if checkpoint.n_tokens <= n_common or checkpoint.task == turn.task:
                state.remember_dead(checkpoint)
        for checkpoint in swept:
            state.remember_dead(checkpoint)

    def _starts(self, run: Run, state: SlotState, turn: Turn, n_common: int) -> None:
        """Where checkpoints were made and where user messages begin in what the slot holds now."""
        if not turn.batch_starts and not turn.created:
            return
        before = state.starts
        kept = tuple(u for u in before.user if u <= n_common)
        found, sure = user_starts(run, turn)
        now = hidden_between(run, turn, found)
        born = [c.n_tokens for c in turn.created if c.n_tokens > TRIVIAL]
        if before.first_born is not None and before.first_born <= n_common:
            born.append(before.first_born)
        seen, complete, known = before.seen, before.complete, before.sure
        if turn.batch_starts:
            # (where the first is known and still there, what this turn leaves open comes behind it)
            first_kept = bool(kept) and known and complete
            seen, from_0 = True, turn.batch_starts[0] == 0
            known = first_kept or (sure and (known or from_0) and not batch_missing(run, turn))
            complete = complete or from_0
        state.starts = Starts(
            min(born) if born else None,
            tuple(sorted({*kept, *found})) if found else kept,
            seen,
            complete,
            known,
            _hidden(before.hidden, now, turn, n_common)[-MAX_BETWEEN:],
        )
        turn.batches = []


def _forget_entry(state: SlotState, turn: Turn) -> None:
    """A list that is not that of the saved prompt: another one was loaded, perhaps of the same length."""
    if not turn.cache_loaded or not turn.before_known or turn.batch_starts:
        return
    state.new_content()
    turn.before_known = False
    turn.starts = UNSURE_STARTS
    turn.previous = None


def _hidden(before: Spans, now: list[tuple[int, int]], turn: Turn, n_common: int) -> Spans:
    """Where starts may be hidden after the turn: what is evaluated once more is seen once more."""
    edge = min(n_common, turn.batch_starts[0]) if turn.batch_starts else n_common
    kept = [(low, min(high, edge)) for low, high in before if low < edge]
    for low, high in now:
        both = ((max(low, a), min(high, b)) for a, b in (*before, (n_common, high)))
        kept += [span for span in both if span[0] < span[1]]
    return tuple(kept)
