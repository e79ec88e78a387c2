"""Reading: every form of a log gives the same lines, however its bytes are cut."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import os
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog.errors import InputError
from ckptlog.intake import reader
from ckptlog.intake.limits import MAX_CHUNK_LINES
from ckptlog.intake.reader import Chunk, Feeder, read_chunks
from ckptlog.intake.sources import Source, SourceFacts

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOG = (
    "0.00.029.866 I srv          init: initializing ...\n"
    "0.19.641.861 I slot get_availabl: id  1 | task -1 | selected slot by LRU, t_last = -1\n"
    "\n"
    "old: ... naïve – „ünïcode“ 😀 | \x00 NUL and \r lone CR\n"
    "0.25.071.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 31, truncated = 0\n"
)
LINES = LOG.split("\n")[:-1]


def lines_of(chunks: list[Chunk]) -> list[str]:
    return [line for chunk in chunks for line in chunk.lines.to_list()]


def fed(
    data: bytes, *cuts: int, max_line_bytes: int = reader.MAX_LINE_BYTES
) -> tuple[list[str], SourceFacts]:
    source = Source("-")
    feeder = Feeder(source, max_line_bytes=max_line_bytes)
    chunks: list[Chunk] = []
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        chunks += feeder.feed(data[start:end])
    chunks += feeder.finish()
    number, previous = 1, 0
    for chunk in chunks:
        assert chunk.first_line == number
        assert chunk.offset >= previous
        number += len(chunk.lines)
        previous = chunk.offset
    return lines_of(chunks), source.facts


FORMS = {
    "plain": LOG.encode(),
    "crlf": LOG.replace("\n", "\r\n").encode(),
    "utf-8-bom": codecs.BOM_UTF8 + LOG.encode(),
    "utf-16-le-bom": codecs.BOM_UTF16_LE + LOG.encode("utf-16-le"),
    "utf-16-be-bom": codecs.BOM_UTF16_BE + LOG.replace("\n", "\r\n").encode("utf-16-be"),
    "utf-16-le": LOG.encode("utf-16-le"),
    "utf-16-be": LOG.encode("utf-16-be"),
    "gzip": gzip.compress(LOG.encode()),
    "gzip, two members": gzip.compress(LOG[:100].encode()) + gzip.compress(LOG[100:].encode()),
    "gzip, padded": gzip.compress(LOG.encode()) + bytes(300),
    "zstd": zstd.compress(LOG.encode()),
    "zstd, two frames": zstd.compress(LOG[:100].encode()) + zstd.compress(LOG[100:].encode()),
    "xz": lzma.compress(LOG.encode()),
    "bzip2": bz2.compress(LOG.encode()),
    "utf-16 in gzip": gzip.compress(codecs.BOM_UTF16_LE + LOG.encode("utf-16-le")),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_lines(form: str) -> None:
    lines, facts = fed(FORMS[form])
    assert lines == LINES
    assert facts.lines == len(LINES)
    assert (facts.broken, facts.cut_lines, facts.warnings, facts.binary) == (0, 0, [], False)
    assert facts.compression == (form.split(",")[0].split()[-1] if "zi" in form or "z" in form[:4] else None)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_cutting_the_bytes_changes_nothing(form: str, data: st.DataObject) -> None:
    raw = FORMS[form]
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=12))
    assert fed(raw, *cuts) == fed(raw)


@pytest.mark.parametrize("form", FORMS)
def test_byte_by_byte(form: str) -> None:
    raw = FORMS[form]
    assert fed(raw, *range(len(raw))) == fed(raw)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"\n", b"\r\n", b"a" * 70, b"\xe2\x82\xac" * 9, b"\xf0\x9f"]),
        )
    ),
    st.lists(st.integers(0, 600), max_size=8),
)
@settings(max_examples=300, deadline=None)
def test_any_bytes_in_any_pieces(parts: list[bytes], cuts: list[int]) -> None:
    raw = b"".join(parts)
    cuts = [min(cut, len(raw)) for cut in cuts]
    assert fed(raw, *cuts, max_line_bytes=32) == fed(raw, max_line_bytes=32)


def test_last_line_without_newline_is_a_line() -> None:
    lines, facts = fed(b"a\nb")
    assert (lines, facts.ends_in_mid_line) == (["a", "b"], True)
    lines, facts = fed(b"a\nb\n")
    assert (lines, facts.ends_in_mid_line) == (["a", "b"], False)
    assert fed(b"")[0] == []


def test_broken_bytes_are_replaced_and_counted() -> None:
    lines, facts = fed(b"ok\nnext token: \xe2\x82 and \xff\nreal \xef\xbf\xbd here\n")
    assert lines == ["ok", "next token: \ufffd and \ufffd", "real \ufffd here"]
    assert facts.broken == 2
    assert not facts.binary


def test_long_line_is_cut_on_a_character() -> None:
    raw = b"before\n" + "€".encode() * 100 + b"\nafter\n"
    whole = fed(raw, max_line_bytes=100)
    assert whole[0] == ["before", "€" * 33, "after"]
    assert whole[1].cut_lines == 1
    assert whole[1].warnings == ["one line was longer than 1 MiB and cut there"]
    assert fed(raw, *range(len(raw)), max_line_bytes=100) == whole


def test_a_huge_line_needs_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    feeder = Feeder(Source("-"), max_line_bytes=1000)
    feeder.feed(b"x\n" * 40)
    for _ in range(200):
        assert feeder.feed(b"y" * 100_000) == []
        assert len(feeder._cutter._carry) < 1100
    chunks = feeder.feed(b"\nz\n")
    assert lines_of(chunks) == ["y" * 1000, "z"]
    assert chunks[0].first_line == 41
    assert chunks[0].offset == 80
    assert feeder.facts.cut_lines == 1
    chunks = feeder.feed(b"end\n")
    assert chunks[0].offset == 80 + 200 * 100_000 + 3


def test_a_chunk_of_newlines_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_CHUNK_LINES", 100_000)
    raw = b"\n" * 350_000 + b"end"
    feeder = Feeder(Source("-"))
    chunks = feeder.feed(raw) + feeder.finish()
    assert sum(len(chunk.lines) for chunk in chunks) == 350_001
    assert max(len(chunk.lines) for chunk in chunks) <= 100_001
    assert [chunk.first_line for chunk in chunks] == [1 + chunk.offset for chunk in chunks]


@pytest.mark.parametrize("form", ["gzip", "zstd", "xz", "bzip2"])
def test_truncated_archive_gives_what_could_be_read(form: str) -> None:
    text = "".join(f"{n} line {n * n % 977}\n" for n in range(150_000))
    raw = {"gzip": gzip.compress, "zstd": zstd.compress, "xz": lzma.compress, "bzip2": bz2.compress}[form](
        text.encode()
    )
    lines, facts = fed(raw[: len(raw) * 3 // 4])
    assert facts.truncated
    assert "truncated" in facts.warnings[0]
    if form != "xz":  # one block: nothing of it may be ready
        assert len(lines) > 100
    assert lines[:-1] == text.split("\n")[: len(lines) - 1]


def test_truncated_in_the_second_member() -> None:
    second = gzip.compress(b"two\n" * 9)
    lines, facts = fed(gzip.compress(b"one\n") + second[:5])
    assert lines == ["one"]
    assert facts.truncated


def test_damaged_archive() -> None:
    raw = bytearray(gzip.compress("".join(f"{n} {n * 7919 % 1009}\n" for n in range(9000)).encode()))
    raw[len(raw) // 2] ^= 0xFF
    lines, facts = fed(bytes(raw))
    assert facts.truncated
    assert "damaged" in facts.warnings[0]
    assert lines[0] == "0 0"


def test_archive_followed_by_something_else() -> None:
    lines, facts = fed(gzip.compress(b"one\n") + b"not an archive")
    assert lines == ["one"]
    assert not facts.truncated
    assert "other data" in facts.warnings[0]


def test_bomb_is_stopped() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    feeder = Feeder(Source("bomb.gz"), max_bytes=10 << 20)
    with pytest.raises(
        InputError, match=r"bomb\.gz holds more than 10,485,760 bytes when unpacked.*--max-bytes"
    ):
        feeder.feed(bomb)


@pytest.mark.parametrize(
    "raw",
    [bytes(range(256)) * 300, b"\x7fELF\x02\x01\x01" + bytes(9000), os.urandom(70_000)],
    ids=["all bytes", "elf", "random"],
)
def test_binary_is_seen(raw: bytes) -> None:
    assert fed(raw)[1].binary


def test_log_with_odd_bytes_is_not_binary() -> None:
    raw = LOG.encode() * 5 + b"old: ... \x00\x01\x02\xff\xfe | \x1b[1m\n"
    assert not fed(raw)[1].binary


def test_reads_files_and_pipes(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(LOG.encode() * 1000)
    source = Source(str(path))
    taken: list[int] = []
    chunks = list(read_chunks(source, chunk_bytes=10_000, progress=taken.append))
    assert lines_of(chunks) == LINES * 1000
    assert taken[-1] == source.facts.raw_bytes == source.raw_size() == path.stat().st_size
    assert source.spool is None

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    source = Source(str(pipe))
    chunks = list(read_chunks(source))
    writer.join()
    assert len(chunks) == 1, "a pipe's 64 KiB pieces are put together"
    assert lines_of(chunks) == LINES * 1000
    assert source.spool is not None
    source.spool.seek(0)
    assert source.spool.read() == path.read_bytes()


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_chunks(Source(str(tmp_path / "gone.log"))))


def test_journald_messages_of_bytes() -> None:
    text = "\x1b[34m0.25.071.000\x1b[0m \x1b[32mI \x1b[0msrv  update_slots: all slots are idle"
    lines = [
        json.dumps({"_PID": "7", "MESSAGE": message})
        for message in (list(text.encode()), "plain", [1, 999], None)
    ]
    raw = ("\n".join(lines) + "\n").encode()
    read, _ = fed(raw)
    assert [json.loads(line)["MESSAGE"] for line in read] == [text, "plain", [1, 999], None]
    assert read[1:] == lines[1:]
    assert fed(raw, *range(0, len(raw), 7))[0] == read
    assert fed(b"a log\n" + raw)[0] == ["a log", *lines], "only a file of JSON objects is a journal"


@pytest.mark.parametrize(
    "start", [b"x^2 + y", b"x\x01\x06", b"x\x9c", b"(\xb5/\xfd", b"\x1f\x8b\x08", b"\x78\xda"]
)
def test_text_in_mid_log_that_begins_like_an_archive(start: bytes) -> None:
    raw = b"a log of some length, and\n" * 5 + start + b"\nend\n"
    cut = raw.index(start)
    source = Source("-")
    feeder = Feeder(source)
    chunks = feeder.feed(raw[:cut]) + feeder.feed(raw[cut:]) + feeder.finish()
    assert lines_of(chunks) == raw.decode("utf-8", "replace").split("\n")[:-1]


def test_chunks_of_very_short_lines_are_made_one_at_a_time() -> None:
    """Or a block of newlines would take sixteen times its size."""
    source = Source("server.log")
    chunks = Feeder(source).stream(b"\n" * (3 * MAX_CHUNK_LINES))
    first = next(chunks)
    assert len(first.lines) <= 1.1 * MAX_CHUNK_LINES
    assert source.facts.lines == len(first.lines)
    rest = sum(len(chunk.lines) for chunk in chunks)
    assert len(first.lines) + rest == source.facts.lines == 3 * MAX_CHUNK_LINES
