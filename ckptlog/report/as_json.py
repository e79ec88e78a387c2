"""The JSON report: the records as they are, in the order of their fields."""

from __future__ import annotations

from typing import Any

import msgspec

from ckptlog.records import Report
from ckptlog.report.safe import safe_json, safe_text


def _printable(report: Report) -> Report:
    """File names that are not UTF-8 reach Python as lone surrogates, which JSON can't hold."""
    for source in report.sources:
        source.path = safe_text(source.path) if not source.path.isprintable() else source.path
    return report


def render_json(report: Report) -> bytes:
    """One JSON object, indented, ending in a newline. The order of keys never changes."""
    return encode_json(_printable(report))


def encode_json(value: Any) -> bytes:
    """Any record or plain value as indented JSON that is safe to show on a terminal."""
    # made safe before it is indented: it is half as long then
    return msgspec.json.format(safe_json(msgspec.json.encode(value)), indent=1) + b"\n"
