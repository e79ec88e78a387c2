"""Several servers in one file: no crash is told where no server starts, and the reader is warned."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from ckptlog.analysis import analyze

LOGS = Path(__file__).parents[1] / "data" / "logs" / "b11549"
STAMP = re.compile(rb"(\d+)\.(\d\d)\.(\d\d\d)\.(\d\d\d) ")


def records(name: str) -> list[bytes]:
    """Lines with a stamp, each with the lines that go on with it."""
    found: list[bytes] = []
    for line in gzip.decompress((LOGS / f"{name}.log.gz").read_bytes()).splitlines(keepends=True):
        if STAMP.match(line) or not found:
            found.append(line)
        else:
            found[-1] += line
    return found


def shifted(record: bytes, minutes: int) -> bytes:
    return STAMP.sub(lambda m: b"%d.%s.%s.%s " % (int(m[1]) + minutes, m[2], m[3], m[4]), record, count=1)


@pytest.mark.parametrize("piece", [7, 40])
def test_two_servers_in_one_file(tmp_path: Path, piece: int) -> None:
    """One has been running for ten minutes when the other starts; their lines come in turns."""
    one = [shifted(record, 10) for record in records("hybrid/append")]
    other = records("hybrid/newconv_ck2")
    mixed: list[bytes] = []
    while one or other:
        mixed += one[:piece] + other[:piece]
        one, other = one[piece:], other[piece:]
    path = tmp_path / "server.log"
    path.write_bytes(b"".join(mixed))
    analysis = analyze(path)
    report = analysis.report
    # the second server does start, once: all that can pass for a crash is what was open there
    assert sum(turn.outcome == "error" for turn in report.turns) <= 1
    warning = next(words for words in report.warnings if "the clock falls back" in words)
    assert "several servers" in warning
    assert "Give each server a file of its own" in warning


def test_a_restart_is_no_fall(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"".join(records("hybrid/append")[:-30] + records("hybrid/newconv_ck2")))
    report = analyze(path).report
    assert report.warnings == []
    assert [turn.ended for turn in report.turns].count("restart") == 1


def test_the_second_half_before_the_first_is_cut_not_crashed(tmp_path: Path) -> None:
    whole = records("hybrid/append")
    turns = [i for i, record in enumerate(whole) if b"processing task" in record]
    later = [shifted(record, 10) for record in whole[turns[3] : turns[4] + 3]]
    path = tmp_path / "server.log"
    path.write_bytes(b"".join([*later, *whole[turns[1] : turns[3]]]))
    report = analyze(path).report
    assert "restart" not in [turn.ended for turn in report.turns]
    assert any("falls back once, at line" in words for words in report.warnings)
