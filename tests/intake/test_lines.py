"""Lines by number are the reader's lines, whatever the form; memory and time stay bounded."""

from __future__ import annotations

import codecs
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptlog.intake import lines as lines_module
from ckptlog.intake.lines import LineStore
from ckptlog.intake.reader import read_chunks
from ckptlog.intake.sources import Source

TEXT = (
    "".join(f"{n}.00.000.000 I srv  x: line {n} é{'€' * (n % 50)}\n" for n in range(3000))
    + "last without newline"
)
FORMS = {
    "plain": TEXT.encode(),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "bom": codecs.BOM_UTF8 + TEXT.encode(),
    "utf-16": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "gzip": gzip.compress(TEXT.encode()),
    "broken": TEXT.encode().replace("€".encode(), b"\xe2\x82"),
}


def read_lines(source: Source) -> list[str]:
    return [line for chunk in read_chunks(source) for line in chunk.lines.to_list()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [1 << 10, 256 << 10])
def test_equal_to_the_readers(form: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "BLOCK", block)
    path = tmp_path / "server.log"
    path.write_bytes(FORMS[form])
    source = Source(str(path))
    expected = read_lines(source)
    store = LineStore(source)
    for n in (1, 2, 3, 2999, 17, 3001, 1500, 1499, 1):
        assert store.line(n) == expected[n - 1]
    assert store.lines(1, 10_000) == expected
    assert store.lines(2990, 2995) == expected[2989:2995]
    assert store.line(3002) is None
    assert store.line(0) is None
    assert store.lines(3000, 4000) == expected[2999:]


@given(parts=st.lists(st.binary(max_size=9), max_size=30), block=st.integers(1, 40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(parts: list[bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "BLOCK", block)
    path = tmp_path / "any.log"
    path.write_bytes(b"\n".join(parts))
    source = Source(str(path))
    expected = read_lines(source)
    store = LineStore(source)
    assert [store.line(n) for n in range(len(expected), 0, -1)] == expected[::-1]
    assert store.line(len(expected) + 1) is None


def test_a_pipes_copy() -> None:
    source = Source("-", spool=io.BytesIO(FORMS["crlf"]))
    store = LineStore(source)
    assert store.line(3) == "2.00.000.000 I srv  x: line 2 é€€"
    assert source.spool is not None
    assert source.spool.tell() == len(FORMS["crlf"]), "what comes next is written behind what was there"


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_growing_file(compress: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(compress(b"one\ntw"))
    store = LineStore(Source(str(path)))
    assert store.lines(1, 9) == ["one", "tw"]
    with path.open("ab") as file:
        file.write(compress(b"o\nthree\n"))
    assert store.lines(1, 9) == ["one", "two", "three"]


def test_a_file_that_lost_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\ntwo\nthree\n")
    store = LineStore(Source(str(path)))
    assert store.line(3) == "three"
    path.write_bytes(b"one\n")
    assert store.line(3) is None


def test_an_overlong_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"a\n" + "é".encode() * 3_000_000 + b"\nb\n")
    source = Source(str(path))
    expected = read_lines(source)
    assert len(expected[1]) == 1 << 19
    assert LineStore(source).lines(1, 3) == expected
