"""How turns end: errors without a launch, batches that fail, cancels, and blocks of timings at a log's beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.timeline.logs import DONE, OPEN, START, turns


def error(task: int, text: str) -> str:
    return f"srv    send_error: task id = {task}, error: {text}\n"


def release(task: int, n_tokens: int, slot: int = 0) -> str:
    return f"slot      release: id  {slot} | task {task} | stop processing: n_tokens = {n_tokens}, truncated = 0\n"


@pytest.mark.parametrize("text", ["Context size has been exceeded.", "Invalid input batch.", "Compute error."])
def test_an_error_without_a_launch(tmp_path: Path, text: str) -> None:
    """A refusal has no slot of its own; any other error is that of the slot which is released behind it."""
    first, second = turns(tmp_path, error(440, text) + release(440, 30411, 1) + error(441, text) + release(441, 0, 2))
    assert [(turn.slot, turn.task, turn.ended, turn.outcome) for turn in (first, second)] == [
        (1, 440, "error", "error"), (2, 441, "error", "error"),
    ]  # fmt: skip
    assert first.evidence[0].line == first.lines[0] == 1


def test_an_error_of_no_turn(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, f"{START}{error(44, 'Unable to restore slot')}{OPEN}{DONE}")
    assert turn.outcome == "cold"


FAILED = "srv  update_slots: {reason} i = {off}, n_batch = 512, ret = {ret}\n"


def failed(n_released: int, *, off: int = 0, reason: str = "Invalid input batch.", ret: int = -1) -> str:
    return FAILED.format(reason=reason, off=off, ret=ret) + error(7, reason) + release(7, n_released)


SECOND = "slot update_slots: id  0 | task 7 | n_tokens = 512, memory_seq_rm [512, end)\n"
LAST = "slot update_slots: id  0 | task 7 | prompt done, n_tokens = 900, batch.n_tokens = 388\n"


@pytest.mark.parametrize(
    ("lines", "n_processed", "n_generated"),
    [
        # the slot already holds the tokens of the batch that fails
        (failed(512), 0, 0),
        (SECOND + LAST + failed(900), 512, 0),
        # tried in smaller parts, of which one went well
        (SECOND + LAST + failed(900, off=64), None, 0),
        # of an answer, the token sampled last is in that batch
        (SECOND + LAST + failed(901), 900, 1),
        (SECOND + LAST + failed(907), 900, 7),
        # the line on the batch is missing
        (SECOND + error(7, "Invalid input batch.") + release(7, 900), None, 0),
        (SECOND + LAST + error(7, "Compute error.") + release(7, 907), 900, 7),
        # no batch failed: the token sampled last is not in the slot
        (SECOND + LAST + error(7, "no reason") + release(7, 907), 900, 8),
        # sampling threw, so that one was no answer's
        (SECOND + LAST + error(7, "got exception: Unexpected empty grammar stack") + release(7, 907), 900, 7),
    ],
)
def test_a_batch_that_failed(tmp_path: Path, lines: str, n_processed: int | None, n_generated: int) -> None:
    (turn,) = turns(tmp_path, START + OPEN + lines)
    assert (turn.outcome, turn.n_cached) == ("error", 0)
    assert (turn.n_processed, turn.n_generated) == (n_processed, n_generated)


def test_a_release_in_mid_prompt_of_which_nothing_tells_the_reason(tmp_path: Path) -> None:
    """It may be a batch that failed, whose tokens count among the released ones."""
    assert turns(tmp_path, START + OPEN + SECOND + release(7, 600))[0].n_processed is None
    assert turns(tmp_path, f"{START}{OPEN}{SECOND}srv          stop: cancel task, id_task = 7\n{release(7, 600)}")[0].n_processed == 600


def test_a_prompt_that_waits_while_the_batch_fails(tmp_path: Path) -> None:
    """Its release shows what the slot held before."""
    again = OPEN.replace("task 7", "task 9").splitlines(keepends=True)[0]
    looked = "slot update_slots: id  0 | task 9 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 800\n"
    dead = failed(0).replace("task id = 7", "task id = 9").splitlines(keepends=True)[:2]
    for shown in ("", looked):
        log = START + OPEN + DONE + again + shown + "".join(dead) + release(9, 910)
        turn = turns(tmp_path, log)[1]
        assert (turn.outcome, turn.n_generated) == ("error", 0 if shown else None)
        assert turn.n_processed == (0 if shown else None)


def test_a_cancel_while_the_answer_is_made(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, f"{START}{OPEN}{SECOND}{LAST}srv          stop: cancel task, id_task = 7\n{release(7, 907)}")
    assert (turn.outcome, turn.n_processed, turn.n_generated) == ("cancelled", 900, 8)


def test_a_compute_failure_told_as_a_full_cache(tmp_path: Path) -> None:
    """Up to May 2025 every failed batch is said to be for want of cells."""
    reason = "failed to decode the batch: KV cache is full - try increasing it via the context size,"
    said = error(7, "Input prompt is too big compared to KV size. Please try increasing KV size.")
    (turn,) = turns(tmp_path, START + OPEN + FAILED.format(reason=reason, off=0, ret=-3) + release(7, 512) + said)
    assert (turn.outcome, turn.n_processed) == ("error", 0)
    assert "ret = -3" in turn.explanation
    assert [fix.name for fix in turn.fixes] == ["device-memory"]
    (turn,) = turns(tmp_path, START + OPEN + FAILED.format(reason=reason, off=0, ret=1) + release(7, 512) + said)
    assert "ret" not in turn.explanation


BLOCK = """\
slot print_timing: id  0 | task 611 |
prompt eval time =    1101.20 ms /   402 tokens (    2.74 ms per token,   365.06 tokens per second)
       eval time =    5210.00 ms /   121 tokens (   43.06 ms per token,    23.22 tokens per second)
      total time =    6311.20 ms /   523 tokens
"""


def test_a_log_that_begins_with_a_block_of_timings(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, BLOCK + release(611, 28960))
    assert (turn.n_prompt, turn.n_cached, turn.n_processed, turn.n_generated) == (28840, 28438, 402, 121)


def test_a_block_behind_the_release_is_of_the_same_turn(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, release(611, 28960) + BLOCK)
    assert (turn.n_prompt, turn.n_processed) == (28840, 402)


def at(seconds: float, text: str) -> str:
    return f"0.{int(seconds):02d}.000.000 I {text}\n"


def launch(second: int, task: int, how: str) -> str:
    return at(second, f"slot get_availabl: id  0 | task -1 | selected slot by {how}") + at(
        second, f"slot launch_slot_: id  0 | task {task} | processing task, is_child = 0"
    )


def progress(second: int, task: int, n_tokens: int, share: str) -> str:
    text = f"prompt processing, n_tokens = {n_tokens:>6}, progress = {share}, t =   5.55 s / 369.01 tokens per second"
    return at(second, f"slot print_timing: id  0 | task {task} | {text}")


def left(second: int, task: int, n_tokens: int) -> str:
    return at(second, f"srv          stop: cancel task, id_task = {task}") + at(second, release(task, n_tokens).strip())


FIRST = launch(1, 0, "LRU, t_last = -1") + progress(5, 0, 10240, "0.30")


def test_the_work_of_cancelled_turns_at_the_default_level(tmp_path: Path) -> None:
    again = launch(20, 8, "LCP similarity, sim_best = 0.300 (> 0.100 thold), f_keep = 1.000")
    first, second = turns(
        tmp_path, FIRST + left(9, 0, 10240) + again + progress(25, 8, 10240, "0.60") + left(30, 8, 20480)
    )
    assert (first.n_prompt, first.n_cached, first.n_processed, first.n_generated) == (None, 0, 10240, 0)
    assert (second.n_common, second.n_cached, second.n_processed) == (10240, 10240, 10240)
    assert "20,480 tokens were in the slot" in second.explanation


@pytest.mark.parametrize(
    ("share", "n_released"),
    [("1.00", 10240), ("0.98", 10500)],  # the prompt may have been complete
)
def test_work_that_stays_open(tmp_path: Path, share: str, n_released: int) -> None:
    log = launch(1, 0, "LRU, t_last = -1") + progress(5, 0, 10240, share) + left(9, 0, n_released)
    (turn,) = turns(tmp_path, log)
    assert (turn.outcome, turn.n_processed, turn.n_generated) == ("cancelled", None, None)


ROUTED = """\
0.01.000.000 I srv  proxy_reques: proxying request to model gemma on port 39015
[39015] 0.01.000.000 I slot launch_slot_: id  0 | task 3 | processing task, is_child = 0
{error}[39015] 0.09.000.000 W srv          stop: cancel task, id_task = 3
[39015] 0.10.000.000 I slot      release: id  0 | task 3 | stop processing: n_tokens = 4096, truncated = 0
"""


def test_a_router_that_gave_up(tmp_path: Path) -> None:
    said = "0.08.000.000 E srv    operator(): http client error: Failed to read connection\n"
    (turn,) = turns(tmp_path, ROUTED.format(error=said))
    assert turn.outcome == "cancelled"
    assert turn.evidence[0].text == said.strip()
    assert "router" in turn.headline
    assert "of the router" in turn.fixes[0].text


@pytest.mark.parametrize("said", ["", "0.08.000.000 E srv    operator(): http client error: Connection handling canceled\n"])
def test_a_client_that_left_a_router(tmp_path: Path, said: str) -> None:
    (turn,) = turns(tmp_path, ROUTED.format(error=said))
    assert "client" in turn.headline
    assert "router" not in turn.explanation


FORK = """\
INFO [   launch_slot_with_task] slot is processing task | tid="1" timestamp=1779470730 id_slot=0 id_task=110
INFO [    batch_pending_prompt] kv cache rm [p0, end) | tid="1" timestamp=1779470730 id_slot=0 id_task=110 p0=4235
Decode process is cancelled by user.
"""
FORK_END = """\
INFO [           release_slots] slot released | tid="1" timestamp=1779470731 id_slot=0 id_task=110 n_ctx=65536 n_past=4757 n_system_tokens=0 n_cache_tokens=4757 truncated=false
"""


def test_a_cancel_of_the_fork(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, FORK + FORK_END)
    assert turn.outcome == "cancelled"


def test_another_client_s_cancel_of_the_fork(tmp_path: Path) -> None:
    """The line names no task: a turn that ends with its timings was not it."""
    block = 'INFO [           print_timings] prompt eval time     =    1101.20 ms /   402 tokens (    2.74 ms per token,   365.06 tokens per second) | tid="1" timestamp=1 id_slot=0 id_task=110 t_prompt_processing=1 n_prompt_tokens_processed=402 t_token=2.7 n_tokens_second=365\n'
    answer = 'INFO [           print_timings] generation eval time =    5210.00 ms /   121 runs   (   43.06 ms per token,    23.22 tokens per second) | tid="1" timestamp=1 id_slot=0 id_task=110 t_token_generation=5210 n_decoded=121 t_token=43 n_tokens_second=23\n'
    (turn,) = turns(tmp_path, FORK + block + answer + FORK_END)
    assert turn.outcome != "cancelled"
    assert turn.n_generated == 121
