"""The JSON report: the records as they are, in the order of their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ckptlog.records import Report
from ckptlog.report.safe import safe_json, safe_text

#: records of a list that are encoded at once
_AT_ONCE = 1000


def _printable(report: Report) -> Report:
    """File names that are not UTF-8 reach Python as lone surrogates, which JSON can't hold."""
    for source in report.sources:
        source.path = safe_text(source.path) if not source.path.isprintable() else source.path
    return report


def json_pieces(report: Report) -> Iterator[bytes]:
    """What ``render_json`` gives, piece by piece: a report of a big log takes a gigabyte."""
    report = _printable(report)
    for number, name in enumerate(report.__struct_fields__):
        value = getattr(report, name)
        yield b'%s\n "%s": ' % (b"," if number else b"{", name.encode())
        if not isinstance(value, list):
            yield _indented(value)
            continue
        for at in range(0, len(value), _AT_ONCE):
            yield (b"," if at else b"[") + _indented(value[at : at + _AT_ONCE])[1:-3]
        yield b"\n ]" if value else b"[]"
    yield b"\n}\n"


def _indented(value: Any) -> bytes:
    """A field's value as it stands in the object around it."""
    return encode_json(value)[:-1].replace(b"\n", b"\n ")


def render_json(report: Report) -> bytes:
    """One JSON object, indented, ending in a newline. The order of keys never changes."""
    return b"".join(json_pieces(report))


def encode_json(value: Any) -> bytes:
    """Any record or plain value as indented JSON that is safe to show on a terminal."""
    # made safe before it is indented: it is half as long then
    return msgspec.json.format(safe_json(msgspec.json.encode(value)), indent=1) + b"\n"
