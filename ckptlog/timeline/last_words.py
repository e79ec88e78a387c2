"""How a server process ended, as far as it, or what is around it, says so.

A line that tells of a crash counts only where the process says nothing after it: the same words may stand in a
user's text, and not every error of a device is the end.
"""

from __future__ import annotations

import re

from ckptlog.events import Event
from ckptlog.intake.writer import Writer
from ckptlog.timeline.model import LastWord, Quote, Run, Turn

#: what tells of a crash, and what of a stop that was asked for (kinds of the grammar)
DIED = "process_died"
STOPS = "process_stops"
LAST_WORDS = frozenset({DIED, STOPS})
#: what a router says of a child, which is another stream: its port, that it is told to stop, and its end
EXITED = "instance_exited"
STOPPING = "instance_stopping"
#: and that it waited no longer for an answer (or that the connection was lost), without a name
GAVE_UP = "http_client_error"
OF_CHILD = frozenset({"spawning", "proxying", EXITED, STOPPING, GAVE_UP})
#: wordings of STOPPING by which a router makes room for another model
EVICTING = frozenset({"evicting", "evicting_queued", "models_max", "giving_up"})

#: lines that are kept of one crash (a trace may be long)
MAX_WORDS = 16

#: a command that may well be the server: a path, a variable or a quoted text, what starts another program, or one that
#: speaks of llama
_PERHAPS_SERVER = re.compile(
    r"""(?i)\S*[/\\.$"'`]|.*llama"""
    r"|(?:(?:ba|da|fi|k|z)?sh|python[\d.]*|env|nohup|setsid|sudo|doas|nice|ionice|numactl|taskset|stdbuf|time|uv|make|just|docker|podman)\b"
)
#: wordings by how much they tell of the reason
_TELLING = ("device", "abort", "exception", "terminate", "signal", "service", "exit_code", "exited", "backtrace")


def names_another(writer: Writer | None, e: Event) -> bool:
    """Does the line name a command, a unit or a container that is not this server?"""
    command = e.f.get("command")
    if command is not None:
        return _PERHAPS_SERVER.match(str(command)) is None
    named = e.f.get("container") or str(e.f.get("unit") or "").rpartition(".")[0]
    if writer is None or not named:
        return False
    name = str(named).lower()
    own = (writer.name.lower(), writer.program.lower())
    return "llama" not in name and not any(name in one or (one and one in name) for one in own)


def take_last_word(run: Run, e: Event) -> None:
    """A line on the process's end; ``run.last_line`` is that of the last line of another kind."""
    if e.kind == STOPS:
        hear_stop(run, e)
        return
    hear(run, LastWord(e.line, e.text or "", e.of.wording))


def hear_stop(run: Run, e: Event) -> None:
    """A line that tells of a stop that was asked for; the first since a turn began says by whom."""
    if run.stop is None or run.stop_turns != run.n_turns:
        run.stop, run.stop_turns = Quote(e.line, e.text or ""), run.n_turns
    run.stopped = e.line


def hear(run: Run, word: LastWord) -> None:
    """A line that tells of a crash."""
    if run.spoke_until != run.last_line:
        run.last_words, run.spoke_until = [], run.last_line
    if len(run.last_words) < MAX_WORDS:
        run.last_words.append(word)


def crash_of(run: Run) -> list[LastWord]:
    """What was said of the process's crash, what tells most of it first; empty if it spoke on."""
    if run.spoke_until != run.last_line:
        return []
    words = [word for word in run.last_words if word.how != "backtrace"] or run.last_words
    return sorted(words, key=lambda word: _TELLING.index(word.how))


def is_over(run: Run) -> bool:
    """Was the process's end told, and nothing of its own behind that? What says that a server starts is another one's."""
    return bool(crash_of(run)) or (run.stopped is not None and run.stopped > run.last_line)


def stopped_in(run: Run, turn: Turn) -> bool:
    """Was the server told to stop while the turn was open? What goes wrong behind that is no crash of the turn's."""
    return run.stopped is not None and run.stopped > turn.first_line
