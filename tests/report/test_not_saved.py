"""What is said of a prompt that the RAM cache could not take, for want of the host's memory."""

from __future__ import annotations

from pathlib import Path

import ckptlog

START = "0.00.100.000 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 65536, kv_unified = 'false'\n"
FAILS = """\
0.{s}.000.001 I srv  get_availabl: updating prompt cache
0.{s}.000.002 W srv   prompt_save:  - saving prompt with length 9009, total state size = 5100.210 MiB (draft: 0.000 MiB)
0.{s}.000.003 E srv         alloc: failed to allocate memory for prompt cache state: std::bad_alloc
0.{s}.000.004 I srv  get_availabl: prompt cache update took 3.60 ms
"""


def turn(second: int, task: int, n_prompt: int, between: str = "") -> str:
    at = f"0.{second:02d}"
    return (
        f"{at}.000.000 I slot get_availabl: id  0 | task -1 | selected slot by LRU, t_last = 12\n{between}"
        f"{at}.000.100 I slot launch_slot_: id  0 | task {task} | processing task, is_child = 0\n"
        f"{at}.000.200 I slot   operator(): id  0 | task {task} | new prompt, n_ctx_slot = 65536, n_keep = 0, task.n_tokens = {n_prompt}\n"
        f"{at}.000.300 I slot   operator(): id  0 | task {task} | cached n_tokens = 0, memory_seq_rm [0, end)\n"
        f"{at}.100.000 I slot print_timing: id  0 | task {task} | prompt eval time =    452.82 ms /  {n_prompt} tokens (    0.94 ms per token,  1064.57 tokens per second)\n"
        f"{at}.100.001 I slot print_timing: id  0 | task {task} |        eval time =     323.91 ms /    10 tokens (   32.39 ms per token,    30.87 tokens per second)\n"
        f"{at}.100.002 I slot      release: id  0 | task {task} | stop processing: n_tokens = {n_prompt + 9}, truncated = 0\n"
    )


def test_it_is_told_of_the_prompt_that_may_go_on_from_it(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(START + turn(1, 1, 9000) + turn(3, 20, 800, FAILS.format(s="03")) + turn(5, 40, 9500))
    last = ckptlog.analyze(log).report.turns[-1]
    assert last.outcome == "cold"
    assert "9,009 tokens could not be saved in the RAM prompt cache" in last.explanation
    assert "--cache-ram is no help" in last.explanation
