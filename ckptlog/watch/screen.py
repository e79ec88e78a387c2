"""Turns, explanations and the status line on the terminal, or as JSON lines."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TextIO

import msgspec
from rich.text import Text

from ckptlog.records import TurnRecord
from ckptlog.report.console import memory_console
from ckptlog.report.safe import safe_json, safe_text
from ckptlog.watch.lines import HEADING, Totals, explanation, status, turn_line

_CLEAR = "\r\x1b[2K"
#: seconds between two status lines
_EVERY = 0.25


class Screen:
    """Where the turns go. ``out`` gets results; the status line is on stderr if that is a terminal.

    ``json``: one object a turn instead of a line. ``failures_only``: for a log whose own lines are on
    the same terminal.
    """

    def __init__(
        self, name: str, out: TextIO, *, json: bool = False, failures_only: bool = False, live: bool = True
    ) -> None:
        self.totals = Totals()
        self._name = name
        self._out = out
        self._json = json
        self._failures_only = failures_only
        self._live = live and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = ""
        self._due = 0.0
        self._headed = failures_only
        self._console = memory_console(_columns(out), terminal=out.isatty())

    def turn(self, turn: TurnRecord) -> None:
        """A turn has ended."""
        self.totals.add(turn)
        wrong = turn.failed or turn.outcome == "error"
        if self._failures_only and not wrong:
            return
        self.clear()
        if self._json:
            self._out.write((safe_json(msgspec.json.encode(turn)) + b"\n").decode())
        else:
            lines = [] if self._headed else [Text(HEADING, "dim")]
            self._headed = True
            lines.append(turn_line(turn, self._console.width))
            if wrong:
                lines += explanation(turn, self._console.width)
            # captured, because Rich ends the program when nobody reads what it prints
            with self._console.capture() as capture:
                for line in lines:
                    self._console.print(line, no_wrap=True, overflow="ignore", crop=False)
            self._out.write(capture.get())
        self._out.flush()

    def tell(self, sentence: str) -> None:
        """Something else to be said, on stderr."""
        with contextlib.suppress(OSError, ValueError):  # nobody there to be told
            self.clear()
            print(f"ckptlog: {safe_text(sentence)}", file=sys.stderr, flush=True)  # noqa: T201

    def refresh(self, *, waiting: bool = False) -> None:
        """Bring the status line up to date, now and then."""
        now = time.monotonic()
        if not self._live or now < self._due:
            return
        self._due = now + _EVERY
        line = status(self._name, self.totals, waiting, _columns(sys.stderr))
        if line != self._shown:
            sys.stderr.write(_CLEAR + line)
            sys.stderr.flush()
            self._shown = line

    def clear(self) -> None:
        """Take the status line away: something else is to be written."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._shown = ""
            self._due = 0.0


def _columns(stream: TextIO) -> int:
    """The terminal's width within reason; 80 elsewhere."""
    try:
        return max(40, min(120, os.get_terminal_size(stream.fileno()).columns))
    except (OSError, ValueError):
        return 80
