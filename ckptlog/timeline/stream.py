"""One server's events, in order: where runs begin and end, and which handler takes which message."""

from __future__ import annotations

from typing import NamedTuple

from ckptlog.events import Event, Wording
from ckptlog.records import Ended
from ckptlog.timeline.dialect import FORK_FUNCTIONS, FORK_ONLY, SAME_AS, translate
from ckptlog.timeline.incidents import OF_FILES, process_over, start_over, take_file_error
from ckptlog.timeline.last_words import (
    LAST_WORDS,
    OF_CHILD,
    crash_of,
    is_over,
    names_another,
    stopped_in,
    take_last_word,
)
from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.on_checkpoints import ListMessages
from ckptlog.timeline.on_end import EndMessages
from ckptlog.timeline.on_fork import ForkMessages
from ckptlog.timeline.on_ram_cache import RamCacheMessages
from ckptlog.timeline.on_slot_choice import SlotChoice
from ckptlog.timeline.startup import FRESH, STARTUP

#: a fall of the clock by more than this is a new process (HTTP threads may be queued a little late)
CLOCK_FALL_US = 1_000_000

#: what the program around the server prints, where it is Ollama
OLLAMA = "ollama"
#: lines of the program around the server: who embeds it words them anew
NO_BRACKET = frozenset({"server_init", "build_info", "model_loaded", "listening"})


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
    # a process listens once, before its first task: a paste may begin the next one's start so late
    return kind == "listening" and end.seen_turn and t is None and end.last_t is None


class Stream(SlotChoice, RamCacheMessages, ForkMessages, ListMessages, EndMessages):
    """One server's stream of events; a handler is named after the grammar's kind (``on_created_checkpoint``)."""

    def take(self, e: Event) -> None:
        """An event that may begin a run, narrows the build's bracket, or says something of the server."""
        run = self.run
        of = e.of
        fork = e.kind in SAME_AS
        if fork:
            translate(e)
        startup = STARTUP.get(e.kind)
        if e.kind in LAST_WORDS:
            if run is not None and not names_another(self.writer, e):
                take_last_word(run, e)
            return
        if e.kind in OF_CHILD:
            self.tracker.of_child(self.writer, e)
            return
        if e.kind == OLLAMA:
            # (no line of the server's own: it neither begins a run nor shows that one goes on)
            self.ollama = True
            if run is not None:
                run.ollama = True
            return
        if e.kind in OF_FILES:  # (any program that loads a model says so)
            if run is not None:
                take_file_error(run, e)
            return
        if run is None:
            run = self._begin(e)
        elif restarted(self.end, e.kind, e.t) or (startup is not None and self._is_over(run)):
            if startup is None:
                # another log, or another server that writes into the same file: how the open turns end is not told
                self.tracker.clock_falls.append(e.line)
            self.finish("cut" if startup is None else "restart")
            run = self._begin(e)
        if e.t is not None:
            if run.t0 is None:
                run.t0 = 0
            if self.last_t is None or e.t > self.last_t:
                self.last_t = e.t
            run.prefixed = True
        run.last_line = e.line
        if fork or e.kind in FORK_ONLY:
            run.bracket_broken = True  # a fork's build numbers are not llama.cpp's
            run.fork = "ik_llama.cpp" if e.kind in FORK_ONLY else run.fork or "tagged"
        elif of not in self.seen_wordings:
            self.seen_wordings.add(of)
            self._bracket(run, of)
        if startup is not None:
            startup(run, e)
            if e.kind in FRESH:
                run.start_seen = self.cache.complete = True
            if e.kind == "new_slot" and e.slot is not None:
                state = self._slot(e.slot)
                state.held, state.list_known = 0, True
            return
        handler = self.handlers.get(e.kind)
        if handler is not None:
            if not fork:
                self.routes[of] = handler
            handler(self, e)

    def goes_on_with(self, e: Event) -> bool:
        """Is this the first line of a later file of the same run (a rotated log)?"""
        if self.run is None or e.kind in FRESH or e.t is None or self.last_t is None:
            return False
        return e.t >= self.last_t

    def _is_over(self, run: Run) -> bool:
        """Was the process's end told, and is this no model that is loaded anew behind a sleep?"""
        return self.seen_turn and not self.waking and is_over(run)

    def _begin(self, e: Event) -> Run:
        self._reset()
        self.run = self.tracker.new_run(self.writer, self.port, e.line)
        self.run.ollama = self.ollama
        return self.run

    @property
    def last_line(self) -> int:
        """The last line that was about this server."""
        return 0 if self.run is None else self.run.last_line

    @property
    def is_busy(self) -> bool:
        """Is a turn open?"""
        return any(state.turn is not None for state in self.slots.values())

    @property
    def end(self) -> StreamEnd:
        """How far the stream has come: what a new process is told by."""
        return StreamEnd(self.last_t, self.seen_turn, self.waking)

    def _bracket(self, run: Run, of: Wording) -> None:
        """Narrow the build's bracket by the wording just seen."""
        if of.kind in NO_BRACKET:
            return
        if of.func in FORK_FUNCTIONS:
            run.fork, run.bracket_broken = "ik_llama.cpp", True
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

    def finish(self, why: Ended) -> None:
        run, open_turns = self.run, [state for state in self.slots.values() if state.turn is not None]
        if run is not None:
            start_over(run)
            if not open_turns:
                process_over(run, why)
            self._tell_unplaced()
        ends_kept = run is not None and run.n_turns - run.n_releases <= len(open_turns)
        for state in open_turns:
            assert state.turn is not None
            self._cut_short(state.turn, why, ends_kept)
            self._close(state, state.turn)
        self._settle_all()

    def _cut_short(self, turn: Turn, why: Ended, ends_kept: bool) -> None:
        """The process is over, or the log, and the turn was still open: unless its end is missing as those of others are."""
        run = self._need_run()
        turn.ended = why
        if turn.n_generated is not None:
            return  # its answer was complete
        if stopped_in(run, turn):
            if not ends_kept:
                return
            turn.ended = "cancel"
            if turn.cancel is None or run.stop is None or turn.cancel.line > run.stop.line:
                turn.stopped = run.stop
            return
        turn.crash = crash_of(run)
        if turn.crash:
            turn.ended = "error"
