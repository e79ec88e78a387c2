"""What a stream holds between events: slots, open turns, the RAM cache; how a turn begins and is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from ckptlog.events import Event, Wording
from ckptlog.intake.writer import Writer
from ckptlog.timeline.batch_sizes import learn_sizes
from ckptlog.timeline.batches import Sharing
from ckptlog.timeline.cache import CacheEntry, RamCache
from ckptlog.timeline.course import evaluated, refused
from ckptlog.timeline.figures import settle_figures
from ckptlog.timeline.limits import (
    MAX_CHECKPOINTS,
    MAX_IN_TURN,
    MAX_LISTED,
    MAX_SLOTS,
    MAX_WAITING,
    LeftOut,
)
from ckptlog.timeline.lists import ListKeeper
from ckptlog.timeline.model import NO_SLOT, Checkpoint, Dropped, Held, Quote, Run, Selection, Turn
from ckptlog.timeline.slot import SlotState
from ckptlog.timeline.starts import UNSURE_STARTS


class Owner(Protocol):
    """Who reads the source: numbers its runs, and takes the turns that are complete."""

    source: int
    left_out: LeftOut
    n_checkpoints: int
    #: lines at which the clock fell and no server said that it starts
    clock_falls: list[int]
    #: lines that no server can have written behind what stands before them
    torn: list[int]
    router_gave_up: Quote | None

    def new_run(self, writer: Writer | None, port: int | None, line: int) -> Run: ...

    def turn_done(self, run: Run, turn: Turn) -> None: ...

    def of_child(self, writer: Writer | None, e: Event) -> None: ...


Handler = Callable[[Any, Event], None]


class StreamState:
    """The state behind one stream of events (one server's); the handlers of its parts build on it."""

    #: what takes a message, by its kind: functions and not bound methods, which would keep the stream alive
    handlers: ClassVar[dict[str, Handler]] = {}

    def __init_subclass__(cls) -> None:
        cls.handlers = {name[3:]: getattr(cls, name) for name in dir(cls) if name.startswith("on_")}

    def __init__(
        self, tracker: Owner, writer: Writer | None, port: int | None, *, began: int, anew: bool
    ) -> None:
        self.tracker = tracker
        self.writer = writer
        #: its first line, and whether that is of a server that starts
        self.began, self.anew = began, anew
        self.port = port
        self.run: Run | None = None
        #: slot files written in this log: path -> (tokens held, checkpoints); they outlive a run
        self.slot_files: dict[str, tuple[int | None, list[Checkpoint]]] = {}
        self.slot_files_read = False
        #: Ollama runs this server, and whatever it starts after it
        self.ollama = False
        self._reset()

    def _reset(self) -> None:
        self.slots: dict[int, SlotState] = {}
        self.forgot_slots = False
        self.cache = RamCache()
        self.lists = ListKeeper()
        self.selection: Selection | None = None
        self.slot_lcp: dict[int, int] = {}
        self.held: dict[int, Held] = {}
        self.checked_prompt: int | None = None
        self.checked_thold: float | None = None
        self.idle_slot: int | None = None
        self.sharing = Sharing()
        self.last_slot: SlotState | None = None
        self.last_t: int | None = None
        self.seen_turn = False
        self.seen_wordings: set[Wording] = set()
        #: wordings met in this run, with what handles them
        self.routes: dict[Wording, Handler] = {}
        self.waking = False
        self.tasks: dict[int, Turn] = {}
        self.unfinished: list[tuple[SlotState | None, Turn]] = []
        #: errors of tasks whose launch is not in the log
        self.unplaced_errors: dict[int, Event] = {}
        self.loaded_entry: CacheEntry | None = None
        self._mismatch: tuple[Turn, Event] | None = None
        self._timing_turn: Turn | None = None
        self._timing_head = 0  # its line
        #: timings of which no line tells the slot; one of a kind
        self.bare_timings: list[Event] = []
        #: tokens held and in common, as a fork prints them: of the slot that begins a batch next
        self.fork_cache: tuple[int, int] | None = None

    def _forget_comparisons(self) -> None:
        """What was compared for a choice is no other choice's: the line that ends it, or the launch, is missing."""
        self.slot_lcp, self.held, self.checked_prompt, self.checked_thold = {}, {}, None, None

    def _another_turn(self) -> None:
        """A turn begins: what stands before it without a slot's name belongs to turns whose lines are missing."""
        self._forget_comparisons()
        self.bare_timings.clear()

    def _slot(self, slot_id: int) -> SlotState:
        state = self.slots.get(slot_id)
        if state is None:
            run = self.run
            if len(self.slots) >= MAX_SLOTS:
                self._forget_slot()
            fresh = run is not None and run.start_seen and not self.forgot_slots
            state = self.slots[slot_id] = SlotState(slot_id, held=0 if fresh else None, list_known=fresh)
        return state

    def _forget_slot(self) -> None:
        """Too many slots: the one known for longest is over; should it come back, nothing is known of it."""
        assert self.run is not None
        state = self.slots.pop(next(iter(self.slots)))
        if state.turn is not None:
            self._close(state, state.turn)
        self._settle(state)
        self.forgot_slots = True
        self.tracker.left_out.count("slots", self.tracker.source, self.run.last_line)

    def _room(self, turn: Turn, e: Event) -> bool:
        """May one more message of a batch, a checkpoint or a shift be kept of this turn?"""
        turn.n_kept += 1
        if turn.n_kept <= MAX_IN_TURN:
            return True
        self.tracker.left_out.count("in_turn", self.tracker.source, e.line)
        return False

    def _turn(self, e: Event, *, begin: bool = True) -> tuple[SlotState | None, Turn | None]:
        """The open turn an event belongs to; one is begun for a log that starts in mid-turn."""
        slot, task = e.slot, e.task
        if slot is None:
            return None, None
        state = self.slots.get(slot)
        if state is None:
            state = self._slot(slot)
        turn = state.turn
        if turn is not None and (turn.task == task or task is None or task < 0):
            # as _touch does; written out, for this is run for most events
            if e.line > turn.last_line and turn.source == self.tracker.source:
                turn.last_line = e.line
            if e.t is not None:
                turn.t_end = e.t
            return state, turn
        if task is not None and task >= 0:
            known = self.tasks.get(task)
            if known is not None and known.slot == e.slot and not known.finished:
                self._touch(known, e)
                return state, known
            if begin:
                if known is not None and known.end_missed:
                    self.tracker.torn.append(e.line)  # the slot was given to another task in between
                return state, self._open(state, e, start_seen=False)
        elif turn is None and state.last_turn is not None and not state.last_turn.finished:
            return state, state.last_turn
        return state, None

    def _touch(self, turn: Turn, e: Event) -> None:
        if e.line > turn.last_line and turn.source == self.tracker.source:
            turn.last_line = e.line
        if e.t is not None:
            turn.t_end = e.t

    def _open(self, state: SlotState, e: Event, *, start_seen: bool) -> Turn:
        assert self.run is not None
        run = self.run
        if state.turn is not None:
            # a slot is launched only when it is free: the release is not in the log, nor what it left in the slot
            state.turn.end_missed = True
            state.held = _left_behind(state.turn)
            self._close(state, state.turn)
        self._settle(state)
        if e.task == 0 and run.n_turns == 0 and state.held is None:
            # the process's first task: no slot holds anything yet
            state.held, state.list_known = 0, True
        elif not start_seen and e.task and state.last_turn is None and state.selection is None:
            # its launch is missing, and perhaps all of other turns before it
            state.held, state.list_known = None, False
        run.n_turns += 1
        self.seen_turn = True
        self.waking = False
        turn = Turn(run.n_turns, run.no, self.tracker.source, state.id, e.task, e.line, e.line, t_start=e.t, t_end=e.t)
        turn.start_seen = start_seen
        selection = state.selection
        state.selection = None
        if selection is None and self.selection is not None and self.selection.slot == NO_SLOT:
            selection, self.selection = self.selection, None  # (the launch that ends a choice may be missing)
        if selection is not None:
            turn.selection = selection
            turn.first_line = min(turn.first_line, selection.line)
            if selection.text:
                turn.selected_quote = Quote(selection.line, selection.text)
        turn.n_held_slot = state.held
        turn.was_empty = None if state.held is None else state.held == 0
        if selection is not None and selection.found is not None:
            self._load_entry(state, turn, selection)
        turn.previous, state.maker = state.maker, turn
        if turn.previous is not None:
            turn.previous.previous = None  # one step back is enough; no chain of the whole log
        turn.n_held = state.held
        turn.content_from = state.content_from
        turn.list_lost, state.list_lost = state.list_lost, []
        turn.before_known = state.list_known
        turn.bare_until, turn.came_back_until = state.bare_until, state.came_back_until
        turn.starts = state.starts
        turn.before = list(state.checkpoints)
        if len(self.slots) > 1:
            self._at_the_same_time(turn)
        state.turn = turn
        state.last_turn = turn
        if e.task is not None and e.task >= 0:
            self.tasks[e.task] = turn
            if len(self.tasks) > 4096:
                self._forget_old_tasks()
        self.last_slot = state
        return turn

    def _at_the_same_time(self, turn: Turn) -> None:
        """From now on this turn and those of the other slots share batches."""
        for state in self.slots.values():
            other = state.turn
            if other is None or (other.is_child and other.child_of is None):
                continue  # (a child waits until its parent's prompt is done)
            turn.n_alone = 0
            if other.n_alone is None:
                other.n_alone = len(other.batch_starts)

    def _forget_old_tasks(self) -> None:
        keep = sorted(self.tasks)[-512:]
        self.tasks = {task: self.tasks[task] for task in keep}

    def _load_entry(self, state: SlotState, turn: Turn, selection: Selection) -> None:
        """A RAM cache entry replaced the slot's content and list."""
        assert selection.found is not None
        f_keep = selection.found[0]
        n_tokens, lcp = None, None
        at = selection.chosen
        if at is not None:
            n_tokens, lcp = selection.candidates[at][:2]
        entry: CacheEntry | None = self.loaded_entry
        self.loaded_entry = None
        if entry is None and n_tokens is not None and not selection.listed:
            entry = self.cache.take(n_tokens)
        if entry is None and not selection.listed:
            fitting = self.cache.fitting(f_keep)
            if len(fitting) == 1:
                entry = self.cache.take(fitting[0].n_tokens)
        if n_tokens is None and entry is not None:
            n_tokens = entry.n_tokens
        turn.cache_loaded = True
        turn.cache_lcp = lcp
        turn.content_from = state.content_from = "prompt-cache"
        line, text = selection.found_line, selection.found_text
        turn.cleared.extend(state.clear_list("prompt-cache", line, text, turn))
        # (a change of adapters comes behind the load, and empties the slot once more)
        state.list_lost = [lost for lost in state.list_lost if lost[0] == "lora"]
        state.held = n_tokens
        state.new_content()
        state.maker = entry.maker if entry is not None else None
        if entry is not None:
            state.starts = entry.starts
        if entry is None or entry.checkpoints is None:
            state.list_known = False
            return
        state.list_known = True
        for old in entry.checkpoints:
            copy = Checkpoint(
                old.n_tokens, old.pos_min, old.pos_max, old.size_mib, turn.run, state.id, old.task, line,
                origin="prompt-cache", turn_no=old.turn_no,
            )  # fmt: skip
            state.checkpoints.append(copy)
            self._keep_record(copy)
        for dead in entry.dead:
            state.remember_dead(dead)

    def _keep_record(self, checkpoint: Checkpoint) -> None:
        run = self.run
        assert run is not None
        owner = self.tracker
        if owner.n_checkpoints < MAX_CHECKPOINTS:
            owner.n_checkpoints += 1
            run.checkpoints.append(checkpoint)
        else:
            owner.left_out.count("checkpoints", owner.source, run.last_line)

    def _trim_list(self, state: SlotState) -> None:
        """A list longer than any server's: its oldest entries are forgotten, and with them that it is known."""
        while len(state.checkpoints) > MAX_LISTED:
            del state.checkpoints[0]
            state.list_known = False
            self.tracker.left_out.count("listed", self.tracker.source, self._need_run().last_line)

    def _close(self, state: SlotState, turn: Turn) -> None:
        """The turn holds the slot no longer; lines about it may still come."""
        if turn.after is None:
            turn.after = list(state.checkpoints)
        state.turn = None
        self.unfinished.append((state, turn))

    def _settle(self, state: SlotState) -> None:
        """The slot goes on to something else: its earlier turns are complete now."""
        if not self.unfinished:
            return
        waiting = [pair for pair in self.unfinished if pair[0] is state]
        if waiting:
            self.unfinished = [pair for pair in self.unfinished if pair[0] is not state]
            for _, turn in waiting:
                self._done(state, turn)

    def settle(self) -> None:
        """Nothing more will be said of the turns that hold no slot any more."""
        self._settle_all()

    def _settle_slotless(self) -> None:
        """Refusals that hold no slot do not wait for the log's end when there are many."""
        waiting = [pair for pair in self.unfinished if pair[0] is None]
        if len(waiting) > MAX_WAITING:
            still = waiting[-MAX_WAITING // 8 :]  # something may yet be said of the last ones
            self.unfinished = [*(pair for pair in self.unfinished if pair[0] is not None), *still]
            for _, turn in waiting[: -len(still)]:
                self._done(None, turn)

    def _settle_all(self) -> None:
        waiting, self.unfinished = self.unfinished, []
        for state, turn in waiting:
            self._done(state, turn)

    def _done(self, state: SlotState | None, turn: Turn) -> None:
        assert self.run is not None
        turn.finished = True
        self._trust_printed_build(self.run)
        settle_figures(self.run, state, turn)
        learn_sizes(self.run, turn)
        if state is not None:
            self._kept_prefix(state, turn)
            self.lists.after_turn(self.run, state, turn)
            if state.maker is turn and not (turn.is_child or evaluated(turn) or refused(turn)):
                # perhaps a refusal whose error line is lost: what the slot holds may be another turn's
                state.maker = None
        turn.dropped = list(self.cache.dropped[-64:]) if self.cache.dropped else []
        self._overwritten(turn)
        self.tracker.turn_done(self.run, turn)

    def _overwritten(self, turn: Turn) -> None:
        """The slot's old content is gone, unsaved, if the new prompt kept less than half of it."""
        held, kept = turn.n_held_slot, turn.n_common_slot
        if not held or kept is None or kept >= held / 2 or not (turn.batch_starts or turn.n_processed):
            return
        saved = turn.selection is not None and turn.selection.saved_line is not None
        if not saved and not any(x.n_tokens == held for x in self.cache.entries):
            q = turn.selected_quote
            text = q.text if q is not None else None
            self.cache.drop(Dropped(held, turn.first_line, text, "overwritten"))

    @staticmethod
    def _kept_prefix(state: SlotState, turn: Turn) -> None:
        """How much of the slot's content came from a slot file without checkpoints, or from the RAM prompt cache, and
        is still there."""
        kept = turn.n_common if turn.n_common is not None else turn.n_cached or 0
        if turn.cache_loaded:
            state.came_back_until = turn.n_cached if turn.n_cached is not None else turn.n_held or 0
        elif turn.batch_starts or turn.n_processed:
            state.came_back_until = min(state.came_back_until, turn.n_cached or 0)
        bare = turn.content_from == "slot-file" and not any(c.origin == "slot-file" for c in turn.before or [])
        if bare:
            # what was remembered belongs to other content; a list that is still there (up to b10001) too
            state.new_content()
            state.bare_until = kept
            turn.starts = UNSURE_STARTS
            if any(c.turn_no != turn.no for c in (*state.checkpoints, *turn.invalidated)) or turn.restored is not None:
                state.outlived = ("slot-file", turn.first_line, None)
                turn.stale = state.outlived if turn.restored is not None else None
        elif turn.batch_starts or turn.n_processed:
            state.bare_until = min(state.bare_until, kept)

    def _settle_if_complete(self, state: SlotState, turn: Turn) -> None:
        """Hand a turn over at once where its last line has been seen (so that a follower sees it)."""
        timed = turn.n_processed is not None and turn.n_generated is not None
        if turn.released and (timed and self.run is not None and self.run.prefixed):
            self._settle(state)

    @staticmethod
    def _trust_printed_build(run: Run) -> None:
        """Narrow the bracket to the printed build, if what was worded so far agrees with it.

        A clone without history prints build 1, a fork has numbers of its own.
        """
        build = run.build
        if build is not None and not run.bracket_broken and run.build_min <= build <= (run.build_max or build):
            run.build_min = run.build_max = build

    def _cleared(self, state: SlotState, why: str, e: Event, *, lost: str | None) -> None:
        """``lost``: how what the slot held went, if it is gone then."""
        # whether the list goes now (b10012 and later) or is swept at the next turn, it serves nothing:
        # the next turn has nothing in common with an empty slot
        if state.held and lost is not None:
            saved = any(x.n_tokens == state.held for x in self.cache.entries) or (
                self.cache.pending is not None and self.cache.pending.n_tokens == state.held
            )
            if not saved:
                self.cache.drop(Dropped(state.held, e.line, e.text, lost))
        state.held = 0
        state.content_from = "slot"
        state.clear_list(why, e.line, e.text, None)
        state.new_content()
        state.maker = None

    def _need_run(self) -> Run:
        assert self.run is not None
        return self.run


def _left_behind(turn: Turn) -> int | None:
    """What a turn without a release leaves in its slot: prompt and answer, but for the token sampled last."""
    if turn.n_prompt is None or turn.n_generated is None or turn.has_draft or turn.shifts or turn.input_truncated:
        return None
    return turn.n_prompt + turn.n_generated - 1
