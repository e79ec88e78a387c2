"""What is said of turns that ended badly: only what the log shows, and nothing that can't help."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog
from ckptlog.records import TurnRecord
from ckptlog.report.text import render_text
from ckptlog.timeline.model import FailedBatch, LastWord, Quote, Run, Turn
from ckptlog.verdict.judge import Verdict, judge


def last_turn(tmp_path: Path, text: str) -> TurnRecord:
    log = tmp_path / "server.log"
    log.write_text(text)
    return ckptlog.analyze(log).report.turns[-1]


EMBEDDING = """\
{head}slot launch_slot_: id  0 | task 486 | processing task
slot update_slots: id  0 | task 486 | new prompt, n_ctx_slot = 4096, n_keep = 0, n_prompt_tokens = 2213
slot      release: id  0 | task 486 | stop processing: n_past = 0, truncated = 0
srv    send_error: task id = 486, error: input is {why}
"""


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "it has 2,213 tokens."),
        ("llama_context: n_ubatch      = 2048\n", "it has 2,213 tokens, the batch holds 2,048 (1.08 x)."),
        ("llama_context: n_ubatch      = 4096\n", "it has 2,213 tokens."),
    ],
)
def test_an_embedding_refused_by_a_build_that_names_no_size(tmp_path: Path, head: str, said: str) -> None:
    """The context's size is not the batch's."""
    turn = last_turn(tmp_path, EMBEDDING.format(head=head, why="too large to process. increase the physical batch size"))
    assert (turn.outcome, turn.variant) == ("arrival-rejection", "one-batch")
    assert turn.explanation.endswith(said)


def test_an_embedding_longer_than_the_context(tmp_path: Path) -> None:
    why = "(5213 tokens) is larger than the max context size (4096 tokens). skipping"
    text = EMBEDDING.format(head="", why="x").replace("n_prompt_tokens = 2213", "n_prompt_tokens = 5213")
    turn = last_turn(tmp_path, text.replace("input is x", f"input {why}"))
    assert "the context holds 4,096" in turn.explanation
    assert [fix.name for fix in turn.fixes] == ["larger-context", "larger-batch"]
    assert not turn.not_fixes


def no_cells(**settings: object) -> Verdict:
    run = Run(0, 0, 1, 99, n_ctx_slot=8192, **settings)  # type: ignore[arg-type]
    turn = Turn(1, 0, 0, 0, 9, 2, 9, ended="error", start_seen=True, released=True)
    turn.error, turn.error_reason = Quote(7, "Context size has been exceeded."), "context_exceeded"
    turn.failed_batch, turn.n_released = FailedBatch(22, 1), 2048
    return judge(run, turn)


@pytest.mark.parametrize("settings", [{"n_slots": 1}, {"n_slots": 2, "kv_unified": False}])
def test_no_cells_where_slots_share_none(settings: dict[str, object]) -> None:
    verdict = no_cells(**settings)
    assert "share one" not in verdict.explanation
    assert "2,048 of its 8,192" in verdict.explanation
    assert [fix.name for fix in verdict.fixes] == ["report-error"]


def test_no_cells_where_slots_share_them() -> None:
    assert [fix.name for fix in no_cells(n_slots=4, kv_unified=True).fixes] == ["larger-context", "fewer-slots", "split-cache"]


FULL = """\
build: 6940 (c5023daf6) with cc (Debian 14.2.0-19) 14.2.0 for x86_64-linux-gnu
srv          init: initializing slots, n_slots = 1
slot         init: id  0 | task -1 | new slot n_ctx_slot = 256
slot launch_slot_: id  0 | task 0 | processing task
slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 256, n_keep = 0, task.n_tokens = 41
slot update_slots: id  0 | task 0 | n_tokens = 0, memory_seq_rm [0, end)
slot print_timing: id  0 | task 0 |
prompt eval time =      90.11 ms /    41 tokens (    2.20 ms per token,   455.00 tokens per second)
       eval time =    4100.60 ms /   {n_generated} tokens (   19.07 ms per token,    52.43 tokens per second)
      total time =    4190.71 ms /   256 tokens
slot      release: id  0 | task 0 | stop processing: n_tokens = {held}, truncated = 1
slot launch_slot_: id  0 | task 216 | processing task
{looked}srv    send_error: task id = 216, error: context shift is disabled
slot      release: id  0 | task 216 | stop processing: n_tokens = {held}, truncated = 0
"""


def full(tmp_path: Path, *, held: int = 255, looked: str = "") -> TurnRecord:
    return last_turn(tmp_path, FULL.format(held=held, n_generated=held - 40, looked=looked))


def test_a_request_refused_for_what_the_turn_before_left(tmp_path: Path) -> None:
    turn = full(tmp_path)
    assert turn.outcome == "error"
    assert "issue 16983" in turn.explanation
    assert [fix.name for fix in turn.fixes] == ["upgrade-server"]


def test_a_request_that_is_itself_too_long(tmp_path: Path) -> None:
    looked = "slot update_slots: id  0 | task 216 | new prompt, n_ctx_slot = 256, n_keep = 0, task.n_tokens = 255\n"
    assert "16983" not in full(tmp_path, looked=looked).explanation
    assert "16983" not in full(tmp_path, held=200).explanation


def crash(*words: tuple[str, str]) -> Verdict:
    turn = Turn(1, 0, 0, 0, 9, 2, 9, ended="error", start_seen=True)
    turn.crash = [LastWord(10 + i, text, how) for i, (how, text) in enumerate(words)]
    return judge(Run(0, 0, 1, 99), turn)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ([("device", "CUDA error: out of memory"), ("abort", "x.cu:104: CUDA error")], "device-memory"),
        ([("exception", "what():  vk::Device::allocateMemory: ErrorOutOfDeviceMemory")], "device-memory"),
        ([("exception", "what():  std::bad_alloc")], "host-memory"),
        ([("service", "llama.service: Failed with result 'oom-kill'.")], "host-memory"),
        ([("abort", "x.cu:104: CUDA error")], "device-failed"),
        ([("abort", "x.cpp:104: GGML_ASSERT(a) failed")], "report-crash"),
        ([("signal", "Aborted")], "look-before-restart"),
    ],
)
def test_the_next_step_behind_a_crash(words: list[tuple[str, str]], fix: str) -> None:
    verdict = crash(*words)
    assert (verdict.outcome, verdict.variant) == ("error", "crash")
    assert [each.name for each in verdict.fixes] == [fix]
    assert len(verdict.evidence) == len(words)


LEFT = """\
0.01.000.000 I slot get_availabl: id  0 | task -1 | selected slot by LRU, t_last = -1
0.01.000.000 I slot launch_slot_: id  0 | task 5 | processing task, is_child = 0
{progress}0.09.000.000 W srv          stop: cancel task, id_task = 5
0.10.000.000 I slot      release: id  0 | task 5 | stop processing: n_tokens = {n_released}, truncated = 0
"""


def table(tmp_path: Path, text: str) -> str:
    log = tmp_path / "server.log"
    log.write_text(text)
    return "\n".join(line.plain for line in render_text(ckptlog.analyze(log).report, 100))


def test_nothing_processed_is_said_only_where_it_is_known(tmp_path: Path) -> None:
    progress = "0.05.000.000 I slot print_timing: id  0 | task 5 | prompt processing, n_tokens =   2048, progress = 1.00, t =   5.55 s / 369.01 tokens per second\n"
    some = table(tmp_path, LEFT.format(progress=progress, n_released=2100))
    assert "nothing processed" not in some
    assert "(how much is not in the log)" in some
    dead = "srv  update_slots: Invalid input batch. i = 0, n_batch = 512, ret = -1\nsrv    send_error: task id = 5, error: Invalid input batch.\n"
    known = LEFT.split("{progress}")[0] + dead + LEFT.rsplit("task = 5\n", 1)[1].format(n_released=0)
    assert "(nothing processed)" in table(tmp_path, known)
