"""What is said of prompts that came back to a slot which the server had purged for room."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog
from ckptlog.report.digest import digest
from ckptlog.report.notes import purged_words
from ckptlog.report.text import render_text

LOG = """\
5.01.635.226 I slot get_availabl: id  1 | task -1 | selected slot by LRU, t_last = -1
5.01.637.785 I slot launch_slot_: id  1 | task 28 | processing task, is_child = 0
5.03.638.128 W srv  try_clear_id: purging slot 2 with {purged} tokens
5.09.114.551 I slot print_timing: id  1 | task 28 | prompt eval time =    7452.82 ms /  6310 tokens (    1.18 ms per token,   846.66 tokens per second)
5.09.114.627 I slot print_timing: id  1 | task 28 |        eval time =     323.91 ms /    10 tokens (   32.39 ms per token,    30.87 tokens per second)
5.09.114.780 I slot      release: id  1 | task 28 | stop processing: n_tokens = 6319, truncated = 0
5.30.635.226 I slot get_availabl: id  2 | task -1 | selected slot by LRU, t_last = 250000001
5.30.637.785 I slot launch_slot_: id  2 | task 43 | processing task, is_child = 0
5.59.114.551 I slot print_timing: id  2 | task 43 | prompt eval time =   28452.82 ms / 30290 tokens (    0.94 ms per token,  1064.57 tokens per second)
5.59.114.627 I slot print_timing: id  2 | task 43 |        eval time =     323.91 ms /    10 tokens (   32.39 ms per token,    30.87 tokens per second)
5.59.114.780 I slot      release: id  2 | task 43 | stop processing: n_tokens = 30299, truncated = 0
"""


@pytest.mark.parametrize(("purged", "told"), [(30212, [2]), (40000, []), (300, [])])
def test_a_purge_is_told_of_a_prompt_that_may_go_on_from_it(tmp_path: Path, purged: int, told: list[int]) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOG.format(purged=purged))
    report = ckptlog.analyze(log).report
    what = digest(report)
    assert [item.number for item in what.purged] == told
    shown = " ".join(" ".join(line.plain for line in render_text(report)).split())
    assert ("had purged a slot for room" in shown) is bool(told)
    if told:
        assert purged_words(what).startswith("Turn 2 found nothing")
        assert "30,212 tokens" in report.turns[1].explanation
