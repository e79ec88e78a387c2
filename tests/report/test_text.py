"""The text report, whole: golden files, and what holds for every report."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from ckptlog import analyze
from ckptlog.records import CheckpointSettings, Fix, Report, TurnRecord
from ckptlog.report.digest import Selection
from ckptlog.report.markdown import render_markdown
from ckptlog.report.text import render_text
from ckptlog.report.words import run_words

from . import build
from .build import HOSTILE, a_report, a_run, a_source, a_turn, an_evicted_turn

CASES: dict[str, Callable[[], Report]] = {
    "evicted": build.evicted,
    "healthy": build.healthy,
    "low_level": build.low_level,
    "many": build.many,
    "everything": build.everything,
    "nasty": build.nasty,
}


def flowing(report: Report) -> str:
    return " ".join(plain(report).split())


def plain(report: Report, width: int = 80, selection: Selection | None = None) -> str:
    return "".join(f"{line.plain}\n" for line in render_text(report, width, selection))


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, golden: Callable[[str, bytes], None]) -> None:
    golden(f"{case}.txt", plain(CASES[case]()).encode())


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("case", CASES)
def test_every_line_fits(case: str, width: int) -> None:
    for line in plain(CASES[case](), width).splitlines():
        assert cell_len(line) <= width, line
        assert line == line.rstrip()


@pytest.mark.parametrize("case", CASES)
def test_no_log_text_reaches_the_terminal_as_more_than_text(case: str) -> None:
    """With colours on, only Rich's own SGR codes are there: nothing of the log's."""
    screen = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    with screen.capture() as capture:
        for line in render_text(CASES[case]()):
            screen.print(line, no_wrap=True, overflow="ignore", crop=False, markup=False)
    shown = capture.get()
    bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", bare)
    assert bare == plain(CASES[case]()), "colour changes more than colour"


def test_markup_in_a_log_is_shown_not_used() -> None:
    text = plain(build.nasty(), 100)
    assert r"\e[2J" in text
    assert "[bold" in text
    assert "<script>" in text


def test_the_first_screen_says_what_it_cost_and_what_to_do() -> None:
    first = plain(build.evicted()).split("\n\n")[1]
    assert "PROMPTS WERE PROCESSED AGAIN FROM THE START" in first
    assert "3 of 52 turns, 37.3 s" in first
    assert "Do:  --ctx-checkpoints 4" in first


def test_ten_thousand_turns_are_short() -> None:
    assert len(plain(build.many()).splitlines()) < 110


def test_many_slots_are_short() -> None:
    turns = [a_turn(100 + n, slot=n % 300) for n in range(3000)]
    turns[2999] = an_evicted_turn(3000, 3099, slot=299)
    text = plain(a_report(turns, [a_run(n_slots=300)]))
    assert len(text.splitlines()) < 110
    assert "\nslot 299\n" in text, "the slot that failed is shown"
    assert "292 more slots" in text


def test_many_runs_and_logs_are_short() -> None:
    sources = [a_source(f"log{n}.log") for n in range(200)]
    runs = [a_run(n, n) for n in range(200)]
    turns = [a_turn(100, source=n, run=n) for n in range(200)]
    assert len(plain(a_report(turns, runs, sources)).splitlines()) < 80


def test_at_a_low_level_that_is_said_on_the_first_screen() -> None:
    text = " ".join(plain(build.low_level()).split())
    assert (
        text.index("PROMPT WAS PROCESSED")
        < text.index("The log was made at -lv 3")
        < text.index("11 turns 10")
    )
    assert "LLAMA_SERVER_SLOTS_N_DIFF=20 \\ llama-server ... -lv 4 2> server.log" in text
    assert "for 11 of 11 turns" in text


@pytest.mark.parametrize(
    "run",
    [
        {"verbosity": 4},
        {"verbosity": None},
        {"verbosity": 3, "build_min": 8000, "build_max": 9113},
        {"verbosity": 3, "checkpoints": CheckpointSettings(enabled=False)},
    ],
)
def test_nothing_is_called_hidden_that_is_not(run: dict[str, object]) -> None:
    report = a_report([a_turn(checkpoints=None)], [a_run(**run)])
    assert "The log was made at" not in plain(report)


def test_a_router_needs_both_streams() -> None:
    report = build.low_level()
    report.runs[0].port = 42027
    assert "> server.log 2>&1" in plain(report)


def test_nothing_wrong_is_not_said_of_what_is_unknown() -> None:
    turns = [a_turn(), a_turn(300, outcome="unknown", n_cached=None)]
    text = plain(a_report(turns))
    assert "of 1 turn the log does not tell" in text
    assert "Nothing went wrong" not in text


def test_a_harmless_line_is_called_so() -> None:
    text = plain(build.healthy())
    assert "Nothing went wrong in 13 turns." in text
    assert "Turn 13: re-prefill, but harmless" in text


def test_lines_not_understood_are_told() -> None:
    assert "3 of the server's own not understood" in plain(build.many())


def test_selected_turns_keep_their_numbers() -> None:
    report = build.evicted()
    report.turns = [report.turns[39], report.turns[51]]
    text = plain(report, selection=Selection([40, 52], 52))
    assert "2 of 52 turns selected" in text
    assert "turns 40 and 52" in text


def test_no_turn_selected() -> None:
    assert "No turn to show." in plain(a_report([]), selection=Selection([], 52))


def test_a_huge_mismatch_is_shown_around_its_bar() -> None:
    assert r"AAA | \e[2J" in " ".join(plain(build.nasty()).split())


def test_hostile_text_is_really_in_the_nasty_report() -> None:
    assert HOSTILE in build.nasty().turns[1].headline


def a_rewrite(line: int) -> TurnRecord:
    return an_evicted_turn(
        1, line, 3000, severity="harmless", failed=False, n_common=15, n_lost=15, trigger="prefix-rewritten",
        explanation="Its beginning was changed. " * 20 + "So it ends.", fixes=[Fix("keep", "Send it unchanged.")],
    )  # fmt: skip


def test_a_head_that_changes_is_the_headline_with_its_advice() -> None:
    text = flowing(a_report([a_turn(50, 3000, 0, outcome="cold"), a_rewrite(100), a_rewrite(200)]))
    assert "THE BEGINNING OF THE PROMPT CHANGED" in text
    assert "So it ends. The prompts part at token" in text
    assert "Do: Send it unchanged." in text
    assert "Nothing went wrong" not in text


def test_a_head_that_changes_now_and_then_is_a_note() -> None:
    text = flowing(a_report([a_rewrite(100), *(a_turn(100 * n, 9000, 8900) for n in range(2, 12))]))
    assert "Nothing went wrong in 11 turns. Note Turn 1 shared only 15 tokens" in text


def test_slow_and_not_the_caches_fault() -> None:
    turn = a_turn(100, 10211, 1279, outcome="restored", n_processed=8932, prompt_ms=2990500.0)
    text = flowing(a_report([turn]))
    assert "Slow, but not the cache's fault: 8,932 new tokens took 49 min 50 s (3.0 tok/s)." in text
    assert "Do: Put more of the model on the GPU" in text
    assert "Nothing went wrong" not in text


def test_an_error_is_not_counted_as_nothing_failed() -> None:
    text = flowing(a_report([a_turn(), a_turn(300, outcome="error")]))
    assert "2 turns 1 fine 1 with an error" in text


def test_slots_that_are_not_shown_tell_their_errors() -> None:
    turns = [a_turn(100 + n, slot=n, outcome="error") for n in range(12)]
    assert "and 4 more slots: 4 turns, 4 with an error" in plain(a_report(turns, [a_run(n_slots=12)]))
    turns = [a_turn(100 + n, slot=n, outcome="error" if n == 11 else "reused") for n in range(12)]
    assert "slot 11\n" in plain(a_report(turns, [a_run(n_slots=12)])), "a slot with an error is shown"


def test_an_error_before_anything_was_processed_is_no_blank() -> None:
    turn = a_turn(outcome="error", n_prompt=558, n_cached=0, n_processed=0, n_generated=0)
    assert "(nothing processed)" in plain(a_report([turn]))


def test_no_line_is_excused_that_is_not_there() -> None:
    turn = an_evicted_turn(1, 100, severity="harmless", failed=False, n_lost=20, n_common=20)
    assert "is no proof of harm" in flowing(a_report([turn]))
    turn.evidence = []
    assert "is no proof of harm" not in flowing(a_report([turn]))


def test_an_aside_stays_off_the_first_screen() -> None:
    fix = Fix("more", "Then it resumes. (The rule of thumb would say 11.)", ["--ctx-checkpoints", "6"])
    first, rest = plain(a_report([an_evicted_turn(1, 100, fixes=[fix])])).split("\n\n", 2)[1:]
    assert first.rstrip().endswith("Then it resumes.")
    assert "rule of thumb" not in first
    assert "rule of thumb" in rest


def test_a_rule_of_thumb_stays_off_the_first_screen() -> None:
    fix = Fix("more", 'It resumes. The rule of thumb "length / min-step + 1" is undefined.', ["--x", "6"])
    first = plain(a_report([an_evicted_turn(1, 100, fixes=[fix])])).split("\n\n", 2)[1]
    assert first.rstrip().endswith("It resumes.")


def test_a_selection_is_not_the_whole_log() -> None:
    text = plain(a_report([a_turn()]), selection=Selection([3], 10))
    assert "Nothing went wrong in the 1 of 10 turns selected." in text


def test_slots_that_share_a_context_are_said_to() -> None:
    run = {"n_slots": 4, "n_ctx_slot": 1024}
    shared = a_report([a_turn()], [a_run(**run, kv_unified=True, n_ctx=1024)])
    assert "4 slots sharing 1,024 tokens," in plain(shared)
    split = a_report([a_turn()], [a_run(**run, kv_unified=False, n_ctx=4096)])
    assert "4 slots of 1,024 tokens," in plain(split)


@pytest.mark.parametrize("width", range(45, 101))
def test_no_setting_of_the_heading_is_broken_over_two_lines(width: int) -> None:
    run = a_run(
        n_slots=4,
        n_ctx_slot=1024,
        kv_unified=True,
        n_ctx=1024,
        checkpoints=CheckpointSettings(True, 32, 256),
        context_shift=True,
        verbosity=4,
    )
    phrases = [phrase for line in run_words(run) for phrase in line]
    assert "-lv 4" in phrases
    heading = plain(a_report([a_turn()], [run]), width).partition("\n\n")[0].splitlines()
    for phrase in phrases:
        assert any(phrase in line for line in heading), phrase


def test_what_the_request_did_fits_a_new_conversation_as_well() -> None:
    """A new conversation with the same system prompt and an edited message look alike: one story for both."""
    turn = an_evicted_turn(1, 100, trigger="edited", explanation="A new conversation, or an edited message.")
    assert "keeps the beginning of what the slot held, then differs (edited)" in flowing(a_report([turn]))


def test_a_line_in_the_reason_is_told_with_its_log_where_there_are_several() -> None:
    turn = an_evicted_turn(1, 100, source=1, run=1, explanation="It was pushed out (line 208).")
    several = a_report([turn], [a_run(), a_run(1, 1)], [a_source("x/a.log"), a_source("x/b.log")])
    assert "It was pushed out (line 208 of b.log)." in flowing(several)
    assert "It was pushed out (line 208)." in flowing(
        a_report([an_evicted_turn(1, 100, explanation=turn.explanation)])
    )


def test_a_client_that_left_is_told_though_nothing_failed() -> None:
    turn = a_turn(
        outcome="cancelled", explanation="It left after 9 tokens.", fixes=[Fix("wait", "Raise the time-out.")]
    )
    text = flowing(a_report([turn, a_turn(300)]))
    assert "Nothing failed in 2 turns, but a client did not wait for its answer." in text
    assert "Note Turn 1: the client had gone. It left after 9 tokens. Do: Raise the time-out." in text
    assert "Nothing went wrong" not in text


def test_the_total_is_the_sum_of_what_the_turns_are_said_to_have_lost() -> None:
    taken = an_evicted_turn(1, 100, cause="slot-taken", n_known=2642, n_common=10, n_lost=10)
    ranged = an_evicted_turn(2, 200, n_common=None, n_lost=None, n_common_range=(500, 600))
    assert "2,642 lost" in flowing(a_report([taken])).split("turn line")[0]
    assert "3,142+ lost" in flowing(a_report([taken, ranged])).split("turn line")[0]


def test_advice_for_conversations_that_share_a_slot_can_be_copied() -> None:
    turns = [a_turn(line, 3000, 0, outcome="cold", n_processed=3000) for line in (100, 200)]
    run = {"n_slots": 1, "n_ctx_slot": 8192}
    split = flowing(a_report(turns, [a_run(**run, kv_unified=False, prompt_cache_mib=0.0)]))
    assert "(--parallel 2 -c 16384)" in split
    assert "(--cache-ram 8192; now off), or" in split, "host RAM is cheaper than a slot"
    full = flowing(a_report(turns, [a_run(**run, prompt_cache_mib=3.0, prompt_cache_dropped=2)]))
    assert "(--cache-ram 6; now 3 MiB), or" in full
    unified = flowing(a_report(turns, [a_run(**run, kv_unified=True)]))
    assert "give each its own (--parallel 2)." in unified


def test_no_flag_is_advised_for_what_no_flag_brings_back() -> None:
    """The RAM prompt cache is on and let nothing go: there was nothing of these prompts."""
    turns = [a_turn(line, 3000, 0, outcome="cold", n_processed=3000) for line in (100, 200)]
    text = flowing(a_report(turns, [a_run(n_slots=1, n_ctx_slot=8192, prompt_cache_mib=8192.0)]))
    assert "Do: Nothing, if these were new conversations" in text
    assert "--cache-ram" not in text
    assert "--parallel" not in text


@pytest.mark.parametrize("build", ["b8672", "b11549"])
@pytest.mark.parametrize("memory", ["plain", "hybrid", "swa", "recurrent"])
def test_a_clock_in_the_system_prompt_is_told_whatever_the_memory(build: str, memory: str) -> None:
    """The clock stands at token 13 (one later with a BOS) of each prompt; plain memory needs no checkpoint for it."""
    log = Path(__file__).parents[1] / "data" / "live" / build / memory / "rewritten-system-prompt.log.gz"
    text = flowing(analyze(log).report)
    assert "THE BEGINNING OF THE PROMPT CHANGED: HARDLY ANYTHING WAS REUSED 1 of 4 turns" in text
    assert f"Turn 4 shared only {14 if memory == 'swa' else 13} tokens with what the slot held" in text
    assert "Do: Make the client send the beginning of the prompt unchanged" in text


@pytest.mark.parametrize("memory", ["plain", "hybrid"])
def test_a_head_that_may_have_changed_once_is_not_why_others_were_not_reused(memory: str) -> None:
    """Three chats take turns on one slot; by its length alone one prompt might be the chat before, rewritten."""
    log = Path(__file__).parents[1] / "data" / "live" / "b10566" / memory / "ram-cache-tiny.log.gz"
    text = flowing(analyze(log).report)
    assert "Nothing failed in 6 turns, but little was reused." in text
    assert "In turns 3, 5 and 6 the slot held nothing of the prompt" in text
    assert "(--cache-ram 2; now 1 MiB)" in text
    assert "BEGINNING OF THE PROMPT CHANGED" not in text


def test_what_may_be_a_changed_head_is_not_called_another_conversation() -> None:
    """b9713 on sliding-window memory: a clock in the system prompt, and no line tells how much was in common."""
    log = Path(__file__).parents[1] / "data" / "live" / "b9713" / "swa" / "rewritten-system-prompt.log.gz"
    text = flowing(analyze(log).report)
    assert "Nothing failed in 4 turns, but little was reused." in text
    assert "another conversation, or the same with another beginning (569 tokens processed)." in text
    assert "If the client changes the beginning of its prompt (a clock, an id), move that into the last user message." in text
    assert "2+ lost" in text
    assert "(at least 2 tokens processed again in all)" in text


def test_a_client_that_left_is_told_beside_what_it_may_have_waited_for() -> None:
    """b10566: a prompt of 12,000 tokens that the client did not wait for, then one of 10,239 in 58 s."""
    log = Path(__file__).parents[1] / "data" / "live" / "b10566" / "plain" / "gone-during-prompt.log.gz"
    report = analyze(log).report
    for text in (flowing(report), " ".join(render_markdown(report).split())):
        assert "10,239 new tokens took 57.9 s" in text
        assert "Turn 3: the client had gone. It left while the prompt was being processed: 1,761 of 12,000" in text
