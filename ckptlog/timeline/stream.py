"""One server's events, in order: where runs begin and end, and what each message does to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ckptlog.events import Event, Wording
from ckptlog.records import Ended
from ckptlog.timeline.cache import CacheEntry, RamCache
from ckptlog.timeline.dialect import SAME_AS, translate
from ckptlog.timeline.figures import settle_figures
from ckptlog.timeline.lists import ListKeeper
from ckptlog.timeline.model import Check, Checkpoint, Dropped, Quote, Run, Selection, Shift, Turn
from ckptlog.timeline.refusals import REFUSALS, reason_of
from ckptlog.timeline.slot import SlotState, quote
from ckptlog.timeline.startup import FRESH, STARTUP

if TYPE_CHECKING:
    from ckptlog.timeline.tracker import Tracker

#: a fall of the clock by more than this is a new process (HTTP threads may be queued a little late)
CLOCK_FALL_US = 1_000_000

#: lines of the program around the server: who embeds it words them anew
NO_BRACKET = frozenset({"server_init", "build_info", "model_loaded", "listening"})


def rows_of(e: Event, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The fields of each line of a block, in the order of ``names``; of a single line, one tuple."""
    rows = e.f.get("rows")
    if rows is None:
        return [tuple(e.f.get(name) for name in names)]
    given: tuple[str, ...] = e.f["names"]
    if given == names:
        return list(rows)
    columns = list(zip(*rows, strict=True))
    nothing = (None,) * len(rows)
    wanted = (columns[given.index(name)] if name in given else nothing for name in names)
    return list(zip(*wanted, strict=True))


class StreamEnd(NamedTuple):
    """What a stream has seen last: the clock (microseconds), whether a turn, whether the model is loaded anew."""

    last_t: int | None
    seen_turn: bool
    waking: bool


def restarted(end: StreamEnd, kind: str, t: int | None) -> bool:
    """Does a message of that kind and time come from another process than what was seen before it?"""
    if t is not None and end.last_t is not None and t < end.last_t - CLOCK_FALL_US:
        return True
    if kind in FRESH and end.seen_turn and not end.waking:
        # with a clock, only a fall of the clock proves a new process (a short-lived one may
        # restart within the margin); without one, start-up messages behind a turn do
        return t is None or end.last_t is None or t < end.last_t
    return False


class Stream:
    """The state behind one stream of events (one port)."""

    def __init__(self, tracker: Tracker, port: int | None) -> None:
        self.tracker = tracker
        self.port = port
        self.run: Run | None = None
        #: slot files written in this log: path -> (tokens held, checkpoints); they outlive a run
        self.slot_files: dict[str, tuple[int | None, list[Checkpoint]]] = {}
        self.slot_files_read = False
        self._reset()
        self._handlers: dict[str, Callable[[Event], None]] = {
            name[3:]: getattr(self, name) for name in dir(self) if name.startswith("on_")
        }

    def _reset(self) -> None:
        self.slots: dict[int, SlotState] = {}
        self.cache = RamCache()
        self.lists = ListKeeper()
        self.selection: Selection | None = None
        self.slot_lcp: dict[int, int] = {}
        self.checked_prompt: int | None = None
        self.idle_slot: int | None = None
        self.last_slot: SlotState | None = None
        self.last_t: int | None = None
        self.seen_turn = False
        self.seen_wordings: set[Wording] = set()
        #: wordings met in this run, with what handles them
        self.routes: dict[Wording, Callable[[Event], None]] = {}
        self.waking = False
        self.tasks: dict[int, Turn] = {}
        self.unfinished: list[tuple[SlotState | None, Turn]] = []
        self.loaded_entry: CacheEntry | None = None
        self._mismatch: tuple[Turn, Event] | None = None
        self._timing_turn: Turn | None = None

    # ------------------------------------------------------------------ runs

    def take(self, e: Event) -> None:
        """One event. The common case, a wording met before and a clock that goes on, is the short way."""
        route = self.routes.get(e.of)
        t = e.t
        if route is None or (t is not None and self.last_t is not None and t < self.last_t):
            self._take_first(e)
            return
        if t is not None:
            self.last_t = t
        run = self.run
        assert run is not None
        run.last_line = e.line
        route(e)

    def _take_first(self, e: Event) -> None:
        """An event that may begin a run, narrows the build's bracket, or says something of the server."""
        run = self.run
        of = e.of
        fork = e.kind in SAME_AS
        if fork:
            translate(e)
        startup = STARTUP.get(e.kind)
        if run is None:
            run = self._begin(e)
        elif restarted(self.end, e.kind, e.t):
            self.finish("restart")
            run = self._begin(e)
        if e.t is not None:
            if run.t0 is None:
                run.t0 = 0
            if self.last_t is None or e.t > self.last_t:
                self.last_t = e.t
            run.prefixed = True
        run.last_line = e.line
        if fork or e.kind == "fork_cache":
            run.bracket_broken = True  # a fork's build numbers are not llama.cpp's
        elif of not in self.seen_wordings:
            self.seen_wordings.add(of)
            self._bracket(run, of)
        if startup is not None:
            startup(run, e)
            if e.kind in FRESH:
                run.start_seen = True
            if e.kind == "new_slot" and e.slot is not None:
                state = self._slot(e.slot)
                state.held, state.list_known = 0, True
            return
        handler = self._handlers.get(e.kind)
        if handler is not None:
            if not fork:
                self.routes[of] = handler
            handler(e)

    def goes_on_with(self, e: Event) -> bool:
        """Is this the first line of a later file of the same run (a rotated log)?"""
        if self.run is None or e.kind in FRESH or e.t is None or self.last_t is None:
            return False
        return e.t >= self.last_t

    def _begin(self, e: Event) -> Run:
        self._reset()
        self.run = self.tracker.new_run(self.port, e.line)
        return self.run

    @property
    def end(self) -> StreamEnd:
        """How far the stream has come: what a new process is told by."""
        return StreamEnd(self.last_t, self.seen_turn, self.waking)

    def _bracket(self, run: Run, of: Wording) -> None:
        """Narrow the build's bracket by the wording just seen."""
        if of.kind in NO_BRACKET:
            return
        if of.build_min > run.build_min:
            if run.build_max is None or of.build_min <= run.build_max:
                run.build_min = of.build_min
            else:
                run.bracket_broken = True
        if of.build_max is not None and (run.build_max is None or of.build_max < run.build_max):
            if of.build_max >= run.build_min:
                run.build_max = of.build_max
            else:
                run.bracket_broken = True

    @staticmethod
    def _trust_printed_build(run: Run) -> None:
        """Narrow the bracket to the printed build, if what was worded so far agrees with it.

        A clone without history prints build 1, a fork has numbers of its own.
        """
        build = run.build
        if build is not None and not run.bracket_broken and run.build_min <= build <= (run.build_max or build):
            run.build_min = run.build_max = build

    def finish(self, why: Ended) -> None:
        for state in self.slots.values():
            if state.turn is not None:
                state.turn.ended = why
                self._close(state, state.turn)
        self._settle_all()

    # ------------------------------------------------------------------ slots and turns

    def _slot(self, slot_id: int) -> SlotState:
        state = self.slots.get(slot_id)
        if state is None:
            run = self.run
            fresh = run is not None and run.start_seen
            state = self.slots[slot_id] = SlotState(slot_id, held=0 if fresh else None, list_known=fresh)
        return state

    def _turn(self, e: Event, *, begin: bool = True) -> tuple[SlotState | None, Turn | None]:
        """The open turn an event belongs to; one is begun for a log that starts in mid-turn."""
        if e.slot is None:
            return None, None
        found = self.slots.get(e.slot)
        state = found if found is not None else self._slot(e.slot)
        turn = state.turn
        if turn is not None and (e.task is None or e.task < 0 or turn.task == e.task):
            self._touch(turn, e)
            return state, turn
        if e.task is not None and e.task >= 0:
            known = self.tasks.get(e.task)
            if known is not None and known.slot == e.slot and not known.finished:
                self._touch(known, e)
                return state, known
            if begin:
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
            self._close(state, state.turn)
        self._settle(state)
        if e.task == 0 and run.n_turns == 0 and state.held is None:
            # the process's first task: no slot holds anything yet
            state.held, state.list_known = 0, True
        run.n_turns += 1
        self.seen_turn = True
        self.waking = False
        turn = Turn(run.n_turns, run.no, self.tracker.source, state.id, e.task, e.line, e.line, t_start=e.t, t_end=e.t)
        turn.start_seen = start_seen
        turn.previous = state.last_turn
        if turn.previous is not None:
            turn.previous.previous = None  # one step back is enough; no chain of the whole log
        selection = state.selection
        state.selection = None
        if selection is not None:
            turn.selection = selection
            turn.first_line = min(turn.first_line, selection.line)
            if selection.text:
                turn.selected_quote = Quote(selection.line, selection.text)
        turn.n_held_slot = state.held
        turn.was_empty = None if state.held is None else state.held == 0
        if selection is not None and selection.found is not None:
            self._load_entry(state, turn, selection)
        turn.n_held = state.held
        turn.content_from = state.content_from
        turn.list_lost, state.list_lost = state.list_lost, []
        turn.before_known = state.list_known
        turn.first_born = state.first_born
        turn.bare_until = state.bare_until
        turn.user_starts = state.user_starts
        turn.boundaries_seen = state.boundaries_seen
        turn.starts_complete = state.starts_complete
        turn.before = list(state.checkpoints)
        state.turn = turn
        state.last_turn = turn
        if e.task is not None and e.task >= 0:
            self.tasks[e.task] = turn
            if len(self.tasks) > 4096:
                self._forget_old_tasks()
        self.last_slot = state
        return turn

    def _forget_old_tasks(self) -> None:
        keep = sorted(self.tasks)[-512:]
        self.tasks = {task: self.tasks[task] for task in keep}

    def _load_entry(self, state: SlotState, turn: Turn, selection: Selection) -> None:
        """A RAM cache entry replaced the slot's content and list."""
        assert selection.found is not None
        f_keep, sim = selection.found
        n_tokens, lcp = None, None
        for n, candidate_lcp, fk, fs in reversed(selection.candidates):
            if fk == f_keep and fs == sim:
                n_tokens, lcp = n, candidate_lcp
                break
        entry: CacheEntry | None = self.loaded_entry
        self.loaded_entry = None
        if entry is None and n_tokens is not None:
            entry = self.cache.take(n_tokens)
        if entry is None:
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
        state.list_lost.clear()
        state.held = n_tokens
        state.new_content()
        if entry is not None:
            state.first_born = entry.first_born
            state.user_starts = list(entry.user_starts)
            state.boundaries_seen = entry.boundaries_seen
            state.starts_complete = entry.starts_complete
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
        assert self.run is not None
        self.run.checkpoints.append(checkpoint)

    def _close(self, state: SlotState, turn: Turn) -> None:
        """The turn holds the slot no longer; lines about it may still come."""
        if turn.after is None:
            turn.after = list(state.checkpoints)
        state.turn = None
        self.unfinished.append((state, turn))

    def _settle(self, state: SlotState) -> None:
        """The slot goes on to something else: its earlier turns are complete now."""
        waiting = [pair for pair in self.unfinished if pair[0] is state]
        if waiting:
            self.unfinished = [pair for pair in self.unfinished if pair[0] is not state]
            for _, turn in waiting:
                self._done(state, turn)

    def settle(self) -> None:
        """Nothing more will be said of the turns that hold no slot any more."""
        self._settle_all()

    def _settle_all(self) -> None:
        waiting, self.unfinished = self.unfinished, []
        for state, turn in waiting:
            self._done(state, turn)

    def _done(self, state: SlotState | None, turn: Turn) -> None:
        assert self.run is not None
        turn.finished = True
        self._trust_printed_build(self.run)
        settle_figures(self.run, state, turn)
        if state is not None:
            self._bare_prefix(state, turn)
            self.lists.after_turn(self.run, state, turn)
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
            self.cache.dropped.append(Dropped(held, turn.first_line, text, "overwritten"))
            del self.cache.dropped[:-500]

    @staticmethod
    def _bare_prefix(state: SlotState, turn: Turn) -> None:
        """How much of the slot's content came from a slot file without checkpoints, and is still there."""
        kept = turn.n_common if turn.n_common is not None else turn.n_cached or 0
        bare = turn.content_from == "slot-file" and not any(c.origin == "slot-file" for c in turn.before or [])
        if bare:
            # what was remembered belongs to other content; a list that is still there (up to b10001) too
            state.new_content()
            state.bare_until = kept
            turn.first_born, turn.user_starts = None, []
            turn.boundaries_seen = turn.starts_complete = False
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

    # ------------------------------------------------------------------ slot choice

    def on_check_slot_sim(self, e: Event) -> None:
        if e.slot is None:
            return
        chosen = self.selection
        if chosen is not None and chosen.how == "id" and chosen.slot == e.slot:
            # a slot asked for by number is compared behind the line that names it
            chosen.slot_lcp[e.slot] = e.f["lcp"]
            chosen.n_prompt = e.f["n_tokens"]
            return
        self.slot_lcp[e.slot] = e.f["lcp"]
        self.checked_prompt = e.f["n_tokens"]

    def _select(self, e: Event, how: str) -> Selection | None:
        if e.slot is None:
            return None
        self.cache.settle()
        self.loaded_entry = None
        self.idle_slot = None
        selection = Selection(e.slot, e.line, how, text=e.text)
        selection.slot_lcp, self.slot_lcp = self.slot_lcp, {}
        selection.n_prompt, self.checked_prompt = self.checked_prompt, None
        self.selection = selection
        state = self._slot(e.slot)
        state.selection = selection
        self._settle(state)
        return selection

    def on_selected_lcp(self, e: Event) -> None:
        selection = self._select(e, "lcp")
        if selection is not None:
            selection.sim = e.f.get("sim")
            selection.f_keep = e.f.get("f_keep")
            selection.thold = e.f.get("thold")

    def on_selected_lcs(self, e: Event) -> None:
        selection = self._select(e, "lcs")
        if selection is not None:
            selection.lcs_len = e.f.get("lcs_len")
            selection.sim = e.f.get("sim")

    def on_selected_lru(self, e: Event) -> None:
        selection = self._select(e, "lru")
        if selection is not None and e.f.get("t_last") == -1:
            # a slot that was never used holds nothing (unless a slot file was loaded into it)
            state = self._slot(selection.slot)
            if state.held is None:
                state.held, state.list_known = 0, True

    def on_selected_id(self, e: Event) -> None:
        self._select(e, "id")

    # ------------------------------------------------------------------ RAM prompt cache

    def on_cache_updating(self, e: Event) -> None:
        self.idle_slot = None

    def on_saving_idle_slot(self, e: Event) -> None:
        self.idle_slot = e.slot

    def on_cache_saving(self, e: Event) -> None:
        slot_id = self.idle_slot
        if slot_id is None and self.selection is not None:
            slot_id = self.selection.slot
            self.selection.saved_line = e.line
        state = self.slots.get(slot_id) if slot_id is not None else None
        n_tokens = e.f["n_tokens"]
        if state is None:
            self.cache.save(CacheEntry(n_tokens, None, saved_line=e.line))
            return
        if state.held is None or state.held != n_tokens:
            if state.held is not None:
                state.list_known = False
            state.held = n_tokens
        known = list(state.checkpoints) if state.list_known else None
        entry = CacheEntry(n_tokens, known, list(state.dead[-256:]), e.line)
        entry.first_born = state.first_born
        entry.user_starts, entry.boundaries_seen = list(state.user_starts), state.boundaries_seen
        entry.starts_complete = state.starts_complete
        self.cache.save(entry)

    def on_cache_already(self, e: Event) -> None:
        self.cache.skip_pending()

    def on_cache_state_too_big(self, e: Event) -> None:
        entry = self.cache.skip_pending()
        if self.selection is not None:
            self.selection.skipped_too_big = quote(e.line, e.text)
        if entry is not None:
            self.cache.dropped.append(Dropped(entry.n_tokens, e.line, e.text, "too-big"))

    def on_cache_removing_obsolete(self, e: Event) -> None:
        self.cache.remove_obsolete(e.f["n_tokens"])

    def _drop_oldest(self, e: Event, why: str) -> None:
        self.cache.drop_oldest(e.line, e.text, why)
        if self.selection is not None:
            self.selection.removed = quote(e.line, e.text)

    def on_cache_making_room(self, e: Event) -> None:
        self._drop_oldest(e, "making-room")

    def on_cache_size_limit(self, e: Event) -> None:
        self._drop_oldest(e, "size-limit")

    def on_cache_token_limit(self, e: Event) -> None:
        self._drop_oldest(e, "token-limit")

    def on_cache_looking(self, e: Event) -> None:
        self.cache.settle()
        if self.selection is not None:
            self.selection.looked = True
            self.selection.base_f_keep = e.f.get("f_keep")
            self.selection.base_sim = e.f.get("sim")

    def on_cache_candidate(self, e: Event) -> None:
        if self.selection is not None:
            self.selection.candidates.extend(rows_of(e, ("n_tokens", "lcp", "f_keep", "sim")))

    def on_cache_found(self, e: Event) -> None:
        selection = self.selection
        if selection is None:
            return
        f_keep, sim = e.f["f_keep"], e.f["sim"]
        selection.found = (-1.0 if f_keep is None else f_keep, -1.0 if sim is None else sim)
        selection.found_line, selection.found_text = e.line, e.text
        for n, _, fk, fs in reversed(selection.candidates):
            if (fk, fs) == selection.found:
                self.loaded_entry = self.cache.take(n)
                return

    def on_cache_restore_failed(self, e: Event) -> None:
        self._load_failed(e)

    def on_prompt_load_failed(self, e: Event) -> None:
        self._load_failed(e)

    def _load_failed(self, e: Event) -> None:
        """The server then clears the slot: nothing is held."""
        selection = self.selection
        if selection is None:
            return
        selection.found = None
        selection.load_failed_line, selection.load_failed_text = e.line, e.text
        state = self._slot(selection.slot)
        state.held = 0
        state.clear_list("cache-load-failed", e.line, e.text, None)

    def on_cache_state(self, e: Event) -> None:
        self.cache.begin_listing()

    def on_cache_entry(self, e: Event) -> None:
        self.cache.listed(rows_of(e, ("n_tokens", "n_checkpoints")))

    def on_cache_update_took(self, e: Event) -> None:
        gone = self.cache.end_listing()
        selection = self.selection
        if selection is not None and selection.found is not None and self.loaded_entry is None:
            f_keep = selection.found[0]
            fitting = [
                x for x in gone
                if x.n_tokens and abs(round(f_keep * x.n_tokens) / x.n_tokens - f_keep) <= 0.00051
            ]  # fmt: skip
            if len(fitting) == 1:
                self.loaded_entry = fitting[0]

    # ------------------------------------------------------------------ a turn's beginning

    def on_processing_task(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        if state.turn is not None and state.turn.task == e.task and e.task is not None:
            self._touch(state.turn, e)
            return
        turn = self._open(state, e, start_seen=True)
        if e.f.get("is_child"):
            turn.is_child = True
        self.selection = None

    def on_copying_to_child(self, e: Event) -> None:
        child = self.slots.get(e.f.get("child", -1))
        if child is None or child.turn is None or e.task is None:
            return
        turn = child.turn
        turn.child_of = e.task
        turn.is_child = True
        parent = self.slots.get(e.slot) if e.slot is not None else None
        if parent is not None:
            turn.cleared.extend(child.clear_list("copied", e.line, None, turn))
            child.list_lost.clear()
            child.held = parent.held
            child.list_known = parent.list_known
            for old in parent.checkpoints:
                copy = Checkpoint(
                    old.n_tokens, old.pos_min, old.pos_max, old.size_mib, turn.run, child.id, old.task, e.line,
                    origin="copied", turn_no=old.turn_no,
                )  # fmt: skip
                child.checkpoints.append(copy)
                self._keep_record(copy)

    def on_new_prompt(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        turn.n_ctx_slot = e.f.get("n_ctx_slot")
        turn.n_keep = e.f.get("n_keep")
        turn.n_prompt = e.f.get("n_prompt")
        turn.new_prompt_line = e.line
        if self.run is not None:
            self.run.n_ctx_slot = self.run.n_ctx_slot or turn.n_ctx_slot
        turn.basis["n_prompt"] = "observed"

    def on_empty_prompt(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.empty_prompt = True

    def on_init_sampler(self, e: Event) -> None:
        _, turn = self._turn(e, begin=False)
        if turn is not None:
            turn.prompt_done = turn.sampled = True

    def on_input_truncated(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.input_truncated = quote(e.line, e.text)
            turn.error_fields.update(e.f)

    # ------------------------------------------------------------------ reuse point

    def on_memory_state(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            f = e.f
            turn.memory_state = (f["n_past"], f["n_cached_tokens"], f["pos_min"], f.get("n_swa"))
            turn.memory_state_quote = quote(e.line, e.text)
            if turn.n_held is None:
                turn.n_held = f["n_cached_tokens"]
            run = self._need_run()
            if run.n_swa is None and (f.get("n_swa") or 0) > 1:
                run.n_swa = f["n_swa"]

    def on_fork_cache(self, e: Event) -> None:
        """The fork prints what the slot holds and where reuse ends, without naming the slot."""
        state = self.last_slot
        if state is not None and state.turn is not None and state.turn.n_held is None:
            state.turn.n_held = e.f.get("n_cached_tokens")

    def on_checking_checkpoint(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            self.lists.memory_hint(self._need_run(), e)
            turn.checks.append(Check(e.line, e.text or "", e.f["pos_min"], e.f["pos_max"], e.f["thold"]))

    def on_restored_checkpoint(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None:
            self.lists.restored(self._need_run(), state, turn, e)

    def on_restore_failed(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.restore_failed = quote(e.line, e.text)

    def on_forcing_full(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.forced = quote(e.line, e.text)

    def on_need_one_token(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.need_one_token = quote(e.line, e.text)
            n_prompt = e.f.get("n_prompt")
            if turn.n_prompt is None and isinstance(n_prompt, int):
                turn.n_prompt = n_prompt
                turn.basis["n_prompt"] = "observed"

    def on_reusing_chunk(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.chunk_moves += 1
            turn.chunk_end = e.f.get("to1")

    def on_batch_start(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        n_tokens = e.f.get("n_tokens")
        if isinstance(n_tokens, int):
            turn.batch_starts.append(n_tokens)
            self._need_run().saw_trace = True

    def on_prompt_progress(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        f = e.f
        end = f.get("n_past") if f.get("n_past") is not None else f.get("n_tokens")
        if isinstance(end, int):
            turn.progress_end = end

    def on_prompt_done(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is None:
            return
        turn.prompt_done = True
        end = e.f.get("n_past") if e.f.get("n_past") is not None else e.f.get("n_tokens")
        if isinstance(end, int):
            turn.progress_end = end
            if turn.n_prompt is None:
                turn.n_prompt = end
                turn.basis["n_prompt"] = "observed"

    def on_prompt_processing(self, e: Event) -> None:
        _, turn = self._turn(e)
        if turn is not None:
            turn.progress = [*turn.progress[-3:], (e.f["n_tokens"], e.f["progress"])]

    def on_mismatch_old(self, e: Event) -> None:
        _, turn = self._mismatch_turn(e)
        if turn is not None:
            turn.mismatch_seen = True

    def on_mismatch_new(self, e: Event) -> None:
        _, turn = self._mismatch_turn(e)
        if turn is not None:
            turn.mismatch_seen = True
            self._mismatch = (turn, e)
            turn.mismatch_old = e.f.get("old_after")
            turn.mismatch_new = e.f.get("new_after")

    def _mismatch_turn(self, e: Event) -> tuple[SlotState | None, Turn | None]:
        if e.slot is None:  # the head was trimmed away: the slot that began last
            state = self.last_slot
            return state, state.turn if state is not None else None
        return self._turn(e)

    def on_token_ids(self, e: Event) -> None:
        _, turn = self._turn(e, begin=False)
        if turn is None or not turn.mismatch_seen:
            return
        if self._mismatch is not None and self._mismatch[0] is turn:
            # the windows' texts are complete only when the id rows come
            turn.mismatch_old = self._mismatch[1].f.get("old_after")
            turn.mismatch_new = self._mismatch[1].f.get("new_after")
        ids = e.f.get("ids")
        row = [int(x) for x in str(ids).split()] if ids is not None else []
        if len(turn.mismatch_ids) < 2:
            turn.mismatch_ids.append(row)

    # ------------------------------------------------------------------ the list

    def on_created_checkpoint(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None:
            checkpoint = self.lists.created(self._need_run(), state, turn, e)
            self._keep_record(checkpoint)

    def on_erased_old(self, e: Event) -> None:
        self._erase(e, "evicted")

    def on_swa_checkpoint_erase(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None:
            self.lists.swa_erased(state, turn, e)

    def on_erased_too_close(self, e: Event) -> None:
        self._erase(e, "thinned")

    def on_superseding(self, e: Event) -> None:
        self._erase(e, "superseded")

    def on_erased_invalidated(self, e: Event) -> None:
        self._erase(e, "invalidated")

    def _erase(self, e: Event, fate: str) -> None:
        state, turn = self._turn(e)
        if state is not None and turn is not None:
            checkpoint = self.lists.erased(self._need_run(), state, turn, e, fate)
            if checkpoint is not None:
                self._keep_record(checkpoint)

    def on_context_shift(self, e: Event) -> None:
        state, turn = self._turn(e)
        if state is None or turn is None:
            return
        run = self._need_run()
        run.n_ctx_shifts += 1
        run.context_shift = True
        f = e.f
        turn.shifts.append(Shift(e.line, e.text or "", f["n_keep"], f["n_left"], f["n_discard"], e.t))
        self.lists.shifted(run, state, turn, e)

    def on_clearing_prompt(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        if state.turn is not None and not state.turn.released and state.turn.task == e.task:
            return  # a child's own clearing comes behind its release
        self._cleared(state, "cleared", e)

    def on_purging_slot(self, e: Event) -> None:
        self._cleared(self._slot(e.f["slot"]), "purged", e)

    def _cleared(self, state: SlotState, why: str, e: Event) -> None:
        # whether the list goes now (b10012 and later) or is swept at the next turn, it serves nothing:
        # the next turn has nothing in common with an empty slot
        if state.held:
            saved = any(x.n_tokens == state.held for x in self.cache.entries) or (
                self.cache.pending is not None and self.cache.pending.n_tokens == state.held
            )
            if not saved:
                self.cache.dropped.append(Dropped(state.held, e.line, e.text, why))
        state.held = 0
        state.content_from = "slot"
        state.clear_list(why, e.line, e.text, None)
        state.new_content()

    def on_appended_checkpoints(self, e: Event) -> None:
        if e.slot is not None:
            state = self._slot(e.slot)
            self.slot_files[str(e.f.get("path"))] = (state.held, list(state.checkpoints))

    def on_restored_checkpoints_file(self, e: Event) -> None:
        if e.slot is None:
            return
        state = self._slot(e.slot)
        self._settle(state)
        state.clear_list("slot-file", e.line, e.text, None)
        state.list_lost.clear()
        state.new_content()
        state.content_from = "slot-file"
        self.slot_files_read = True
        held, saved = self.slot_files.get(str(e.f.get("path")), (None, []))
        state.held = held
        n = e.f.get("n")
        state.list_known = len(saved) == n
        run = self._need_run()
        for old in saved if len(saved) == n else []:
            copy = Checkpoint(
                old.n_tokens, old.pos_min, old.pos_max, old.size_mib, run.no, state.id, None, e.line, e.text,
                origin="slot-file",
            )  # fmt: skip
            state.checkpoints.append(copy)
            self._keep_record(copy)

    # ------------------------------------------------------------------ a turn's end

    def on_prompt_eval_time(self, e: Event) -> None:
        turn = self._timed_turn(e)
        if turn is not None and turn.prompt_ms is None:
            turn.prompt_ms = e.f["ms"]
            turn.n_processed = e.f["n_tokens"]
            turn.basis["n_processed"] = "observed"

    def on_eval_time(self, e: Event) -> None:
        turn = self._timed_turn(e)
        if turn is not None and turn.generation_ms is None:
            turn.generation_ms = e.f["ms"]
            turn.n_generated = e.f["n_tokens"]
            turn.basis["n_generated"] = "observed"

    def on_timing_head(self, e: Event) -> None:
        state, turn = self._turn(e, begin=False)
        if state is not None:
            self.last_slot = state
            self._timing_turn = turn

    def _timed_turn(self, e: Event) -> Turn | None:
        """Old builds print the three timing lines bare, below a head line that names the slot."""
        if e.slot is not None or e.task is not None:
            return self._turn(e)[1]
        turn = self._timing_turn
        if turn is None and self.last_slot is not None:
            turn = self.last_slot.turn or self.last_slot.last_turn
        if turn is not None and not turn.finished:
            if e.line > turn.last_line:
                turn.last_line = e.line
            return turn
        return None

    def on_draft_acceptance(self, e: Event) -> None:
        turn = self._timed_turn(e)
        if turn is not None:
            turn.has_draft = True

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
        turn.released = True
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

    def on_cancel_task(self, e: Event) -> None:
        turn = self.tasks.get(e.f["task"])
        if turn is None or turn.finished:
            return
        turn.cancel = quote(e.line, e.text)
        if e.line > turn.last_line and not turn.released:
            turn.last_line = e.line

    def on_send_error(self, e: Event) -> None:
        task = e.f.get("task")
        reason = reason_of(e.of.wording)
        turn = self.tasks.get(task) if isinstance(task, int) else None
        if turn is not None and turn.finished:
            return
        if turn is None:
            if reason not in REFUSALS or not isinstance(task, int):
                return
            turn = self._slotless(e, task)
        turn.error = quote(e.line, e.text)
        turn.error_reason = reason
        turn.error_fields.update({k: v for k, v in e.f.items() if k not in ("task", "reason")})
        turn.last_line = max(turn.last_line, e.line)
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
        self.unfinished.append((None, turn))
        return turn

    def on_decode_failed(self, e: Event) -> None:
        run = self._need_run()
        del run
        for state in self.slots.values():
            if state.turn is not None and state.turn.error is None:
                state.turn.error_fields.setdefault("decode", e.text or "")

    def on_exiting_sleep(self, e: Event) -> None:
        """The model is loaded anew in the same process: slots, lists and cache are empty."""
        self.waking = True
        self._settle_all()
        for state in self.slots.values():
            state.held = 0
            state.clear_list("sleep", e.line, e.text, None)
            state.new_content()
        self.cache = RamCache()

    def _need_run(self) -> Run:
        assert self.run is not None
        return self.run
