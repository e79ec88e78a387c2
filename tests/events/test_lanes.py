"""Lanes take lines as the long way would have: on every recorded log, and on lines with odd numbers."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog.events import Event, Extractor, Tally, extract, lanes
from ckptlog.events.lane import lane
from ckptlog.events.numbers import number_tokens, padded_number_tokens
from ckptlog.events.plan import Planner
from ckptlog.grammar import messages
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source
from ckptlog.timeline.kinds import BLOCK_KINDS, EVIDENCE_KINDS, NEEDED_KINDS
from ckptlog.timeline.on_ram_cache import rows_of

DATA = Path(__file__).parents[1] / "data"
LOGS = sorted(DATA.glob("**/*.log.gz"))
#: bytes read at a time: lanes learned from one piece are taken in the next
PIECE = 100_000


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes for every shape at once, however small the log."""
    monkeypatch.setattr(lanes, "FEW_LINES", 1)
    monkeypatch.setattr(lanes, "WORTH_LINES", 1)
    monkeypatch.setattr(lanes, "TRIED_LINES", 1)
    monkeypatch.setattr(extract, "LEARN_LINES", 40)


def read(data: bytes, *, by_lanes: bool, blocks: bool = False) -> tuple[list[Event], Tally, Extractor]:
    extractor = Extractor(NEEDED_KINDS, EVIDENCE_KINDS, BLOCK_KINDS if blocks else None)
    if not by_lanes:
        extractor.lanes.learn = lambda *_: None  # type: ignore[method-assign]
    feeder = Feeder(Source("server.log"))
    pieces = [data[at : at + PIECE] for at in range(0, len(data), PIECE)]
    chunks = [chunk for piece in pieces for chunk in feeder.feed(piece)] + feeder.finish()
    events = [event for chunk in chunks for event in extractor.read(chunk).events]
    return events, extractor.tally, extractor


def plain(event: Event) -> tuple[object, ...]:
    of = event.of
    return (event.line, event.kind, of.wording, of.build_min, of.build_max, of.func, event.t, event.port, event.slot,
            event.task, event.f, event.text)  # fmt: skip


def test_every_log_gives_the_same_events() -> None:
    taken = total = 0
    for path in LOGS[:: max(1, len(LOGS) // 60)]:
        data = gzip.decompress(path.read_bytes())[: 2 << 20]
        by_lanes, tally, extractor = read(data, by_lanes=True)
        long_way, long_tally, _ = read(data, by_lanes=False)
        assert [plain(e) for e in by_lanes] == [plain(e) for e in long_way], path.name
        assert tally == long_tally, path.name
        taken += sum(one.taken for one in extractor.lanes._lanes.values() if one is not None)
        total += len(long_way)
    assert taken > total / 2


def test_a_block_has_the_rows_of_its_lines() -> None:
    data = gzip.decompress((DATA / "volume" / "b11549-hybrid-volume.log.gz").read_bytes())[: 2 << 20]
    events, tally, _ = read(data, by_lanes=True, blocks=True)
    singles, long_tally, _ = read(data, by_lanes=False)
    assert tally == long_tally
    rows: list[tuple[object, ...]] = []
    blocks = 0
    for event in events:
        if event.kind in BLOCK_KINDS:
            blocks += "rows" in event.f
            rows += [(event.kind, *row) for row in rows_of(event, BLOCK_KINDS[event.kind])]
    expected = [(e.kind, *rows_of(e, BLOCK_KINDS[e.kind])[0]) for e in singles if e.kind in BLOCK_KINDS]
    assert rows == expected
    assert 0 < blocks < len(expected) / 4


@pytest.mark.parametrize("before", ["", "\x1b[0m", "llama-1  | ", "0.01.000.{n:03d} I ", "[5001] 0.01.000.{n:03d} I "])
def test_a_block_is_the_same_whatever_stands_before_its_lines(before: str) -> None:
    entry = before + "srv        update:    - prompt 0x7f20{k:04x}: {k:7d} tokens, checkpoints: {c:2d},     0.529 MiB"
    lines = [entry.format(n=n, k=n % 30, c=n % 7) for n in range(300)]
    lines[200] = lines[200].replace(" tokens", " token s")
    lines[250] = "x" + lines[250]
    data = "\n".join(lines).encode()
    events, tally, _ = read(data, by_lanes=True, blocks=True)
    singles, long_tally, _ = read(data, by_lanes=False)
    assert tally == long_tally
    assert len(events) < len(singles) / 4
    rows = [row for event in events for row in rows_of(event, BLOCK_KINDS["cache_entry"])]
    assert rows == [rows_of(event, BLOCK_KINDS["cache_entry"])[0] for event in singles]
    by_line = {event.line: event for event in singles}
    for event in events:
        single = by_line[event.line]
        assert (event.t, event.port, event.slot, event.task) == (single.t, single.port, single.slot, single.task)


def test_a_listing_in_json_with_the_time_behind_is_read_line_by_line() -> None:
    """As whoever sorts the keys of a record writes it."""
    entry = (
        '{{"level":"info","msg":"srv        update:    - prompt 0x7f20{k:04x}: {k:7d} tokens, checkpoints: {c:2d},     '
        '0.529 MiB\\n","time":{n},"type":"log"}}'
    )
    data = "\n".join(entry.format(n=1000 + n, k=n % 30, c=n % 7) for n in range(300)).encode()
    events, tally, extractor = read(data, by_lanes=True, blocks=True)
    singles, long_tally, _ = read(data, by_lanes=False)
    assert any(one is not None and one.taken > 200 for one in extractor.lanes._lanes.values())
    assert tally == long_tally
    assert [event.t for event in singles] == list(range(1000, 1300))
    assert [(e.line, e.t) for e in events] == [(e.line, e.t) for e in singles]
    assert [rows_of(e, BLOCK_KINDS["cache_entry"]) for e in events] == [rows_of(e, BLOCK_KINDS["cache_entry"]) for e in singles]


def test_a_block_of_damaged_lines_is_none() -> None:
    """All numbers of one reading beyond any sense: nothing is left for an event, and each line is counted."""
    sound, damaged = [LINES[-1]] * 300, [LINES[-1].replace("1530", "9" * 25)] * 300
    extractor = Extractor(NEEDED_KINDS, EVIDENCE_KINDS, BLOCK_KINDS)
    feeder = Feeder(Source("server.log"))
    events = []
    for lines in (sound, sound, damaged):
        for chunk in feeder.feed("".join(line + "\n" for line in lines).encode()):
            events += extractor.read(chunk).events
    assert sum(len(rows_of(event, BLOCK_KINDS["cache_entry"])) for event in events) == 600
    assert extractor.tally.drifted_lines == 300


def test_a_listing_of_two_servers_is_two_blocks() -> None:
    """Router children may print into each other's listings."""
    entry = "[{port}] 0.01.000.{n:03d} I srv        update:    - prompt 0x7f20{n:04x}: {n:7d} tokens, checkpoints: {c:2d},     0.529 MiB"
    lines = [entry.format(port=5001 + (n % 10 > 4), n=n, c=n % 7) for n in range(100)]
    events, _, _ = read("\n".join(lines).encode(), by_lanes=True, blocks=True)
    for event in events:
        numbers = [row[0] for row in event.f["rows"]] if "rows" in event.f else [event.f["n_tokens"]]
        assert {5001 + (n % 10 > 4) for n in numbers} == {event.port}


LINES = [
    "0.22.467.276 I slot   operator(): id  3 | task 7277 | cached n_tokens = 994, memory_seq_rm [994, end)",
    "0.22.467.338 I slot create_check: id  3 | task 7277 | created context checkpoint 3 of 6 (pos_min = 993, pos_max = 993, n_tokens = 994, size = 0.020 MiB)",
    "0.22.526.608 I slot print_timing: id  1 | task 7267 | prompt eval time =      23.48 ms /    60 tokens (    0.39 ms per token,  2555.69 tokens per second)",
    "0.22.552.884 I slot get_availabl: id  1 | task -1 |  - checking sim = 0.005 (7/1276) > 0.100",
    "0.22.553.433 I srv          load:    - prompt with length    1530, lcp =       7, f_keep = 0.005, f_sim = 0.005",
    "0.22.553.632 I srv        update:    - prompt 0x7f206032dbf0:    1530 tokens, checkpoints:  5,     0.529 MiB",
]
ODD = ["0x1F", "0x", "00000000000000AB", "1.5", "7", "7.", ".7", "1.2.3.4", "-3", "nan", "9" * 16, "9" * 25, "1e9", "", " 12", "12 ", "a1", "1a", "x5", "5x", "+4"]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LINES), st.integers(0, 2**32))
def test_odd_numbers_are_read_as_on_the_long_way(line: str, seed: int) -> None:
    rng = random.Random(seed)

    def changed(match: object) -> str:
        return rng.choice(ODD) if rng.random() < 0.2 else match.group()  # type: ignore[attr-defined]

    sound = [line] * 50
    odd = [number_tokens.sub(changed, line) for _ in range(30)]
    data = "\n".join([*sound, *rng.sample([*sound, *odd], 80)]).encode()
    by_lanes, tally, extractor = read(data, by_lanes=True)
    long_way, long_tally, _ = read(data, by_lanes=False)
    assert extractor.lanes
    assert [plain(e) for e in by_lanes] == [plain(e) for e in long_way]
    assert (tally.drifted_lines, tally.unknown_slot_lines) == (
        long_tally.drifted_lines,
        long_tally.unknown_slot_lines,
    )


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        (LINES[0], True),
        ("\x1b[0m" + LINES[0] + "\x1b[0m", True),
        ("llama-1  | " + LINES[0], True),
        # a hex digit touches a number: together they might be a pointer
        ("llama-7f3  | " + LINES[0], False),
        # free text, for all that one example shows
        (LINES[0].replace("= 994", "=" + " " * 1200 + "994"), False),
    ],
)
def test_what_is_not_certain_gets_no_lane(line: str, certain: bool) -> None:
    plan = Planner(messages(), NEEDED_KINDS, EVIDENCE_KINDS).plan(line)
    assert plan.status == "event"
    assert (lane(plan, line) is not None) == certain


def test_a_lane_takes_only_lines_of_its_shape() -> None:
    planner = Planner(messages(), NEEDED_KINDS, EVIDENCE_KINDS)
    for line in LINES:
        found = lane(planner.plan(line), line)
        assert found is not None
        shape = padded_number_tokens.sub("#", line)
        others = [other for other in LINES if other != line] + [
            line + " more",
            "more " + line,
            line.replace("I ", "W ", 1),
        ]
        for other in others:
            assert padded_number_tokens.sub("#", other) != shape
        events, n, rest = found.read(pl.DataFrame({"no": range(len(others) + 1), "line": [*others, line]}))
        assert (n, [e.line for e in events], rest.height) == (1, [len(others)], len(others))
