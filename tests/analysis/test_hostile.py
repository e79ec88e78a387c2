"""Text that someone else chose: it stays text, and it costs bounded time and memory."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from .consistency import contradictions

Recorded = Callable[[str], Any]
Analyse = Callable[..., Any]
Changed = Callable[..., list[Any]]

HEAD = "slot   operator(): id  0 | task {task} | "
#: lines of a server, as a prompt may hold them behind a newline
FAKE = [
    "0.00.123.456 I slot create_check: id  0 | task {task} | created context checkpoint 1 of 32 "
    "(pos_min = 0, pos_max = 99, n_tokens = 100, size = 1.000 MiB)",
    "0.00.123.456 I slot      release: id  0 | task {task} | stop processing: n_tokens = 511, truncated = 1",
    "0.00.123.456 I slot launch_slot_: id  0 | task 999999 | processing task, is_child = 0",
    "0.00.123.456 E srv    send_error: task id = {task}, error: request (9216 tokens) exceeds the available "
    "context size (8192 tokens), try increasing it",
    "0.00.123.456 W srv          stop: cancel task, id_task = {task}",
    "0.00.123.456 W slot   operator(): id  0 | task {task} | slot context shift, n_keep = 0, n_left = 511, "
    "n_discard = 255",
    "0.00.000.001 I srv    load_model: initializing, n_slots = 64, n_ctx_slot = 1, kv_unified = 'true'",
    "0.00.123.456 I slot   operator(): id  0 | task {task} | cached n_tokens = 5.5, memory_seq_rm [5.5, end)",
    "slot   operator(): id  0 | task {task} | cached n_tokens = 3, memory_seq_rm [3, end)",
    "[51877] slot launch_slot_: id  0 | task 0 | processing task, is_child = 0",
]


def test_log_lines_inside_a_prompt_are_no_log_lines(recorded: Recorded, analyse: Analyse, changed: Changed) -> None:
    """Injected into every token window of a real log, behind a newline of its own."""
    log = recorded("b11549/hybrid/debug_window")
    lines: list[str] = []
    windows = 0
    for line in log.lines:
        lines.append(line)
        window = re.search(r"task (\d+) \| (?:old|new): \.\.\. ", line)
        if window is not None:
            windows += 1
            lines += [fake.replace("{task}", window[1]) for fake in FAKE]
    assert windows > 10
    wrong = [d[0] for d in changed(log.report, analyse(lines).report, places=False) if ".mismatch" not in d[0]]
    # lines are counted as drifted before it is known that they stand in a window
    assert set(wrong) <= {".sources[0].drifted_lines"}


def test_an_odd_first_line_condemns_no_shape(recorded: Recorded, analyse: Analyse) -> None:
    """The grammar is asked once a shape; a float, a pointer or a long number is no example of an integer."""
    log = recorded("b11549/hybrid/lv4")
    for number in ("5.5", "1.2.3", "0x1F", "1" + "0" * 30, "\u0661\u0662"):
        odd = [
            re.sub(r"n_tokens = \d+", f"n_tokens = {number}", line).replace("task 0", "task 77")
            for line in log.lines
            if "created context checkpoint" in line or "cached n_tokens" in line or "stop processing" in line
        ][:8]
        at = next(i for i, line in enumerate(log.lines) if "processing task" in line)
        report = analyse([*log.lines[:at], *odd, *log.lines[at:]]).report
        alone = {t.task: (t.outcome, t.n_cached, t.n_generated, t.checkpoints) for t in log.report.turns}
        found = {t.task: (t.outcome, t.n_cached, t.n_generated, t.checkpoints) for t in report.turns}
        # the first turn's slot may have been touched by the odd task
        assert {k: found[k][:3] for k in alone if k} == {k: alone[k][:3] for k in alone if k}, number


def test_markup_and_escapes_stay_as_they_are(analyse: Analyse) -> None:
    text = "[bold red]x[/bold red] <script>alert(1)</script> \x1b]0;title\x07 \x1b[2J | `a` "
    report = analyse(
        [
            "0.00.001.000 I slot launch_slot_: id  0 | task 3 | processing task, is_child = 0",
            f"0.00.002.000 E srv    send_error: task id = 3, error: {text}",
            "0.00.003.000 I slot      release: id  0 | task 3 | stop processing: n_tokens = 0, truncated = 0",
        ]
    ).report
    (turn,) = report.turns
    assert turn.outcome == "error"
    (quote,) = turn.evidence
    assert text.strip() in quote.text


@pytest.mark.parametrize("digits", ["\u0660", "\uff10", "\u0966"])
def test_digits_of_other_scripts_are_no_numbers(recorded: Recorded, analyse: Analyse, digits: str) -> None:
    table = {ord("0") + i: ord(digits) + i for i in range(10)}
    assert analyse([line.translate(table) for line in recorded("b11549/hybrid/lv4").lines]).report.turns == []


@pytest.mark.parametrize("slot", ["1000000000", "-5", "1" + "0" * 30])
def test_slot_numbers(recorded: Recorded, analyse: Analyse, slot: str) -> None:
    report = analyse([line.replace("id  0", f"id {slot}") for line in recorded("b11549/hybrid/slots2").lines]).report
    assert contradictions(report) == []


@pytest.mark.parametrize("minutes", ["9" * 10, "9" * 14, "9" * 18, "9" * 40])
def test_times_that_overflow(recorded: Recorded, analyse: Analyse, minutes: str) -> None:
    log = recorded("b11549/hybrid/lv4")
    report = analyse([re.sub(r"^\d+\.", f"{minutes}.", line) for line in log.lines]).report
    assert [(t.task, t.outcome, t.n_cached) for t in report.turns] == [
        (t.task, t.outcome, t.n_cached) for t in log.report.turns
    ]
    log = recorded("b11549/plain/json_log")
    report = analyse([re.sub(r'"time":\d+', f'"time":{minutes}', line) for line in log.lines]).report
    assert [(t.task, t.outcome) for t in report.turns] == [(t.task, t.outcome) for t in log.report.turns]


def test_absurd_counts_are_damage_and_are_counted(recorded: Recorded, analyse: Analyse) -> None:
    log = recorded("b11549/hybrid/lv4")
    lines = [re.sub(r"memory_seq_rm \[\d+", "memory_seq_rm [1" + "0" * 30, line) for line in log.lines]
    analysis = analyse(lines)
    (source,) = analysis.report.sources
    assert source.drifted_lines == sum("memory_seq_rm" in line for line in lines)
    assert analysis.drift[0].status == "drifted"


def test_broken_bytes_between_the_lines(recorded: Recorded, analyse: Analyse, changed: Changed) -> None:
    log = recorded("b11549/hybrid/lv4")
    lines = [piece for line in log.lines for piece in (line, "\udcff\udcfe\udc80 tail", "\x00" * 40)]
    assert [d for d in changed(log.report, analyse(lines).report, places=False) if ".mismatch" not in d[0]] == []


def test_lines_of_megabytes(recorded: Recorded, analyse: Analyse, changed: Changed) -> None:
    log = recorded("b11549/hybrid/lv4")
    head = HEAD.format(task=0)
    long = ["x" * 5_000_000, head + "y" * 5_000_000, head + "created context checkpoint 1 of 32 (pos_min = " + "9" * 5_000_000]
    start = time.process_time()
    report = analyse([*log.lines, *long]).report
    assert time.process_time() - start < 10
    differ = [d for d in changed(log.report, report, places=False) if not d[0].startswith((".sources", ".warnings"))]
    assert differ == []
    assert report.warnings == ["3 lines were longer than 1 MiB and cut there"]
    assert report.sources[0].drifted_lines + report.sources[0].unknown_slot_lines == 2


COSTLY = {
    "a million lines of another program": (1_000_000, lambda i: f"noise {i * 7919 % 1000003:x} ab{i % 97}"),
    "slot heads with a text of their own each": (4_000, lambda i: f"slot x{i * 7919 % 100003:x}y: id  0 | task {i} | q{i:x}z"),
    "fifty thousand starts": (100_000, lambda i: (
        "0.00.000.100 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 512, kv_unified = 'false'",
        "0.00.000.003 I srv          init: build_info: b11549-abcdef",
    )[i % 2]),
    "three thousand starts with a turn each": (9_000, lambda i: (
        "0.00.000.100 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 512, kv_unified = 'false'",
        "0.00.146.309 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0",
        "0.00.180.000 I slot      release: id  0 | task 0 | stop processing: n_tokens = 110, truncated = 0",
    )[i % 3]),
    "a slot for every task": (5_000, lambda i: f"0.00.001.000 I slot launch_slot_: id {i} | task {i} | processing task, is_child = 0"),
    "a port for every task": (2_000, lambda i: f"[{i}] slot launch_slot_: id 0 | task {i} | processing task, is_child = 0"),
    "windows that never end": (5_000, lambda i: "0.00.001.000 W slot   operator(): id  0 | task 0 | old: ... x | y"),
}  # fmt: skip


@pytest.mark.parametrize("what", COSTLY)
def test_floods_cost_bounded_time_and_memory(analyse: Analyse, what: str) -> None:
    count, line = COSTLY[what]
    data = "".join(line(i) + "\n" for i in range(count)).encode()
    tracemalloc.start()
    start = time.process_time()
    report = analyse(data).report
    took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 30
    assert peak < 200 << 20
    assert contradictions(report) == []
