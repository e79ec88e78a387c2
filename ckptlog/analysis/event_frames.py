"""Typed event tables: a Polars frame for each kind of message that the grammar parses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl

from ckptlog.events import Extractor
from ckptlog.grammar import messages
from ckptlog.intake.reader import read_chunks
from ckptlog.intake.sources import Source, expand


def event_frames(sources: Sequence[Source]) -> dict[str, pl.DataFrame]:
    """Frames by kind: source, line, t (seconds), port, slot, task, and the kind's own fields."""
    kinds = [k.name for k in messages().kinds.values() if k.treatment == "parsed"]
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for index, source in enumerate(sources):
        extractor = Extractor(kinds, ())
        again = source if source.is_stdin else expand([source.path])[0]
        for chunk in read_chunks(again):
            for event in extractor.feed(chunk):
                rows[event.kind].append(_row(index, event))
        for event in extractor.finish():
            rows[event.kind].append(_row(index, event))
    return {kind: pl.DataFrame(rows[kind], infer_schema_length=None, strict=False) for kind in sorted(rows)}


def _row(source: int, event: Any) -> dict[str, Any]:
    return {
        "source": source,
        "line": event.line,
        "t": None if event.t is None else event.t / 1e6,
        "port": event.port,
        "slot": event.slot,
        "task": event.task,
        **event.f,
    }
