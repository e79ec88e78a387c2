"""Small logs of the older form, made by hand, and what becomes of their turns."""

from __future__ import annotations

from pathlib import Path

import ckptlog
from ckptlog.records import TurnRecord

START = """\
build: 8780 (1a2b3c4d) with GNU 13.3.0 for Linux x86_64
srv    load_model: initializing slots, n_slots = 1
slot   load_model: id  0 | task -1 | new slot, n_ctx = 8192
"""
OPEN = """\
slot launch_slot_: id  0 | task 7 | processing task, is_child = 0
slot update_slots: id  0 | task 7 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 900
slot update_slots: id  0 | task 7 | n_tokens = 0, memory_seq_rm [0, end)
"""
DONE = """\
slot print_timing: id  0 | task 7 | prompt eval time =     100.00 ms /   900 tokens (    0.11 ms per token,  9000.00 tokens per second)
slot print_timing: id  0 | task 7 |        eval time =     100.00 ms /    11 tokens (    9.09 ms per token,   110.00 tokens per second)
slot      release: id  0 | task 7 | stop processing: n_tokens = 910, truncated = 0
"""  # fmt: skip


def turns(tmp_path: Path, text: str) -> list[TurnRecord]:
    log = tmp_path / "server.log"
    log.write_text(text)
    return ckptlog.analyze(log).report.turns
