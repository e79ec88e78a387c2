"""Whether the slots share one KV cache, and how many tokens there are for all: from what each build says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ckptlog.analysis import Analysis
from ckptlog.report.words import run_words

Analyse = Callable[[Sequence[str]], Analysis]

AUTO = "0.00.100.000 I srv          main: n_parallel is set to auto, using n_parallel = 4 and kv_unified = true"
CAPPED = "0.00.110.000 I srv    load_model: capping per-slot context (32768) to --kv-unified-per-slot (8192)"
PER_SLOT = "0.00.100.000 I slot   load_model: id  {} | task -1 | new slot, n_ctx = {}"


def initialized(n_ctx_slot: int, unified: str) -> str:
    return (
        "0.00.120.000 I srv    load_model: initializing, n_slots = 4, "
        f"n_ctx_slot = {n_ctx_slot}, kv_unified = '{unified}'"
    )


@pytest.mark.parametrize(
    ("lines", "unified", "n_ctx", "words"),
    [
        ([initialized(1024, "true")], True, 1024, "4 slots sharing 1,024 tokens"),
        ([initialized(1024, "false")], False, 4096, "4 slots of 1,024 tokens"),
        ([CAPPED, initialized(8192, "true")], True, 32768, "4 slots sharing 32,768 tokens, at most 8,192 each"),
        ([AUTO, *(PER_SLOT.format(n, 2048) for n in range(4))], True, 2048, "4 slots sharing 2,048 tokens"),
        ([PER_SLOT.format(n, 2048) for n in range(4)], None, None, "4 slots of 2,048 tokens"),
    ],
)
def test_what_the_start_says(
    analyse: Analyse, lines: list[str], unified: bool | None, n_ctx: int | None, words: str
) -> None:
    (run,) = analyse(lines).report.runs
    assert (run.kv_unified, run.n_ctx) == (unified, n_ctx)
    assert ", ".join(run_words(run)[1]).startswith(words)


OUT_OF_CELLS = (
    "1.00.000.000 I slot launch_slot_: id  1 | task 7 | processing task, is_child = 0",
    "1.01.000.000 E srv    send_error: task id = 7, error: Context size has been exceeded.",
    "1.01.000.100 I slot      release: id  1 | task 7 | stop processing: n_tokens = 300, truncated = 0",
)


def test_cells_that_run_out_before_a_slot_is_full_are_shared(analyse: Analyse) -> None:
    analysis = analyse([*(PER_SLOT.format(n, 2048) for n in range(4)), *OUT_OF_CELLS])
    assert analysis.report.runs[0].kv_unified is True
    (turn,) = analysis.report.turns
    larger = next(fix for fix in turn.fixes if fix.name == "larger-context")
    assert larger.flags == ["-c", "4096"], "twice what all slots share"


def test_a_single_slot_proves_nothing(analyse: Analyse) -> None:
    assert analyse([PER_SLOT.format(0, 2048), *OUT_OF_CELLS]).report.runs[0].kv_unified is None
