"""What a rare event, or a setting, does not change: an ordinary turn beside it keeps its cause and its advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .lines import Log

Analyse = Callable[..., Any]


def batch(start: int) -> str:
    return f"cached n_tokens = {start}, memory_seq_rm [{start}, end)"


# ------------------------------------------------------------------ what a spacing hides


def long_message(spacing: int) -> Log:
    """A first user message at 2,000 that goes on to the prompt's end; the edit is at 15,000."""
    log = Log(checkpoints=(32, spacing))
    log.raw("I", "llama_context: n_batch               = 2048")
    log.raw("I", "llama_context: n_ubatch              = 512")
    log.turn(20_000, 0, after=[
        batch(2000), log.create(2000, 1), *(batch(at) for at in range(4048, 19_484, 2048)),
        batch(19_484), log.create(19_484, 2), batch(19_996), log.create(19_996, 3),
    ])  # fmt: skip
    search = [log.check(n, 15_000) for n in (19_996, 19_484, 2000)]
    log.turn(20_100, 15_000, cached=2000, between=[*search, log.restore(2000)])
    return log


@pytest.mark.parametrize(("spacing", "hides"), [(256, False), (12_000, True)])
def test_a_spacing_hides_no_message_that_begins_further_behind_the_checkpoint(
    analyse: Analyse, spacing: int, hides: bool
) -> None:
    edit = analyse(long_message(spacing).lines).report.turns[-1]
    assert (edit.cause, edit.n_common, edit.n_cached) == ("checkpoints-sparse", 15_000, 2000)
    assert ("would not show" in edit.explanation) is hides
    assert ("smaller-spacing" in [fix.name for fix in edit.fixes]) is hides
    assert "split-long-messages" in [fix.name for fix in edit.fixes]
