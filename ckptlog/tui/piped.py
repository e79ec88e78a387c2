"""A log that comes through standard input, while the keyboard is the terminal itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ckptlog.errors import UsageError

if TYPE_CHECKING:
    from ckptlog.intake.follow import Piece


class PipedLog:
    """What a pipe brings, kept in a temporary file so that its lines can be shown again.

    ``path`` is that file; it is gone when the object is closed.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._folder = tempfile.TemporaryDirectory(prefix="ckptlog-")
        self.path = os.path.join(self._folder.name, "standard input")
        self._copy = open(self.path, "wb", buffering=0)  # noqa: SIM115 - closed with the object

    def pieces(self, stopped: Callable[[], bool]) -> Iterator[Piece]:
        """The bytes as they come, until the pipe ends or ``stopped``."""
        from ckptlog.intake.follow import Pipe

        for piece in Pipe(self._descriptor, tee=self._keep).follow():
            if stopped():
                return
            yield piece

    def _keep(self, data: bytes) -> None:
        if not self._copy.closed:
            self._copy.write(data)

    def close(self) -> None:
        self._copy.close()
        self._folder.cleanup()


def take_stdin() -> PipedLog:
    """The log that is piped in; afterwards standard input is the terminal.

    Raises UsageError where there is no terminal to read keys from.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        raise UsageError(
            "the timeline needs the keyboard: save the log to a file first, or use ckptlog diagnose -"
        ) from None
    piped = PipedLog(os.dup(0))
    os.dup2(terminal, 0)
    os.close(terminal)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    return piped
