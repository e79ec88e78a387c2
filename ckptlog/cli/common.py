"""What every command shares: its options' wording, its way to stdout, stderr and files.

Results go to stdout, everything else to stderr. A command returns its exit code (or None for
0) and raises :class:`ckptlog.errors.CkptlogError` for anything that a user must be told.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from ckptlog.errors import CkptlogError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LogsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG",
        help="A file (plain, .gz, .zst), a directory, a glob, or - for stdin.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write there instead of to stdout.", show_default=False
    ),
]
MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        min=1,
        metavar="N",
        help="Refuse a log that holds more than this after decompression.",
        show_default=False,
    ),
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="EXPR",
        help='Only turns for which this holds, such as "failed and slot == 0" (docs/filter-language.md).',
        show_default=False,
    ),
]


def tell(message: str, details: Sequence[str] = ()) -> None:
    """One line on stderr, made safe: an error, a warning, a note.

    ``details`` are lines to show under it: an expression and a caret.
    """
    from ckptlog.report.safe import safe_text

    # stderr may be closed; there is no one left to tell then
    with contextlib.suppress(OSError, ValueError):
        for line in (f"ckptlog: {message}", *details):
            print(safe_text(line), file=sys.stderr, flush=True)  # noqa: T201


def warn_all(warnings: Sequence[str], limit: int = 10) -> None:
    """The warnings of an analysis on stderr; a flood is cut, and said to be."""
    for warning in warnings[:limit]:
        tell(f"warning: {warning}")
    if len(warnings) > limit:
        tell(f"warning: {len(warnings) - limit} more warnings")


def silence_stdout() -> None:
    """After a closed pipe: whatever is still buffered goes nowhere instead of raising at exit."""
    _silence(sys.stdout)


def _silence(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def let_go_of_streams() -> None:
    """The last thing before the end: what is still buffered for a reader that has gone is no error.

    Python would flush it once more, fail, and put 120 in the place of the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _silence(stream)


def write_stdout(data: str | bytes | Iterable[bytes]) -> None:
    """Results to stdout; quiet when the reader has gone, so that the exit code still counts."""
    try:
        buffer = getattr(sys.stdout, "buffer", None)
        if isinstance(data, str):
            sys.stdout.write(data)
        else:
            sys.stdout.flush()
            for piece in _pieces(data):
                if buffer is not None:
                    buffer.write(piece)
                else:
                    sys.stdout.write(piece.decode())
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def _pieces(data: str | bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(data, str):
        return (data.encode("utf-8", "backslashreplace"),)
    return (data,) if isinstance(data, bytes) else data


def write_file(path: str, data: str | bytes | Iterable[bytes]) -> None:
    """``data`` to ``path``, whole or not at all; missing parent folders are made.

    Raises :class:`CkptlogError` (exit code 2) when the file can't be written.
    """
    target = Path(path)
    content = _pieces(data)
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if target.exists() and not target.is_file():  # /dev/null, a named pipe: nothing to replace
            with target.open("wb") as special:
                special.writelines(content)
            return
        target = target.resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(content)
            os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:
        raise CkptlogError(f"can't write {path}: {getattr(error, 'strerror', None) or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def deliver(data: str | bytes | Iterable[bytes], output: str | None) -> None:
    """A finished result to ``-o FILE``, or to stdout without it (or with ``-``)."""
    if output is None or output == "-":
        write_stdout(data)
    else:
        write_file(output, data)


def terminal_width(stream_is_terminal: bool) -> int:
    """Columns to fill: 80 in a file or pipe, the terminal's own between 40 and 100 otherwise."""
    if not stream_is_terminal:
        return 80
    return max(40, min(100, os.get_terminal_size(sys.stdout.fileno()).columns or 80))


def console(output: str | None = None) -> Console:
    """A Rich console for a result: colour only on a terminal and without ``NO_COLOR``.

    It writes into memory; :func:`rendered` fills it and :func:`deliver` brings it out.
    """
    from ckptlog.report.console import memory_console

    terminal = output in (None, "-") and sys.stdout.isatty()
    try:
        width = terminal_width(terminal)
    except OSError:
        width = 80
    return memory_console(width, terminal=terminal)


def rendered(screen: Console, lines: Iterable[Text]) -> str:
    """The lines of a report as the console shows them: with colour codes or without."""
    with screen.capture() as capture:
        for line in lines:
            screen.print(line, no_wrap=True, overflow="ignore", crop=False)
    return capture.get()
