"""What stands around a log's lines, learned from them: when it is certain, and what it costs."""

from __future__ import annotations

import time

import polars as pl
import pytest

from ckptlog.intake.learner import MOST_LINES, Learner
from ckptlog.intake.reader import Chunk

IDLE = "srv  update_slots: all slots are idle"
RELEASE = "slot      release: id  1 | task 42 | stop processing: n_tokens = 31, truncated = 0"
LIBRARY = "llama_context: n_ctx_seq     = 4096"


def chunk(lines: list[str], first: int = 1) -> Chunk:
    return Chunk(pl.Series("line", lines, dtype=pl.String), first, 0)


def read(learner: Learner, lines: list[str]) -> list[str]:
    """The lines as they come out, fed one by one."""
    chunks = [c for i, line in enumerate(lines) for c in learner.feed(chunk([line], i + 1))] + learner.finish()
    assert [c.first_line for c in chunks] == list(range(1, len(lines) + 1))
    return [line for c in chunks for line in c.lines]


def test_a_known_form_passes_from_its_first_head_on() -> None:
    for around in ("", "llama-1  | ", "Dec 03 09:41:21 tuba llama-server[24102]: ", "2026-05-14 22:40:42.674 | "):
        learner = Learner()
        assert learner.feed(chunk([around + LIBRARY])) == []
        (one, two) = learner.feed(chunk([around + IDLE], 2))
        assert (list(one.lines), list(two.lines)) == ([around + LIBRARY], [around + IDLE])
        three = chunk([f"[x] {IDLE}"] * 9, 3)
        assert learner.feed(three) == [three]
        assert learner.forms == []


@pytest.mark.parametrize(
    "around", ["[MOE] {}", "{n:>6}\t{}", 'level=info line="{}" at=x:{n}', "b'{}\\n'", "| {} |", "{}<br>", "+{}", "7,{}"]
)
def test_three_heads_prove_a_form(around: str) -> None:
    lines = [LIBRARY, IDLE, "", LIBRARY, RELEASE, IDLE, LIBRARY, IDLE]
    wrapped = [around.format(line, n=n + 95) for n, line in enumerate(lines)]
    assert read(Learner(), wrapped) == lines
    learner = Learner()
    assert [len(learner.feed(chunk([line], i + 1))) for i, line in enumerate(wrapped)] == [0, 0, 0, 0, 0, 6, 1, 1]


@pytest.mark.parametrize("around", ["[MOE] {}", 'level=info line="{}" at=x', "b'{}\\n'"])
def test_the_raw_lines_stay(around: str) -> None:
    wrapped = [around.format(line) for line in (LIBRARY, IDLE, RELEASE, IDLE, IDLE)]
    learner = Learner()
    chunks = [c for i, line in enumerate(wrapped) for c in learner.feed(chunk([line], i + 1))] + learner.finish()
    assert [line for c in chunks if c.raw is not None for line in c.raw] == wrapped


def test_a_short_paste() -> None:
    assert read(Learner(), [f"[MOE] {line}" for line in (IDLE, LIBRARY, IDLE)]) == [IDLE, LIBRARY, IDLE]
    once = [f"[MOE] {line}" for line in (IDLE, LIBRARY)]
    assert read(Learner(), once) == once


def test_a_known_wrapper_stays() -> None:
    around = "Dec 03 09:41:21 tuba llama-swap[24102]: "
    lines = [LIBRARY, IDLE, RELEASE, IDLE]
    assert read(Learner(), [f"{around}[qwen] {line}" for line in lines]) == [around + line for line in lines]


def test_lines_without_the_form_stay() -> None:
    lines = [f"[MOE] {IDLE}"] * 3 + ["[MOEX] text", LIBRARY, "[MOE]", ""]
    assert read(Learner(), lines) == [IDLE] * 3 + ["[MOEX] text", LIBRARY, "", ""]


def test_a_text_that_goes_on_behind_a_form_makes_no_longer_one() -> None:
    fakes = [f"[MOE] prompt eval time = {RELEASE}"] * 9
    lines = [f"[MOE] {IDLE}", *fakes, *[f"[MOE] {IDLE}"] * 3, "[MOE] prompt eval time = 3.00 ms"]
    assert read(Learner(), lines)[-1] == "prompt eval time = 3.00 ms"


def test_what_is_kept_back_is_bounded() -> None:
    learner = Learner()
    assert learner.feed(chunk([LIBRARY] * MOST_LINES)) == []
    assert sum(len(c.lines) for c in learner.feed(chunk([LIBRARY], MOST_LINES + 1))) == MOST_LINES + 1
    learner = Learner()
    assert len(learner.feed(chunk(["x" * (1 << 20)] * 40))) == 1


@pytest.mark.parametrize("known", [0, 3])
def test_a_flood_of_forms_costs_little(known: int) -> None:
    lines = [f"[MOE] {IDLE}"] * known + [f"{'abcdefghij'[i % 10] * (i % 997 + 1)} {i} {RELEASE}" for i in range(20_000)]
    start = time.process_time()
    learner = Learner()
    out = learner.feed(chunk(lines)) + learner.finish()
    assert time.process_time() - start < 5
    assert [line for c in out for line in c.lines][known:] == lines[known:]
