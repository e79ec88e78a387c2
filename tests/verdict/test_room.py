"""A larger -c is advised only where the server gives a slot more for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ckptlog.analysis import Analysis
from ckptlog.records import TurnRecord
from ckptlog.report.words import run_words
from ckptlog.timeline.model import Run
from ckptlog.verdict.room import larger_context, no_more

from .lines import Log

Analyse = Callable[[Sequence[str]], Analysis]


def a_run(build: int | None = 11549, **known: object) -> Run:
    run = Run(0, 0, 1, 9, build_min=build or 0, build_max=build)
    for name, value in {"n_slots": 1, **known}.items():
        setattr(run, name, value)
    return run


#: b11549 with -c 4096 -np 2 and a model trained for 1,024 tokens, which refused 1,110 and 2,430 tokens with
#: either slot count, and at -c 2048 -np 1 as well
CAPPED = """\
0.00.000.225 I srv          init: initializing ...
0.00.006.284 W llama_context: n_ctx_seq (2048) > n_ctx_train (1024) -- possible training context overflow
0.00.009.782 W srv    load_model: the slot context (2048) exceeds the training context of the model (1024) - capping
0.00.011.400 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 1024, kv_unified = 'false'
0.00.032.958 I slot get_availabl: id  1 | task -1 | selected slot by LRU, t_last = -1
0.00.033.005 I slot launch_slot_: id  1 | task 24 | processing task, is_child = 0
0.00.084.723 I slot print_timing: id  1 | task 24 | prompt eval time =       7.92 ms /   630 tokens (    0.02 ms per token, 46993.43 tokens per second)
0.00.084.755 I slot print_timing: id  1 | task 24 |        eval time =      43.79 ms /   394 tokens (    0.11 ms per token,  8974.86 tokens per second)
0.00.084.767 I slot print_timing: id  1 | task 24 |       total time =      51.70 ms /  1024 tokens
0.00.087.581 I slot      release: id  1 | task 24 | stop processing: n_tokens = 1023, truncated = 1
0.00.088.353 I slot launch_slot_: id  1 | task 421 | processing task, is_child = 0
0.00.088.372 E srv    send_error: task id = 421, error: request (1110 tokens) exceeds the available context size (1024 tokens), try increasing it
0.00.088.385 I slot      release: id  1 | task 421 | stop processing: n_tokens = 1023, truncated = 0
0.00.093.614 I slot launch_slot_: id  1 | task 424 | processing task, is_child = 0
0.00.093.632 E srv    send_error: task id = 424, error: request (2430 tokens) exceeds the available context size (1024 tokens), try increasing it
0.00.093.644 I slot      release: id  1 | task 424 | stop processing: n_tokens = 1023, truncated = 0
""".splitlines()


def flags(turn: TurnRecord) -> list[str]:
    return [flag for fix in turn.fixes for flag in fix.flags]


def test_a_slot_gets_no_more_than_the_model_was_trained_for(analyse: Analyse) -> None:
    turns = analyse(CAPPED).report.turns
    assert [turn.outcome for turn in turns] == ["limit-stop", "arrival-rejection", "arrival-rejection"]
    for turn in turns:
        assert flags(turn) == []
        assert [fix.name for fix in turn.fixes] == ["shorten-history"]
        assert not turn.fixes[0].text.startswith("Or ")
        (told,) = [fix for fix in turn.not_fixes if fix.name == "larger-context"]
        assert "trained for 1,024 tokens" in told.text


def test_without_the_cap_the_same_turns_are_helped(analyse: Analyse) -> None:
    log = [line for line in CAPPED if "train" not in line]
    stopped, near, over = analyse(log).report.turns
    assert flags(stopped) == ["-c", "6144"]
    assert flags(near)[:2] == ["--parallel", "1"]
    assert flags(over) == ["-c", "8192"]
    assert over.fixes[0].text.endswith("(2 slots share -c), if the model was trained for that many.")


def test_what_the_slots_share_is_told_before_the_cap(analyse: Analyse) -> None:
    unified = [line.replace("2048", "4096").replace("'false'", "'true'") for line in CAPPED]
    (run,) = analyse(unified).report.runs
    assert ", ".join(run_words(run)[1]) == "2 slots sharing 4,096 tokens, at most 1,024 each"
    (split,) = analyse(CAPPED).report.runs
    assert split.n_ctx == 4096


@pytest.mark.parametrize(
    "line",
    [
        "0.00.005.000 I print_info: n_ctx_train           = 1024",
        "0.00.005.000 W llama_context: n_ctx_seq (512) < n_ctx_train (1024) -- the full capacity of the model will not be utilized",
    ],
)
def test_the_training_context_is_known_from_other_lines(analyse: Analyse, line: str) -> None:
    log = [line if "n_ctx_seq" in other else other for other in CAPPED if "capping" not in other]
    assert [flags(turn) for turn in analyse(log).report.turns] == [[], [], []]


def test_a_draft_model_that_was_trained_for_less_caps_nothing(analyse: Analyse) -> None:
    info = "0.00.00{}.000 I print_info: n_ctx_train           = {}"
    log = [*CAPPED[:1], info.format(5, 65536), info.format(6, 1024), *CAPPED[3:]]
    assert flags(analyse(log).report.turns[-1]) == ["-c", "8192"]


@pytest.mark.parametrize(
    ("run", "text", "wanted"),
    [
        (a_run(n_ctx_train=32768), "at least 6,000 tokens: -c 6144.", ["-c", "6144"]),
        (a_run(n_ctx_train=5000), "5,000 tokens, the most that this model was trained for: -c 5120.", ["-c", "5120"]),
        (a_run(), "-c 6144, if the model was trained for that many.", ["-c", "6144"]),
        (a_run(build=6800, n_ctx_train=4096), "at least 6,000 tokens: -c 6144.", ["-c", "6144"]),
        (a_run(n_ctx_train=32768, n_slots=3), "-c 18432 (3 slots share -c).", ["-c", "18432"]),
        (
            a_run(n_ctx_train=32768, n_slots=None),
            "-c 6144 (for one slot; this log does not show how many share -c).",
            ["-c", "6144"],
        ),
        (
            a_run(n_ctx_train=65536, n_slots=4, kv_unified=True, n_ctx_slot=4096, n_ctx_share=16384),
            "--kv-unified-per-slot 6144.",
            ["--kv-unified-per-slot", "6144"],
        ),
        (
            a_run(n_ctx_train=65536, n_slots=4, kv_unified=True, n_ctx_slot=4096, n_ctx_share=5120),
            "--kv-unified-per-slot 6144 -c 6144.",
            ["--kv-unified-per-slot", "6144", "-c", "6144"],
        ),
    ],
)  # fmt: skip
def test_what_gives_a_slot_6000_tokens(run: Run, text: str, wanted: list[str]) -> None:
    fix = larger_context(run, 6000, 4097, 6000)
    assert fix is not None
    assert fix.text.endswith(text)
    assert fix.flags == wanted
    assert no_more(run, 4097) is None


def test_nothing_gives_a_slot_more_than_the_model_takes() -> None:
    run = a_run(n_ctx_train=4096)
    assert larger_context(run, 6000, 4097) is None
    assert no_more(run, 4097) is not None


def shifted(**known: Any) -> Log:
    """A prompt of 700 tokens and an answer of 500 in a context of 1,000."""
    log = Log(n_ctx=1000, **known)
    log.turn(700, 0, generated=500, after=["slot context shift, n_keep = 0, n_left = 999, n_discard = 499"], truncated=1)
    return log


def test_what_a_shifted_turn_would_have_needed_is_known(analyse: Analyse) -> None:
    found = {fix.name: fix for fix in analyse(shifted().lines).report.turns[-1].fixes}
    assert "at least 1,201 tokens" in found["larger-context"].text
    assert found["larger-context"].flags == ["-c", "2048"]
    assert "fewer-slots" not in found


def test_fewer_slots_are_named_where_they_alone_are_enough(analyse: Analyse) -> None:
    first = analyse(shifted(n_slots=2).lines).report.turns[-1].fixes[0]
    assert (first.name, first.flags) == ("fewer-slots", ["--parallel", "1"])


def test_twice_as_much_is_a_beginning_where_the_need_is_not_known(analyse: Analyse) -> None:
    log = Log(n_ctx=1000)
    log.turn(700, 0, generated=300, truncated=1)
    turn = analyse(log.lines).report.turns[-1]
    assert turn.outcome == "limit-stop"
    (larger,) = (fix for fix in turn.fixes if fix.name == "larger-context")
    assert "tokens to begin with" in larger.text
    assert "at least" not in larger.text


def test_under_ollama_the_context_is_set_by_num_ctx(analyse: Analyse) -> None:
    asked = '[GIN] 2026/08/14 - 20:48:47 | 200 |         1m31s |       127.0.0.1 | POST     "/api/chat"'
    turn = analyse([asked, *shifted().lines]).report.turns[-1]
    (larger,) = (fix for fix in turn.fixes if fix.name == "larger-context")
    assert "num_ctx 2048" in larger.text
    assert larger.flags == []


@pytest.mark.parametrize(
    "line",
    [
        '[GIN] 2026/08/14 - 20:48:47 | 200 |         1m31s |       127.0.0.1 | POST     "/v1/chat/completions"',
        '[GIN] 2026/08/14 - 20:48:47 | 200 |      412.71µs |       127.0.0.1 | GET      "/api/users"',
        '127.0.0.1 - - [14/Aug/2026:20:48:47 +0000] "POST /api/chat HTTP/1.1" 200 17',
    ],
)
def test_what_any_program_with_gin_prints_is_no_word_of_ollama(analyse: Analyse, line: str) -> None:
    turn = analyse([line, *shifted().lines]).report.turns[-1]
    (larger,) = (fix for fix in turn.fixes if fix.name == "larger-context")
    assert larger.flags == ["-c", "2048"]


def test_ollama_stays_where_it_starts_another_server(analyse: Analyse) -> None:
    asked = 'time=2026-08-14T20:47:08.996+02:00 level=INFO source=llama_server.go:415 msg="starting llama-server"'
    report = analyse([asked, *shifted().lines, *shifted().lines]).report
    assert len(report.runs) == 2
    assert all("num_ctx" in fix.text for fix in report.turns[-1].fixes if fix.name == "larger-context")
    assert analyse([asked]).report.runs == []
