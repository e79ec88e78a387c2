"""The fast path (shapes, columns) gives what Lark gives, line by line, on every recorded log."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ckptlog.events import Event, Extractor
from ckptlog.grammar import Refused, messages
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source
from ckptlog.intake.unwrap import Envelope, unwrap
from ckptlog.timeline.kinds import EVIDENCE_KINDS, NEEDED_KINDS

DATA = Path(__file__).parents[1] / "data"
#: of a message that is printed thousands of times, this many examples are parsed by Lark
EXAMPLES = 25

WINDOWS = ("mismatch_old", "mismatch_new")

Key = tuple[str, str]


def lines_of(data: bytes) -> list[str]:
    feeder = Feeder(Source("server.log"))
    return [str(line) for chunk in (*feeder.feed(data), *feeder.finish()) for line in chunk.lines]


def fast_events(data: bytes) -> Iterator[Event]:
    """Every event, as it leaves the columns: windows and blocks of lines are put together later."""
    feeder = Feeder(Source("server.log"))
    extractor = Extractor(NEEDED_KINDS, EVIDENCE_KINDS)
    for chunk in (*feeder.feed(data), *feeder.finish()):
        yield from extractor.read(chunk).events


def number(text: str | None) -> int | float | None:
    if text is None:
        return None
    return float(text) if "." in text else int(text)


def micros(line: str, envelope: Envelope) -> int | None:
    if envelope.time is None:
        return None
    text = line[envelope.time.start : envelope.time.end]
    if "." not in text:
        return int(text)
    minutes, seconds, milli, micro = (int(part) for part in text.split("."))
    return ((minutes * 60 + seconds) * 1000 + milli) * 1000 + micro


def cut(line: str, span: Any) -> int | None:
    return None if span is None else int(line[span.start : span.end])


def slow_event(line: str) -> dict[str, Any] | None:
    """What Lark says of one line; null if it is no message that the timeline needs."""
    envelope = unwrap(line)
    if envelope.family is None:
        return None
    grammar = messages()
    if envelope.message or envelope.family != "slot":
        try:
            message = grammar.parse(envelope.message, envelope.family)
        except Refused:
            return None
        kind, wording, fields = message.kind, message.wording, message.fields
    else:
        kind = "timing_head" if (envelope.func or "").startswith("print_timing") else "token_ids"
        wording, fields = grammar.kinds[kind].wordings[0].name, {}
    if kind not in NEEDED_KINDS or grammar.kinds[kind].treatment == "ignored":
        return None
    return {
        "kind": kind,
        "wording": wording,
        "func": envelope.func,
        "t": micros(line, envelope),
        "port": cut(line, envelope.port),
        "slot": cut(line, envelope.slot),
        "task": cut(line, envelope.task),
        "fields": {name: field.text for name, field in fields.items()},
    }


def differs(event: Event, slow: dict[str, Any], types: dict[str, str]) -> str | None:
    """Where the two disagree."""
    for name, mine in (
        ("kind", event.kind), ("wording", event.of.wording), ("func", event.of.func), ("t", event.t),
        ("port", event.port), ("slot", event.slot), ("task", event.task),
    ):  # fmt: skip
        if mine != slow[name]:
            return f"{name}: {mine!r} != {slow[name]!r}"
    if event.kind in WINDOWS:
        # an empty window has a text, too
        slow["fields"].setdefault("text", "")
    if set(event.f) != set(slow["fields"]):
        return f"fields {sorted(event.f)} != {sorted(slow['fields'])}"
    for name, text in slow["fields"].items():
        mine = event.f[name]
        if name == "pointer":
            continue
        if name in types:
            wanted: Any = number(text) if text.lstrip("+-")[:1].isdigit() else None
            if mine != wanted or (types[name] == "INT" and not isinstance(mine, int)):
                return f"{name}: {mine!r} != {wanted!r}"
        elif str(mine).strip() != text.strip():
            return f"{name}: {mine!r} != {text!r}"
    return None


def disagreements(data: bytes) -> list[str]:
    lines = lines_of(data)
    events = {event.line: event for event in fast_events(data)}
    found: list[str] = []
    seen: dict[Key, int] = {}
    for no, event in events.items():
        key = (event.of.func or "", event.kind + event.of.wording)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > EXAMPLES:
            continue
        line = lines[no - 1]
        slow = slow_event(line)
        if slow is None:
            found.append(f"line {no}: {event} is no message to Lark: {line[:120]}")
            continue
        told = differs(event, slow, messages().parser(messages().kinds[event.kind]).numbers)
        if told is not None:
            found.append(f"line {no}: {told}: {line[:120]}")
    # and the other way: lines that the fast path passed over
    for no, line in missed(lines, events):
        slow = slow_event(line)
        if slow is not None:
            found.append(f"line {no} was passed over: {line[:120]}")
    return found


def missed(lines: list[str], events: dict[int, Event]) -> Iterable[tuple[int, str]]:
    """Lines without an event, a few of each look."""
    seen: dict[str, int] = {}
    for no, line in enumerate(lines, 1):
        if no in events:
            continue
        look = "".join("#" if c.isdigit() else c for c in line)[:160]
        seen[look] = seen.get(look, 0) + 1
        if seen[look] <= 1:
            yield no, line


def test_recorded(log_name: str, recorded: Callable[[str], Any]) -> None:
    if log_name.endswith("lv5") and "hybrid" not in log_name:
        pytest.skip("the debug flood of one kind of memory is enough")
    assert disagreements(recorded(log_name).data) == []


@pytest.mark.parametrize("path", sorted((DATA / "samples").glob("*.gz")), ids=lambda path: path.name)
def test_other_builds(path: Path) -> None:
    assert disagreements(gzip.decompress(path.read_bytes())) == []


@pytest.mark.parametrize("path", sorted((DATA / "field").glob("*.log")), ids=lambda path: path.name)
def test_field(path: Path) -> None:
    assert disagreements(path.read_bytes()) == []
