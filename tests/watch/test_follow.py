"""Files that appear, grow, are rotated or emptied; pipes with a slow reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptlog.errors import InputError
from ckptlog.intake.follow import Idle, Piece, Pipe, Replaced, follow_file
from ckptlog.intake.sources import Source


class Follower:
    """Steps through a follower until it has nothing new."""

    def __init__(self, path: Path) -> None:
        self._stop = False
        self._pieces: Iterator[Piece] = follow_file(Source(str(path)), stopped=lambda: self._stop, poll=0)

    def look(self) -> list[bytes | str]:
        """What came since the last look: bytes in one, and ``replaced``."""
        seen: list[bytes | str] = []
        for _ in range(6):
            piece = next(self._pieces)
            if isinstance(piece, Replaced):
                seen.append("replaced")
            elif isinstance(piece, bytes):
                if seen and isinstance(seen[-1], bytes):
                    seen[-1] += piece
                else:
                    seen.append(piece)
        return seen


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    follower = Follower(path)
    assert follower.look() == []
    path.write_bytes(b"one\n")
    assert follower.look() == [b"one\n"]
    with path.open("ab") as file:
        file.write(b"two\nthr")
    assert follower.look() == [b"two\nthr"]
    assert follower.look() == []


def test_rotation_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\n")
    follower = Follower(path)
    assert follower.look() == [b"one\n"]
    with path.open("ab") as old:
        path.rename(tmp_path / "server.log.1")
        assert follower.look() == []
        old.write(b"two\n")
    path.write_bytes(b"three\n")
    assert follower.look() == [b"two\n", "replaced", b"three\n"]


def test_truncation(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\ntwo\n")
    follower = Follower(path)
    follower.look()
    path.write_bytes(b"new\n")
    assert follower.look() == ["replaced", b"new\n"]


def test_truncated_and_longer_again(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\ntwo\n")
    follower = Follower(path)
    follower.look()
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"something else that is longer\n")
    assert "replaced" in follower.look() + follower.look()


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't read"):
        next(follow_file(Source(str(tmp_path))))


def test_a_pipe_gives_all_in_order_and_tees_it() -> None:
    reading, writing = os.pipe()
    teed: list[bytes] = []
    pipe = Pipe(reading, teed.append)
    pieces = pipe.follow(poll=0.01)
    assert isinstance(next(pieces), Idle)
    got = b""
    for n in range(50):
        os.write(writing, b"%d\n" % n * 100)
    os.close(writing)
    for piece in pieces:
        if isinstance(piece, bytes):
            got += piece
    assert got == b"".join(teed) == b"".join(b"%d\n" % n * 100 for n in range(50))
