"""Which logs to read: a file, several, a directory, a glob, or ``-`` for standard input."""

from __future__ import annotations

import glob
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from ckptlog.errors import InputError, UsageError

#: What a directory is searched for. ``server.log``, ``server.log.3``, ``server-2026-11-29.txt.gz`` ...
LOG_LIKE = re.compile(
    r"\.(log|txt|out|err|stderr|jsonl|ndjson)([.\-_]?\d[\d.\-_T:]*)?(\.(log|txt))?(\.(gz|zst|zstd|xz|bz2))?$",
    re.IGNORECASE,
)
#: The number logrotate puts behind a name: the higher, the older.
ROTATED = re.compile(r"^(?P<stem>.+\.\D[^.]*)\.(?P<age>\d{1,3})(\.(?:gz|zst|zstd|xz|bz2))?$", re.IGNORECASE)
COMPRESSED = re.compile(r"\.(gz|zst|zstd|xz|bz2)$", re.IGNORECASE)


@dataclass
class SourceFacts:
    """What reading a source has shown so far; complete when the reader is through.

    ``bytes`` and ``lines`` count the text after decompression (for UTF-16: after recoding to
    UTF-8), ``raw_bytes`` what was taken from the file or pipe. ``broken`` counts malformed
    sequences that were shown as U+FFFD, ``cut_lines`` lines longer than the reader keeps.
    """

    encoding: str = "utf-8"
    compression: str | None = None
    bytes: int = 0
    raw_bytes: int = 0
    lines: int = 0
    broken: int = 0
    cut_lines: int = 0
    ends_in_mid_line: bool = False
    truncated: bool = False
    binary: bool = False
    warnings: list[str] = field(default_factory=list)


@dataclass
class Source:
    """One input as the user named it (``-`` is standard input)."""

    path: str
    facts: SourceFacts = field(default_factory=SourceFacts)
    #: a copy of what can't be read twice (a pipe), made while it is read; see LineStore
    spool: IO[bytes] | None = None

    @property
    def is_stdin(self) -> bool:
        return self.path == "-"

    @property
    def name(self) -> str:
        """The name to show to a person."""
        return "standard input" if self.is_stdin else self.path

    def raw_size(self) -> int | None:
        """Bytes on disk, or None where that can't be known (a pipe)."""
        try:
            status = os.stat(0 if self.is_stdin else self.path)
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None


def expand(args: Sequence[str]) -> list[Source]:
    """The sources that command line arguments name, each once, in reading order.

    A directory stands for the log-like files in and below it (hidden ones left out), a glob for
    what it matches; both in natural order (``b9`` before ``b10``), a rotated set oldest first.

    Raises InputError if something is missing, can't be read, or matches no file.
    """
    if not args:
        raise UsageError("no log given: name a file, a directory, a glob, or - for standard input")
    if sum(arg == "-" for arg in args) > 1:
        raise UsageError("standard input (-) can be read only once")
    paths: dict[str, None] = {}
    for arg in args:
        if arg == "-":
            paths.setdefault("-")
            continue
        for path in _files(arg):
            paths.setdefault(path)
    return [Source(path) for path in paths]


def _files(arg: str) -> Iterator[str]:
    if os.path.isdir(arg):
        found = list(_in_directory(arg))
        if not found:
            raise InputError(
                f"no log file in the directory {arg} (looked for *.log, *.txt, *.jsonl, *.log.1, *.log.gz and the like)"
            )
        yield from found
    elif os.path.lexists(arg):
        yield _checked(arg)
    elif glob.has_magic(arg):
        # a directory among the matches is searched too; one without logs is no error there
        matched: list[str] = []
        for path in glob.glob(arg, recursive=True):
            matched.extend(_in_directory(path) if os.path.isdir(path) else [path])
        if not matched:
            raise InputError(f"no file matches {arg}")
        for path in in_reading_order(dict.fromkeys(matched)):
            yield _checked(path)
    else:
        raise InputError(f"no such file: {arg}")


def _in_directory(directory: str) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        raise InputError(f"can't read the directory {error.filename}: {_reason(error)}")

    found: list[str] = []
    for root, folders, names in os.walk(directory, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            os.path.join(root, name) for name in names if LOG_LIKE.search(name) and not name.startswith(".")
        ]
    for path in in_reading_order(found):
        yield _checked(path)


def in_reading_order(paths: Iterable[str]) -> list[str]:
    """Natural order by path; ``x.log.2``, ``x.log.1``, ``x.log`` stand together, oldest first."""
    return sorted(paths, key=_reading_key)


def _reading_key(path: str) -> tuple[list[tuple[int, int, str]], int, str]:
    folder, name = os.path.split(path)
    rotated = ROTATED.match(name)
    if rotated:
        stem, age = rotated["stem"], int(rotated["age"])
    else:
        stem, age = COMPRESSED.sub("", name), -1
    return _natural(os.path.join(folder, stem)), -age, path


def _natural(text: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+|[./])", text)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part]


def _checked(path: str) -> str:
    """``path`` itself, if it is something to read from; opening it is the reader's business."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise InputError(f"can't read {path}: {_reason(error)}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise InputError(f"{path} is neither a file nor a pipe")
    if not os.access(path, os.R_OK):
        raise InputError(f"can't read {path}: permission denied")
    return path


def open_raw(source: Source) -> io.FileIO:
    """The source's bytes as they are, unbuffered. Raises InputError."""
    try:
        if source.is_stdin:
            return io.FileIO(0, "rb", closefd=False)
        return io.FileIO(source.path, "rb")
    except OSError as error:
        raise InputError(f"can't read {source.name}: {_reason(error)}") from None


def read_raw(file: io.FileIO, size: int, source: Source) -> bytes:
    """The next bytes of a source, at most ``size``. Raises InputError."""
    try:
        return file.read(size) or b""
    except OSError as error:
        raise InputError(f"can't read {source.name}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
