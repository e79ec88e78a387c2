"""The app in a real terminal: opens a log, walks to the failure, quits, leaves the terminal clean."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.tui.conftest import EVICTED, REJECTED, ROOT

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: the test under a real terminal is left out"
)

_PATIENCE = 90.0


class Terminal:
    """A tmux session of its own with a plain shell in it."""

    def __init__(self, columns: int, rows: int) -> None:
        self._tmux = ["tmux", "-f", os.devnull, "-L", f"ckptlog-{uuid.uuid4().hex[:12]}"]
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
            "SHELL": "/bin/sh",  # what tmux starts the shell with: an account's own may be nologin
        }  # fmt: skip
        for name in ("NO_COLOR", "COLUMNS", "LINES"):  # the size is the terminal's own
            environment.pop(name, None)
        subprocess.run(
            [*self._tmux, "new-session", "-d", "-x", str(columns), "-y", str(rows), "/bin/sh"],
            check=True,
            env=environment,
            cwd=ROOT,
        )
        self.run("PS1='rea''dy> '")
        self.until(lambda screen: "ready>" in screen)

    def keys(self, *keys: str) -> None:
        subprocess.run([*self._tmux, "send-keys", *keys], check=True)

    def run(self, command: str) -> None:
        subprocess.run([*self._tmux, "send-keys", "-l", command], check=True)
        self.keys("Enter")

    def screen(self) -> str:
        """What is shown; -J: a line that the terminal broke (a long path in it) as one."""
        return subprocess.run(
            [*self._tmux, "capture-pane", "-p", "-J"], check=True, capture_output=True, text=True
        ).stdout

    def ask(self, format_: str) -> str:
        """A variable of tmux, such as whether the alternate screen is on."""
        return subprocess.run(
            [*self._tmux, "display-message", "-p", format_], check=True, capture_output=True, text=True
        ).stdout.strip()

    def until(self, holds: Callable[[str], bool]) -> str:
        end = time.monotonic() + _PATIENCE
        while True:
            screen = self.screen()
            if holds(screen):
                return screen
            assert time.monotonic() < end, f"this never came:\n{screen}"
            time.sleep(0.1)

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal(100, 30)
    try:
        yield terminal
    finally:
        terminal.close()


def tui(*args: str) -> str:
    return " ".join(shlex.quote(part) for part in (sys.executable, "-m", "ckptlog.cli", "tui", *args))


def assert_clean(terminal: Terminal, code: int) -> str:
    """The shell is back, with the exit code, on the normal screen, with its cursor, without mouse reports."""
    screen = terminal.until(lambda screen: f"code={code}" in screen)
    assert terminal.ask("#{alternate_on}") == "0"
    assert terminal.ask("#{cursor_flag}") == "1"
    assert terminal.ask("#{mouse_any_flag}") == "0"
    assert terminal.ask("#{bracket_paste_flag}") in ("0", "")
    assert "Traceback" not in screen
    terminal.run("stty -a | grep -o '[-]*echo ' | head -1; echo d''one")
    screen = terminal.until(lambda screen: "done" in screen)
    assert "-echo" not in screen
    return screen


def test_a_walk_to_the_failure_and_back_to_the_shell(terminal: Terminal) -> None:
    terminal.run(tui(str(EVICTED)) + "; echo code=$?")
    screen = terminal.until(lambda screen: "A PROMPT WAS PROCESSED AGAIN" in screen)
    assert "--ctx-checkpoints" in screen
    assert "█" in screen
    assert "╳" in screen
    terminal.keys("Home")
    terminal.until(lambda screen: "turn 1 of 8" in screen)
    terminal.keys("]")
    terminal.until(lambda screen: "turn 7 of 8" in screen)
    terminal.keys("Enter")
    terminal.until(lambda screen: "launch_slot_" in screen)
    terminal.keys("q")
    assert_clean(terminal, 0)


def test_ascii_ctrl_c_and_a_pipe(terminal: Terminal) -> None:
    terminal.run(f"cat {shlex.quote(str(REJECTED))} | {tui('-', '--ascii')}; echo code=$?")
    screen = terminal.until(lambda screen: "WAS REFUSED" in screen)
    assert screen.isascii()
    terminal.keys("C-c")
    assert_clean(terminal, 130)


def test_bad_input_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.run(tui(str(ROOT / "pyproject.toml")) + "; echo code=$?")
    screen = assert_clean(terminal, 3)
    assert "holds no line of a llama-server" in screen
    terminal.run("clear; " + tui("/nowhere/at/all.log") + "; echo code=$?")
    screen = assert_clean(terminal, 2)
    assert "no such file: /nowhere/at/all.log" in screen
