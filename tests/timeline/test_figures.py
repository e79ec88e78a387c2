"""What printed lines say of the common prefix: ranges out of rounded ratios, thresholds by build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlog import analyze
from ckptlog.timeline.ranges import meet, ratio_range


@given(st.integers(1, 300_000), st.data())
def test_a_printed_ratio_allows_what_made_it(whole: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole))
    low, high = ratio_range(float(f"{part / whole:.3f}"), whole)
    assert low <= part <= high


@given(st.integers(1, 20_000), st.integers(0, 1000))
def test_a_printed_ratio_allows_nothing_else(whole: int, thousandths: int) -> None:
    """Every number in the range prints so, but for the two on its edges, where rounding is a matter of the last bit."""
    ratio = thousandths / 1000
    low, high = ratio_range(ratio, whole)
    for part in range(low + 1, high):
        assert f"{part / whole:.3f}" == f"{ratio:.3f}"
    for part in (low - 1, high + 1):
        if 0 <= part <= whole:
            assert f"{part / whole:.3f}" != f"{ratio:.3f}"


@pytest.mark.parametrize(
    ("ratio", "whole", "expected"),
    [(1.0, 500, (500, 500)), (0.0, 500, (0, 0)), (0.5, 1000, (500, 500)), (0.5, 10_000, (4995, 5005)), (-1.0, 100, (0, -100))],
)
def test_examples(ratio: float, whole: int, expected: tuple[int, int]) -> None:
    low, high = ratio_range(ratio, whole)
    assert (low, high) == expected or (low > high and expected[0] > expected[1])


def test_meet() -> None:
    assert meet(None, None) is None
    assert meet((1, 5), None) == (1, 5)
    assert meet(None, (1, 5)) == (1, 5)
    assert meet((1, 5), (3, 9)) == (3, 5)
    low, high = meet((1, 2), (5, 6)) or (0, 0)
    assert low > high


THRESHOLD = (
    "slot update_slots: id  0 | task 1 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 600",
    "slot update_slots: id  0 | task 1 | checking checkpoint with [480, 480] against {threshold}...",
    "slot update_slots: id  0 | task 1 | forcing full prompt re-processing due to lack of cache data (likely due to SWA "
    "or hybrid/recurrent memory, see https://github.com/ggml-org/llama.cpp/pull/13194#issuecomment-2868343055)",
    "slot update_slots: id  0 | task 1 | n_tokens = 0, memory_seq_rm [0, end)",
    "slot      release: id  0 | task 1 | stop processing: n_tokens = 610, truncated = 0",
)


@pytest.mark.parametrize(
    ("build", "n_common"),
    [
        (9113, 450),  # T = L - n_swa
        (9246, 451),  # one more is subtracted from b9246 to b9496
        (9496, 451),
        (9509, 450),
        (10566, 450),
    ],
)
def test_the_threshold_gives_the_common_prefix(analyse: Callable[..., Any], build: int, n_common: int) -> None:
    start = [
        f"build_info: b{build}-0123abc",
        "print_info: n_swa                 = 0",
        "llama_memory_recurrent: size =    0.30 MiB (     1 cells,   4 layers,  1 seqs), R (f32):    0.15 MiB, S (f32):    0.15 MiB",
    ]
    lines = [line.replace("{threshold}", "450") for line in THRESHOLD]
    if build >= 9246:
        start[2] = start[2].replace("1 seqs)", "1 seqs  0 rs_seq)")
        lines = [line.replace("| n_tokens = 0, mem", "| cached n_tokens = 0, mem") for line in lines]
    if build < 9829:
        lines = [line.replace("checking", "Checking") for line in lines]
    report = analyse([*start, *lines]).report
    (turn,) = report.turns
    assert report.runs[0].build == f"b{build}"
    assert turn.n_common == n_common
    assert turn.basis["n_common"] == "derived"


def test_the_prompt_out_of_the_release_line(recorded: Callable[[str], Any]) -> None:
    """At -lv 3 neither the prompt's length nor the reuse is printed; both follow, and say so."""
    log = recorded("b11549/hybrid/lv3")
    derived = [turn for turn in log.report.turns if turn.basis.get("n_cached") == "derived" and turn.n_cached]
    assert derived
    for turn in derived:
        assert turn.n_prompt == turn.n_cached + turn.n_processed
        assert turn.checkpoints is None


def test_children_share_their_parents_prompt(recorded: Callable[[str], Any]) -> None:
    for model in ("hybrid", "plain", "swa"):
        turns = recorded(f"b11549/{model}/ncmpl_shift").report.turns
        (child,) = (turn for turn in turns if turn.child_of is not None)
        (parent,) = (turn for turn in turns if turn.task == child.child_of)
        assert parent.slot != child.slot
        assert child.n_processed == 0
        assert child.n_prompt in (None, parent.n_prompt)


@pytest.mark.parametrize(
    ("name", "shared"),
    # what the slot's tokens and the prompt's had in common, as the server's own tokens tell (truth files)
    [("rewritten-system-prompt", {3: 16, 4: 14}), ("slot-taken", {4: 22, 5: 22})],
)
def test_a_search_against_0_bounds_what_is_in_common_by_the_window(name: str, shared: dict[int, int]) -> None:
    """b9713, window 64: no line tells the common prefix of a slot that was given by age, and next to nothing was lost."""
    log = Path(__file__).parents[1] / "data" / "live" / "b9713" / "swa" / f"{name}.log.gz"
    turns = analyze(log).report.turns
    for number, common in shared.items():
        turn = turns[number - 1]
        assert (turn.n_common, turn.n_common_range) == (None, (1, 65))
        assert 1 <= common <= 65
        assert (turn.outcome, turn.severity, turn.failed) == ("checkpoint-reprefill", "harmless", False)
