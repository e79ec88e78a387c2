"""Events in log order become runs and turns.

One ``Tracker`` reads one source. Servers that write into it are told apart by what the wrapper calls them, and the
children of a router by port: each is a stream of its own, which holds one run at a time. A turn is handed to
``on_turn`` as soon as nothing that the log may still say can change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from ckptlog.events import Event
from ckptlog.intake.writer import Writer
from ckptlog.records import Ended
from ckptlog.timeline.incidents import incident, tell
from ckptlog.timeline.last_words import DIED, EVICTING, EXITED, GAVE_UP, STOPPING, hear, hear_stop
from ckptlog.timeline.limits import MAX_PORTS, MAX_PROCESSES, MAX_QUOTE, MAX_RUNS, MAX_UNNAMED, LeftOut
from ckptlog.timeline.model import Incident, LastWord, Quote, Run, Turn
from ckptlog.timeline.startup import STARTUP
from ckptlog.timeline.stream import Stream

#: what a stream is of
Key = tuple[Writer | None, int | None]


class Tracker:
    """Feeds events to one stream per server; ``runs`` are in order of their first line.

    ``before`` is the tracker of the source read just before: a rotated log goes on where it ended,
    if it has no server start of its own and its time goes on. ``run_numbers`` are the numbers that all
    trackers of an analysis take theirs from.
    """

    def __init__(
        self,
        source: int,
        on_turn: Callable[[Run, Turn], None] | None = None,
        *,
        before: Tracker | None = None,
        run_numbers: Iterator[int],
        left_out: LeftOut | None = None,
    ) -> None:
        self.source = source
        self.on_turn = on_turn
        self.left_out = LeftOut() if left_out is None else left_out
        self.n_checkpoints: int = 0 if before is None else before.n_checkpoints
        #: lines at which the clock fell and no server said that it starts
        self.clock_falls: list[int] = []
        #: lines that no server can have written behind what stands before them
        self.torn: list[int] = []
        self.runs: list[Run] = []
        self._run_numbers = run_numbers
        self._streams: dict[Key, Stream] = {}
        self._before = before
        #: a router's children: the port each is served at, by its model's name
        self._ports: dict[tuple[Writer | None, str], int] = {}
        #: that a router gave up waiting for an answer; the next cancel of a child's is of that request
        self.router_gave_up: Quote | None = None
        #: who is known to be a llama-server, and what of others may turn out to be one's
        self._servers: set[Writer | None] = {None}
        self._waiting: dict[Writer, list[Event]] = {}

    def feed(self, events: list[Event], writer: Writer | None = None) -> None:
        """Events of one writer."""
        if writer not in self._servers:
            events = self._of_a_server(writer, events)
        stream: Stream | None = None
        for event in events:
            if stream is None or stream.port != event.port:
                stream = self._streams.get((writer, event.port))
                if stream is None:
                    if event.kind == DIED and event.of.wording == "signal" and self._streams:
                        self._job_ended(writer, event)
                        continue
                    stream = self._streams[writer, event.port] = self._stream(writer, event)
            text = event.text
            if text is not None and len(text) > MAX_QUOTE:
                event.text = text[:MAX_QUOTE]
            # the common case written out, for this is run for every event: a wording met before, and a
            # clock that goes on
            handler, t = stream.routes.get(event.of), event.t
            if handler is None or (t is not None and stream.last_t is not None and t < stream.last_t):
                stream.take(event)
                continue
            if t is not None:
                stream.last_t = t
            stream.run.last_line = event.line  # type: ignore[union-attr]  # there is one where a wording was met
            handler(stream, event)

    def _of_a_server(self, writer: Writer | None, events: list[Event]) -> list[Event]:
        """What can be given to the timeline: another program's line may look like one that a server starts with, so
        that a server is only who writes a line with the head of its loggers."""
        assert writer is not None
        waiting = self._waiting.setdefault(writer, [])
        waiting += events
        if any(event.of.func is not None for event in events):
            self._servers.add(writer)
            return self._waiting.pop(writer)
        self._told_of_servers([event for event in events if event.kind == DIED and event.of.wording == "service"])
        del waiting[:-MAX_UNNAMED]
        return []

    def _told_of_servers(self, deaths: list[Event]) -> None:
        """What the system says of a process that ended, where only one server's lines are in the log."""
        if len(self._streams) != 1:
            return
        (stream,) = self._streams.values()
        for event in deaths:
            if event.line > stream.last_line:
                stream.take(event)

    def feed_waiting(self) -> None:
        """The source is at its end. Where nobody wrote a head, they were cut off."""
        waiting, self._waiting = self._waiting, {}
        if len(self._servers) == 1 and not self._streams:
            self._servers.update(waiting)
            for writer, events in waiting.items():
                self.feed(events, writer)

    def _stream(self, writer: Writer | None, event: Event) -> Stream:
        """A new stream for a server, or the one of the source before if this log goes on with it."""
        before, key = self._before, (writer, event.port)
        if before is not None:
            old = before._streams.get(key)
            if old is not None and old.goes_on_with(event):
                del before._streams[key]
                old.tracker = self
                return old
        stream = Stream(self, writer, event.port, began=event.line, anew=event.kind in STARTUP)
        earlier = self._processes(stream)
        if earlier:
            stream.slot_files = max(earlier, key=_last_line).slot_files
        for silent in sorted(earlier, key=_use)[: 1 - MAX_PROCESSES]:
            silent.finish(self._end(silent, "restart"))
            del self._streams[silent.writer, silent.port]
        if len(self._streams) >= MAX_PORTS:
            self._give_up(event.line)
        return stream

    def _processes(self, of: Stream) -> list[Stream]:
        """Other processes of the same program, in the order in which they began."""
        if of.writer is None:
            return []
        program = of.writer.program
        return [
            stream
            for (writer, port), stream in self._streams.items()
            if writer is not None and writer.program == program and port == of.port and stream is not of
        ]

    def _end(self, stream: Stream, why: Ended) -> Ended:
        """A process that fell silent before the next one of its program started was ended by that, unless such
        processes are several servers."""
        others = self._processes(stream)
        if not any(later.anew and later.began > stream.last_line for later in others):
            return why
        by_start = sorted([*others, stream], key=lambda one: one.began)
        in_turns = any(one.last_line > later.began for one, later in pairwise(by_start))
        return "cut" if in_turns else "restart"

    def _job_ended(self, writer: Writer | None, event: Event) -> None:
        """A shell's number of a job stands where a router's port would: "[1]    48211 abort  ./llama-server"."""
        stream = self._streams.get((writer, None))
        if stream is not None:
            stream.take(event)

    def of_child(self, writer: Writer | None, e: Event) -> None:
        """What a router says of one of its children."""
        if e.kind == GAVE_UP:
            children = [stream for (of, port), stream in self._streams.items() if of == writer and port is not None]
            waited_for = sum(stream.is_busy for stream in children)
            if e.of.wording == "read_failed" and waited_for == 1:
                self.router_gave_up = Quote(e.line, e.text or "")
            elif e.of.wording == "other":
                why = incident("request-failed", e.line, e.text, message=str(e.f.get("reason") or "").strip() or None, how="proxy")
                self._of_router(writer, why)
            return
        name = (writer, str(e.f["model"]))
        if len(self._ports) < MAX_PORTS and isinstance(port := e.f.get("port"), int):
            self._ports[name] = port
        if e.of.wording in EVICTING:
            self._of_router(writer, incident("model-unloaded", e.line, e.text, message=str(e.f["model"])))
        stream = self._streams.get((writer, self._ports.get(name, -1)))
        if stream is None or stream.run is None:
            return
        if e.kind == STOPPING:
            hear_stop(stream.run, e)
        elif e.kind == EXITED and e.f.get("status"):
            hear(stream.run, LastWord(e.line, e.text or "", "exited"))

    def _of_router(self, writer: Writer | None, what: Incident) -> None:
        """Something that a router did, or that happened to it."""
        router = self._streams.get((writer, None))
        if router is not None and router.run is not None:
            tell(router.run, what)

    def _give_up(self, line: int) -> None:
        """Too many servers: those of which nothing was said for longest are over."""
        silent = sorted(self._streams.items(), key=lambda item: _last_line(item[1]))
        for key, stream in silent[: MAX_PORTS // 8]:
            del self._streams[key]
            stream.finish("cut")
            self.left_out.count("ports", self.source, line)

    def settle(self) -> None:
        """Turns that hold no slot any more are complete."""
        for stream in self._streams.values():
            stream.settle()

    def finish(self, why: Ended = "cut") -> None:
        """Nothing more of its source: open turns are cut, or ended by what is known to come next."""
        for stream in self._streams.values():
            stream.finish(self._end(stream, why))

    @property
    def streams(self) -> list[Stream]:
        """One a server, in the order in which they began."""
        return list(self._streams.values())

    def new_run(self, writer: Writer | None, port: int | None, line: int) -> Run:
        run = Run(next(self._run_numbers), self.source, line, line, writer=writer, port=port)
        if run.no < MAX_RUNS:
            self.runs.append(run)
        else:
            self.left_out.count("runs", self.source, line)
        return run

    def turn_done(self, run: Run, turn: Turn) -> None:
        if self.on_turn is not None:
            self.on_turn(run, turn)


def _last_line(stream: Stream) -> int:
    return stream.last_line


def _use(stream: Stream) -> tuple[bool, int]:
    """Least for those that are missed least."""
    return stream.seen_turn, stream.last_line
