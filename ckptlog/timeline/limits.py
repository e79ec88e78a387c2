"""How much of one log is kept: far more than a server writes, and little enough for memory.

What a limit keeps out is counted, with its first line, and told as a warning in every report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ckptlog.records import TurnRecord
    from ckptlog.timeline.model import Turn

#: turns that a report holds: half a year of a busy server, or some 4 GB of -lv 4. Turns beyond are counted only
MAX_TURNS = 500_000
#: turns without an end and without a figure that a report holds: a server leaves one a slot behind when it is
#: killed, a log of which lines were lost some more
MAX_EMPTY = 10_000
#: checkpoints that a report holds: about three a turn are usual
MAX_CHECKPOINTS = 3 * MAX_TURNS
#: server starts that a report holds: a server that crashes every ten seconds, for a week
MAX_RUNS = 60_000
#: slots followed in one run; the server itself takes up to 256 sequences
MAX_SLOTS = 512
#: servers followed at a time: children of a router, each on a port of its own, or what else writes into the file
MAX_PORTS = 256
#: processes of one program of which something is remembered: a server that is started anew leaves one behind
MAX_PROCESSES = 64
#: messages kept of a program that may turn out to be a server
MAX_UNNAMED = 4096
#: checkpoints in one slot's list, whatever --ctx-checkpoints says; the default is 32
MAX_LISTED = 1024
#: checkpoints lost by eviction that a slot's content is still compared with
MAX_DEAD = 1 << 16
#: batches, checkpoint messages and shifts of one turn
MAX_IN_TURN = 100_000
#: prompts in the RAM cache, and slot files, that are told apart
MAX_SAVED = 4096
#: refusals without a slot that wait for what may still be said of them
MAX_WAITING = 512
#: what emptied a slot's list, prompts compared for one choice of a slot, and the like, between two turns
MAX_BETWEEN = 4096
#: different things outside of turns that are told apart in one run, and characters of their words
MAX_INCIDENTS = 32
MAX_WORDS = 400
#: errors of one start
MAX_START_ERRORS = 18
#: characters of a line that are kept as evidence
MAX_QUOTE = 10_000

_SAYS = {
    "turns": "{n} turns beyond the first {limit:,} were counted, not judged",
    "empty": "{n} turns that were never released and show no figure, beyond the first {limit:,}, were counted, not judged",
    "checkpoints": "{n} checkpoints beyond the first {limit:,} are not listed",
    "runs": "{n} server starts beyond the first {limit:,}, and their turns, were counted, not judged",
    "slots": "more than {limit:,} slots in one run: {n} times the oldest one was forgotten",
    "ports": "more than {limit:,} servers at a time: {n} that had been silent for longest were given up",
    "listed": "more than {limit:,} checkpoints in a slot's list: {n} of the oldest were forgotten",
    "in_turn": "more than {limit:,} messages of batches and checkpoints in one turn: {n} were left out",
}
LIMITS = {
    "turns": MAX_TURNS,
    "empty": MAX_EMPTY,
    "checkpoints": MAX_CHECKPOINTS,
    "runs": MAX_RUNS,
    "slots": MAX_SLOTS,
    "ports": MAX_PORTS,
    "listed": MAX_LISTED,
    "in_turn": MAX_IN_TURN,
}


@dataclass(slots=True)
class LeftOut:
    """What the limits kept out: ``counts`` by what it is, ``first`` the source and line where that began."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, what: str, source: int, line: int) -> None:
        """One more; ``what`` is a key of ``LIMITS``."""
        if what not in self.counts:
            self.counts[what], self.first[what] = 0, (source, line)
        self.counts[what] += 1

    def sentences(self, names: list[str]) -> list[str]:
        """One for each limit that was met; ``names`` are the sources' names."""
        found = []
        for what, says in _SAYS.items():
            if what in self.counts:
                source, line = self.first[what]
                of = f" of {names[source]}" if len(names) > 1 else ""
                told = says.format(n=f"{self.counts[what]:,}", limit=LIMITS[what])
                found.append(f"{told} (from line {line:,}{of} on)")
        return found


def is_empty(turn: Turn | TurnRecord) -> bool:
    """Does the log show a beginning and nothing that came of it?"""
    return turn.ended == "cut" and turn.n_processed is None and turn.n_generated is None and turn.prompt_ms is None


def weight(turn: TurnRecord) -> int:
    """For how many turns one counts against MAX_TURNS: more than one if its lists are very long."""
    lists = turn.checkpoints
    n = len(turn.shifts)
    if lists is not None:
        n += len(lists.before) + len(lists.created) + len(lists.after)
    return 1 + n // 512
