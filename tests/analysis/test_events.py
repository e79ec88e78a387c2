"""The typed event tables of an analysis."""

from __future__ import annotations

from pathlib import Path

import ckptlog

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "evicted-system-prompt.log"


def test_each_kind_has_a_frame_with_its_fields() -> None:
    events = ckptlog.analyze(str(SAMPLE)).events
    created = events["created_checkpoint"]
    assert {"line", "t", "slot", "task", "index", "max", "pos_min", "pos_max", "n_tokens", "size_mib"} <= set(created.columns)
    assert created["n_tokens"].max() == events["batch_start"]["n_tokens"].max()
    assert events["release"].height == len(ckptlog.analyze(str(SAMPLE)).report.turns)
