"""Writes the reports that the pictures are made of: ``python -m tests.tui.write_reports``.

The pictures show the TUI, not the engine: kept reports change only when someone writes them anew.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from ckptlog.analysis import analyze
from ckptlog.report.as_json import render_json

ROOT = Path(__file__).parents[2]
REPORTS = Path(__file__).parent / "reports"

SOURCES = {
    "evicted": "sample_logs/evicted-system-prompt.log",
    "rejected": "sample_logs/rejected.log",
    "limit": "sample_logs/limit-stop.log",
    "shift": "sample_logs/context-shift-head.log",
    "healthy": "sample_logs/healthy.log",
    "slots": "tests/data/logs/b11549/hybrid/kv_full.log.gz",
    "level3": "tests/data/logs/b11549/hybrid/lv3.log.gz",
    "partial": "tests/data/logs/b11549/hybrid/minstep_8192.log.gz",
}


def main() -> None:
    REPORTS.mkdir(exist_ok=True)
    os.chdir(ROOT)  # the reports name their logs as seen from there
    for name, path in SOURCES.items():
        data = render_json(analyze(path).report)
        content = data if isinstance(data, bytes) else data.encode()
        (REPORTS / f"{name}.json.gz").write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main()
