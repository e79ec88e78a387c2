"""``--exec CMD``: a command that is run for a turn, beside the watching."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from collections.abc import Callable
from threading import Thread

import msgspec

from ckptlog.records import TurnRecord
from ckptlog.report.safe import safe_json

#: turns that may wait for the command; a command that is slower than the failures come misses some
_WAITING = 100
#: seconds that are left to the last commands when the watching ends
_PATIENCE_S = 10.0


class Hook:
    """Runs a shell command a turn, one after another, never holding up who calls.

    The turn's JSON object is the command's standard input; ``CKPTLOG_OUTCOME``, ``CKPTLOG_CAUSE``,
    ``CKPTLOG_SLOT``, ``CKPTLOG_TASK`` and ``CKPTLOG_LINE`` are in its environment. What it prints goes
    to stderr. ``tell`` is called with a sentence if it can't be run or fails.
    """

    def __init__(self, command: str, tell: Callable[[str], None]) -> None:
        self._command = command
        self._tell = tell
        self._turns: queue.Queue[TurnRecord | None] = queue.Queue(_WAITING)
        self._thread = Thread(target=self._run, name="ckptlog-exec", daemon=True)
        self._thread.start()

    def __call__(self, turn: TurnRecord) -> None:
        try:
            self._turns.put_nowait(turn)
        except queue.Full:
            self._tell(f"{_WAITING} turns are waiting for the --exec command; one was left out")

    def close(self) -> None:
        """Let the commands that are due end, for a while."""
        try:
            self._turns.put(None, timeout=_PATIENCE_S)
        except queue.Full:
            return
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while (turn := self._turns.get()) is not None:
            try:
                done = subprocess.run(
                    self._command,
                    shell=True,  # the user's own command line, as given
                    input=safe_json(msgspec.json.encode(turn)) + b"\n",
                    stdout=sys.stderr.fileno(),
                    env={**os.environ, **_environment(turn)},
                    check=False,
                )
            except OSError as error:
                self._tell(f"can't run the --exec command: {error.strerror or error}")
                continue
            if done.returncode:
                self._tell(f"the --exec command ended with code {done.returncode}")


def _environment(turn: TurnRecord) -> dict[str, str]:
    values = {
        "CKPTLOG_OUTCOME": turn.outcome,
        "CKPTLOG_CAUSE": turn.cause,
        "CKPTLOG_SLOT": turn.slot,
        "CKPTLOG_TASK": turn.task,
        "CKPTLOG_LINE": turn.lines[0],
    }
    return {name: "" if value is None else str(value) for name, value in values.items()}
