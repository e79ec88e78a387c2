"""The server as a child process: its output passed on untouched, and kept; its signals and exit code passed on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock, Thread
from types import FrameType
from typing import IO

from ckptlog.errors import UsageError

#: what a terminal, a shell or a service manager may send; each is passed on once
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
#: an unfinished line is kept back up to this size, then written as it is
_MAX_PARTIAL = 1 << 20


class LineMerger:
    """Several streams into one file, whole lines only: a line of one never stands inside another's."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = Lock()
        self.error: OSError | None = None

    def stream(self) -> _Part:
        """The place where one stream's bytes go in."""
        return _Part(self)

    def write(self, lines: bytes) -> None:
        with self._lock:
            if self.error is not None:
                return
            try:
                self._file.write(lines)
                self._file.flush()
            except OSError as error:  # a full disk must not stop the server
                self.error = error


class _Part:
    def __init__(self, merger: LineMerger) -> None:
        self._merger = merger
        self._rest = bytearray()

    def write(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        if end:
            self._merger.write(bytes(self._rest) + data[:end])
            self._rest = bytearray(data[end:])
        else:
            self._rest += data
        if len(self._rest) > _MAX_PARTIAL:
            self.close()

    def close(self) -> None:
        if self._rest:
            self._merger.write(bytes(self._rest))
            self._rest = bytearray()


class Child:
    """A command whose stdout and stderr go on to this process's own, and into ``log``.

    It has a process group of its own, so that a signal reaches it once: from here. What comes before it is
    started (in ``signals``) reaches it then.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> None:
        self._command, self._environment = command, dict(environment)
        self._merger = LineMerger(log)
        self._early: list[int] = []
        self._started: subprocess.Popen[bytes] | None = None
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Raises UsageError if it can't be started."""
        try:
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            raise UsageError(f"can't start {self._command[0]}: {(error.strerror or str(error)).lower()}") from None
        self._started = process
        for stream, descriptor in ((process.stdout, 1), (process.stderr, 2)):
            assert stream is not None
            thread = Thread(target=self._pass_on, args=(stream, descriptor), daemon=True)
            thread.start()
            self._threads.append(thread)
        while self._early:
            self.send(self._early.pop(0))

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        assert self._started is not None
        return self._started

    def running(self) -> bool:
        """Whether it still runs, or what it wrote is still on its way."""
        return self._process.poll() is None or any(thread.is_alive() for thread in self._threads)

    def wait(self) -> int:
        """Its exit code; 128 + n if signal n ended it, as a shell says it."""
        for thread in self._threads:
            thread.join()
        code = self._process.wait()
        return 128 - code if code < 0 else code

    @property
    def ended_by(self) -> str | None:
        """The name of the signal that ended it; null if none did, or it has not ended."""
        code = self._process.returncode
        if code is None or code >= 0:
            return None
        try:
            return signal.Signals(-code).name
        except ValueError:  # a real-time signal has no name
            return f"signal {-code}"

    @property
    def log_error(self) -> OSError | None:
        """Why its output is no longer kept, if that is so."""
        return self._merger.error

    def send(self, number: int) -> None:
        """A signal to the command and what it has started."""
        if self._started is None:
            self._early.append(number)
        elif self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """While this holds, signals to this process go to the child instead."""

        def pass_on(number: int, _frame: FrameType | None) -> None:
            self.send(number)

        def stop(number: int, _frame: FrameType | None) -> None:
            self.send(signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            # here again after SIGCONT, which has been passed on
            signal.signal(signal.SIGTSTP, stop)

        before = {}
        for name in PASSED_ON:
            number = getattr(signal, name, None)
            if number is not None:
                before[number] = signal.signal(number, pass_on)
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, stream: IO[bytes], descriptor: int) -> None:
        part = self._merger.stream()
        write = _writer(descriptor)
        with stream:
            while data := os.read(stream.fileno(), 1 << 16):
                write(data)
                part.write(data)
        part.close()


def _writer(descriptor: int) -> Callable[[bytes], None]:
    """Writes everything at once; when nobody reads any more, the server still runs on."""
    gone = False

    def write(data: bytes) -> None:
        nonlocal gone
        view = memoryview(data)
        while view and not gone:
            try:
                view = view[os.write(descriptor, view) :]
            except OSError:
                gone = True

    return write
