"""ik_llama.cpp, llamafile and builds of 2024: their messages, read as llama.cpp's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlog import analyze
from ckptlog.records import Report, TurnRecord
from ckptlog.report.doctor import render_doctor
from ckptlog.report.nothing import nothing_to_judge

TID = 'tid="12009" timestamp=17800'


def report(tmp_path: Path, *lines: str) -> Report:
    log = tmp_path / "server.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze(log).report


def launch(task: int, slot: int = 0) -> str:
    return f"INFO [   launch_slot_with_task] slot is processing task | {TID} id_slot={slot} id_task={task}"


def cache(held: int, common: int) -> str:
    return f"======== Cache: cache_size = {held}, n_past =  {common}, n_past_prompt = {common}"


def batch(task: int, p0: int, slot: int = 0) -> str:
    return f"INFO [    batch_pending_prompt] kv cache rm [p0, end) | {TID} id_slot={slot} id_task={task} p0={p0}"


def timing(task: int, n_prompt: int, n_gen: int, slot: int = 0) -> tuple[str, ...]:
    return (
        f"slot print_timing: id  {slot} | task {task} | ",
        f"prompt eval time =    {n_prompt}.00 ms /  {n_prompt} tokens (    1.00 ms per token,  1000.00 tokens per second)",
        f"       eval time =    {n_gen}.00 ms /   {n_gen} tokens (    1.00 ms per token,  1000.00 tokens per second)",
        f"      total time =   {n_prompt + n_gen}.00 ms /  {n_prompt + n_gen} tokens",
    )


def release(task: int, n_past: int, slot: int = 0) -> str:
    return (
        f"INFO [           release_slots] slot released | {TID} id_slot={slot} id_task={task} n_ctx=65536 "
        f"n_past={n_past} n_system_tokens=0 n_cache_tokens={n_past} truncated=false"
    )


def figures(turn: TurnRecord) -> tuple[int | None, ...]:
    return turn.n_prompt, turn.n_common, turn.n_cached, turn.n_processed, turn.n_lost


FIRST = (launch(1), cache(0, 0), batch(1, 0), *timing(1, 9000, 101), release(1, 9100))
NO_CHECKPOINT = "slot apply_checkp: id  0 | task 9 | no checkpoint before divergence point - reprocessing from scratch"


def test_the_fork_prints_the_common_prefix(tmp_path: Path) -> None:
    second = (launch(9), cache(9100, 6010), NO_CHECKPOINT, batch(9, 0), *timing(9, 8111, 40), release(9, 8150))
    first, turn = report(tmp_path, *FIRST, *second).turns
    assert (first.outcome, first.n_common) == ("cold", 0)
    assert (turn.outcome, turn.variant, turn.severity) == ("checkpoint-reprefill", "full", "costly")
    assert figures(turn) == (8111, 6010, 0, 8111, 6010)
    assert NO_CHECKPOINT in {evidence.text for evidence in turn.evidence}


def test_the_line_is_of_the_slot_that_begins_next(tmp_path: Path) -> None:
    """Two requests at once: both are launched before either is compared."""
    lines = (
        launch(1, 0), launch(2, 1), cache(0, 0), batch(1, 0, 0), cache(0, 0), batch(2, 0, 1),
        *timing(1, 2000, 101, 0), release(1, 2100, 0), *timing(2, 500, 11, 1), release(2, 510, 1),
        launch(3, 0), launch(4, 1), cache(2100, 2100), batch(3, 2100, 0), cache(510, 500), batch(4, 500, 1),
        *timing(3, 30, 11, 0), release(3, 2140, 0), *timing(4, 60, 11, 1), release(4, 570, 1),
    )  # fmt: skip
    turns = report(tmp_path, *lines).turns
    assert [(turn.n_common, turn.n_cached, turn.outcome) for turn in turns[2:]] == [
        (2100, 2100, "reused"), (500, 500, "reused"),
    ]  # fmt: skip


def test_a_saved_prompt_is_loaded_without_a_line(tmp_path: Path) -> None:
    second = (launch(9), cache(5000, 4900), batch(9, 4900), *timing(9, 100, 11), release(9, 5010))
    turn = report(tmp_path, *FIRST, *second).turns[1]
    assert figures(turn) == (5000, 4900, 4900, 100, 0)
    assert turn.n_common_slot is None


def test_a_cancel_breaks_off_whatever_is_decoded(tmp_path: Path) -> None:
    lines = (
        launch(1), cache(0, 0), batch(1, 0), batch(1, 2048), "srv          stop: cancel task, id_task = 7",
        "llama_decode: failed to decode, ret = -3", "Decode process is cancelled by user.", release(1, 4096),
    )  # fmt: skip
    turn = report(tmp_path, *lines).turns[0]
    assert (turn.outcome, turn.ended, turn.fixes) == ("cancelled", "cancel", [])
    assert "client" not in turn.headline


def test_a_client_that_left_although_the_answer_was_finished(tmp_path: Path) -> None:
    lines = (
        launch(1), cache(0, 0), batch(1, 0), "srv          stop: cancel task, id_task = 1",
        *timing(1, 9000, 101), release(1, 9100),
    )  # fmt: skip
    turn = report(tmp_path, *lines).turns[0]
    assert (turn.outcome, turn.ended) == ("cold", "release")
    assert "The client had gone before the end (line 4)" in turn.explanation


def test_a_full_cache_ends_every_request(tmp_path: Path) -> None:
    full = (
        "ERR  [            update_slots] failed to decode the batch: KV cache is full - try increasing it via the "
        f"context size | {TID} i=0 n_batch=1 ret=1"
    )
    lines = (launch(1, 0), launch(2, 1), batch(1, 0, 0), batch(2, 0, 1), full, release(1, 8190, 0), release(2, 8111, 1))
    turns = report(tmp_path, *lines).turns
    assert [(turn.outcome, turn.ended) for turn in turns] == [("error", "error")] * 2
    assert full in {evidence.text for evidence in turns[0].evidence}


@pytest.mark.parametrize(
    "released",
    [
        "slot released | {TID} id_slot=0 id_task=1 n_past=9100 truncated=false",
        "slot released | n_cache_tokens=9101 n_ctx=16384 n_past=9100 n_system_tokens=0 slot_id=0 task_id=1 {TID} truncated=false",
    ],
)
def test_releases_of_other_builds(tmp_path: Path, released: str) -> None:
    tagged = "INFO [                 release] " + released.replace("{TID}", TID)
    turn = report(tmp_path, launch(1), batch(1, 0), tagged, *timing(1, 9000, 101)).turns[0]
    assert (turn.ended, turn.truncated) == ("release", False)


def test_a_prompt_that_was_cut(tmp_path: Path) -> None:
    cut = f"INFO [            update_slots] input truncated | n_ctx=2048 n_erase=1090 n_keep=4 n_left=2044 slot_id=0 task_id=1 {TID}"
    turn = report(tmp_path, launch(1), cut, batch(1, 0), *timing(1, 1026, 101), release(1, 1126)).turns[0]
    assert (turn.outcome, turn.variant) == ("context-shift", "input")


def test_a_verbose_log(tmp_path: Path) -> None:
    lines = (
        f"VERB [      get_available_slot] selected slot by lru | {TID} id_slot=0 t_last=-1",
        launch(1),
        f'VERB [            update_slots] prompt tokenized | {TID} id_slot=0 id_task=1 n_ctx=4096 n_keep=0 '
        'n_prompt_tokens=12 prompt_tokens="user: \\"Hi 7\\""',
        batch(1, 0),
        f'VERB [           process_token] next token | {TID} id_slot=0 id_task=1 token=9707 token_text=" | 1"',
        release(1, 13),
    )
    found = report(tmp_path, *lines)
    assert (found.turns[0].outcome, found.turns[0].n_prompt) == ("cold", 12)
    assert found.sources[0].drifted_lines == found.sources[0].unknown_slot_lines == 0


def test_a_fork_is_given_no_advice_of_llama_cpp(tmp_path: Path) -> None:
    """No build number of llama.cpp, and no flag that the fork does not have."""
    cp = "slot create_check: id  0 | task 1 | created context checkpoint 1 of 32 (pos_min = 8998, pos_max = 8998, size = 62.8 MiB, took 31 ms)"
    second = (launch(9), cache(9100, 6010), NO_CHECKPOINT, batch(9, 0), *timing(9, 8111, 40), release(9, 8150))
    found = report(tmp_path, *FIRST[:-1], cp, FIRST[-1], *second)
    turn = found.turns[1]
    assert found.runs[0].fork == "ik_llama.cpp"
    assert turn.cause == "unknown"
    assert [(fix.name, fix.flags[:1]) for fix in turn.fixes] == [("smaller-spacing", ["--ctx-checkpoints-interval"])]
    assert not any("-lv" in sentence or "SLOTS_DEBUG" in sentence for sentence in turn.missing)


def test_what_the_doctor_says_of_a_fork(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("\n".join(FIRST) + "\n", encoding="utf-8")
    told = " ".join(" ".join(line.plain for line in render_doctor(analyze(log))).split())
    assert "ik_llama.cpp, a fork" in told
    assert "-lv" not in told
    assert "LLAMA_SERVER" not in told


JSON_OF_2024 = (
    '{"function":"launch_slot_with_data","level":"INFO","line":884,"msg":"slot is processing task","slot_id":0,"task_id":0,"tid":"10","timestamp":17}',
    '{"function":"update_slots","level":"INFO","line":1910,"msg":"kv cache rm [p0, end)","p0":0,"slot_id":0,"task_id":0,"tid":"10","timestamp":17}',
    '{"function":"print_timings","level":"INFO","line":313,"msg":"prompt eval time     =     900.00 ms /   900 tokens (    1.00 ms per '
    'token,  1000.00 tokens per second)","n_tokens_second":1000.0,"slot_id":0,"task_id":0,"tid":"10","timestamp":18}',
    '{"function":"print_timings","level":"INFO","line":327,"msg":"generation eval time =     101.00 ms /   101 runs   (    1.00 ms per '
    'token,  1000.00 tokens per second)","n_decoded":101,"slot_id":0,"task_id":0,"tid":"10","timestamp":18}',
    '{"function":"update_slots","level":"INFO","line":1721,"msg":"slot released","n_cache_tokens":1001,"n_ctx":2048,"n_past":1000,'
    '"n_system_tokens":0,"slot_id":0,"task_id":0,"tid":"10","timestamp":18,"truncated":false}',
)
JSON_OF_A_FORK = (
    '{"tid":"10","timestamp":17,"level":"INFO","function":"launch_slot_with_task","line":1854,"msg":"slot is processing task","id_slot":0,"id_task":7}',
    '{"tid":"10","timestamp":17,"level":"INFO","function":"update_slots","line":3017,"msg":"kv cache rm [p0, end)","id_slot":0,"id_task":7,"p0":1000}',
    '{"tid":"10","timestamp":18,"level":"INFO","function":"update_slots","line":2684,"msg":"slot released","id_slot":0,"id_task":7,"n_ctx":64000,'
    '"n_past":1500,"n_system_tokens":0,"n_cache_tokens":1500,"truncated":false}',
)


def test_the_tagged_form_as_json(tmp_path: Path) -> None:
    found = report(tmp_path, *JSON_OF_2024, *JSON_OF_A_FORK)
    first, second = found.turns
    assert (figures(first), first.n_generated, first.ended) == ((900, 0, 0, 900, 0), 101, "release")
    assert (second.task, second.n_cached, second.ended) == (7, 1000, "release")
    assert (found.sources[0].format, found.sources[0].unknown_slot_lines, found.sources[0].drifted_lines) == ("tagged", 0, 0)


@pytest.mark.parametrize(
    "line",
    [
        "llama.cpp-gpu  | slot 0 is processing [task id: 801]",
        "slot 0: context shift - n_keep = 0, n_left = 511, n_discard = 255",
        "0.26.218.001 I srv        log_server_request: rid 26182568 | POST /v1/embeddings 10.13.6.135:37690",
    ],
)
def test_a_form_that_is_not_read(tmp_path: Path, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n", encoding="utf-8")
    assert "(an older, a newer or a forked one" in nothing_to_judge(analyze(log))[0]


def test_a_start_of_which_only_the_end_is_in_the_log(tmp_path: Path) -> None:
    """Without a clock: the server is listening again, so the turn before was broken off, and task 0 is another's."""
    lines = (
        "slot launch_slot_: id  0 | task 193 | processing task, is_child = 0",
        "slot update_slots: id  0 | task 193 | new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = 2980",
        "slot update_slots: id  0 | task 193 | n_tokens = 0, memory_seq_rm [0, end)",
        "main: model loaded",
        "main: server is listening on http://127.0.0.1:8082",
        "main: starting the main loop...",
        "slot launch_slot_: id  0 | task 0 | processing task, is_child = 0",
        "slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 16384, n_keep = 0, task.n_tokens = 1650",
        "slot update_slots: id  0 | task 0 | n_tokens = 0, memory_seq_rm [0, end)",
    )
    found = report(tmp_path, *lines)
    assert [(turn.run, turn.ended) for turn in found.turns] == [(0, "restart"), (1, "cut")]
    assert [run.n_ctx_slot for run in found.runs] == [32768, 16384]
