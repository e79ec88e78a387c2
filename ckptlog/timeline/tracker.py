"""Events in log order become runs and turns.

One ``Tracker`` reads one source. Router children are told apart by port, each a stream of its
own; a stream holds one run at a time. A turn is handed to ``on_turn`` as soon as nothing that
the log may still say can change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ckptlog.events import Event
from ckptlog.records import Ended
from ckptlog.timeline.last_words import DIED, EXITED, GAVE_UP, STOPPING, hear
from ckptlog.timeline.limits import MAX_PORTS, MAX_QUOTE, MAX_RUNS, LeftOut
from ckptlog.timeline.model import LastWord, Quote, Run, Turn
from ckptlog.timeline.stream import Stream


class Tracker:
    """Feeds events to one stream per port; ``runs`` are in order of their first line.

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
        self.runs: list[Run] = []
        self._run_numbers = run_numbers
        self._streams: dict[int | None, Stream] = {}
        self._before = before
        #: a router's children: the port each is served at, by its model's name
        self._ports: dict[str, int] = {}
        #: that a router gave up waiting for an answer; the next cancel of a child's is of that request
        self.router_gave_up: Quote | None = None

    def feed(self, events: list[Event]) -> None:
        stream: Stream | None = None
        for event in events:
            if stream is None or stream.port != event.port:
                stream = self._streams.get(event.port)
                if stream is None:
                    if event.kind == DIED and event.of.wording == "signal" and self._streams:
                        self._job_ended(event)
                        continue
                    stream = self._streams[event.port] = self._stream(event)
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

    def _stream(self, event: Event) -> Stream:
        """A new stream for a port, or the one of the source before if this log goes on with it."""
        before = self._before
        if before is not None:
            old = before._streams.get(event.port)
            if old is not None and old.goes_on_with(event):
                del before._streams[event.port]
                old.tracker = self
                return old
        if len(self._streams) >= MAX_PORTS:
            self._give_up(event.line)
        return Stream(self, event.port)

    def _job_ended(self, event: Event) -> None:
        """A shell's number of a job stands where a router's port would: "[1]    48211 abort  ./llama-server"."""
        stream = self._streams.get(None)
        if stream is not None:
            stream.take(event)

    def of_child(self, e: Event) -> None:
        """What a router says of one of its children."""
        if e.kind == GAVE_UP:
            waited_for = sum(stream.port is not None and stream.is_busy for stream in self._streams.values())
            if e.of.wording == "read_failed" and waited_for == 1:
                self.router_gave_up = Quote(e.line, e.text or "")
            return
        name = str(e.f["model"])
        if len(self._ports) < MAX_PORTS and isinstance(port := e.f.get("port"), int):
            self._ports[name] = port
        stream = self._streams.get(self._ports.get(name, -1))
        if stream is None or stream.run is None:
            return
        if e.kind == STOPPING:
            stream.run.stopped = e.line
        elif e.kind == EXITED and e.f.get("status"):
            hear(stream.run, LastWord(e.line, e.text or "", "exited"))

    def _give_up(self, line: int) -> None:
        """Too many ports: those of which nothing was said for longest are over."""
        silent = sorted(self._streams.items(), key=lambda item: item[1].last_line)
        for port, stream in silent[: MAX_PORTS // 8]:
            del self._streams[port]
            stream.finish("cut")
            self.left_out.count("ports", self.source, line)

    def settle(self) -> None:
        """Turns that hold no slot any more are complete."""
        for stream in self._streams.values():
            stream.settle()

    def finish(self, why: Ended = "cut") -> None:
        """Nothing more of its source: open turns are cut, or ended by what is known to come next."""
        for stream in self._streams.values():
            stream.finish(why)

    @property
    def streams(self) -> list[Stream]:
        """One a port, in the order in which they began."""
        return list(self._streams.values())

    def new_run(self, port: int | None, line: int) -> Run:
        run = Run(next(self._run_numbers), self.source, line, line, port=port)
        if run.no < MAX_RUNS:
            self.runs.append(run)
        else:
            self.left_out.count("runs", self.source, line)
        return run

    def turn_done(self, run: Run, turn: Turn) -> None:
        if self.on_turn is not None:
            self.on_turn(run, turn)
