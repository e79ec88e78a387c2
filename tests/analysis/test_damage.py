"""Logs that begin or end anywhere, lack lines, or have them twice, out of order or with odd numbers:
a report, no exception, and no figures that can't be true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .consistency import contradictions

CHECK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

#: every build, kind of memory, form and kind of failure; small enough to be analysed many times
MATERIAL = [
    "b8672/swa/lv5",
    "b8672/plain/shift_restore",
    "b8672/hybrid/reject",
    "b10068/hybrid/pcache_tiny",
    "b10068/swa/deep_edit",
    "b11549/hybrid/debug_window",
    "b11549/hybrid/disconnect",
    "b11549/hybrid/embed",
    "b11549/hybrid/fmt_colors",
    "b11549/hybrid/save_restore",
    "b11549/plain/json_log",
    "b11549/plain/ncmpl_shift",
    "b11549/swa/kv_full",
    "b11549/swa/lv3",
    "b11549/swa/slots2",
]
names = st.sampled_from(MATERIAL)
seeds = st.integers(0, 2**32)

Analyse = Callable[..., Any]


def sound(analysis: Any, *, sums: bool = True) -> None:
    """The report can be written and does not contradict itself (``sums``: nor do its sums)."""
    msgspec.json.encode(analysis.report)
    told = contradictions(analysis.report)
    assert [text for text in told if sums or " != " not in text] == []


@CHECK
@given(names, st.floats(0, 1))
def test_any_beginning(recorded: Callable[[str], Any], analyse: Analyse, name: str, part: float) -> None:
    data = recorded(name).data
    sound(analyse(data[: int(part * len(data))]))


@CHECK
@given(names, st.floats(0, 1))
def test_any_end(recorded: Callable[[str], Any], analyse: Analyse, name: str, part: float) -> None:
    data = recorded(name).data
    sound(analyse(data[int(part * len(data)) :]))


@CHECK
@given(names, seeds, st.sampled_from([0.02, 0.1, 0.5, 0.9]))
def test_lines_missing(
    recorded: Callable[[str], Any], analyse: Analyse, name: str, seed: int, share: float
) -> None:
    random_ = random.Random(seed)
    sound(analyse([line for line in recorded(name).lines if random_.random() >= share]))


@CHECK
@given(names, st.sampled_from(["slot ", "checkpoint", "print_timing", "release", "task", "n_tokens", "eval time"]))
def test_grepped(recorded: Callable[[str], Any], analyse: Analyse, name: str, word: str) -> None:
    sound(analyse([line for line in recorded(name).lines if word in line]))


@CHECK
@given(names, seeds)
def test_lines_twice(recorded: Callable[[str], Any], analyse: Analyse, name: str, seed: int) -> None:
    random_ = random.Random(seed)
    sound(analyse([copy for line in recorded(name).lines for copy in [line] * random_.choice([1, 1, 1, 2, 3])]))


@CHECK
@given(names, seeds, st.sampled_from([0, 6]))
def test_lines_out_of_order(
    recorded: Callable[[str], Any], analyse: Analyse, name: str, seed: int, reach: int
) -> None:
    """Shuffled altogether, or each line moved by a few (the logger's threads do that)."""
    random_ = random.Random(seed)
    lines = recorded(name).lines
    if reach:
        places = sorted(range(len(lines)), key=lambda i: i + random_.uniform(0, reach))
        shuffled = [lines[i] for i in places]
    else:
        shuffled = random_.sample(lines, len(lines))
    sound(analyse(shuffled), sums=False)


@CHECK
@given(names, names)
def test_two_logs_in_one_file(recorded: Callable[[str], Any], analyse: Analyse, one: str, two: str) -> None:
    sound(analyse(recorded(one).data + recorded(two).data))


ODD = ["0", "1", "-1", "-7", "+5", "1000000", "9" * 9, "9" * 18, "9" * 19, "1" + "0" * 30, "1.5", "1.2.3", "0x1F",
       "nan", "-nan(ind)", "inf", "1e+20", "null", "x", "\u0661\u0662", ""]  # fmt: skip


@CHECK
@given(names, seeds, st.sampled_from([0.005, 0.05]))
def test_odd_numbers(
    recorded: Callable[[str], Any], analyse: Analyse, name: str, seed: int, share: float
) -> None:
    """Whatever stands where a number should be: a figure, or a line that counts as drifted."""
    random_ = random.Random(seed)

    def odd(number: re.Match[str]) -> str:
        return random_.choice(ODD) if random_.random() < share else number[0]

    sound(analyse(re.sub(r"\d+(?:\.\d+)*", odd, recorded(name).text)), sums=False)
