"""A prompt as long as what the slot held, that parts from it in the middle: rewritten, not new."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ckptlog.report.markdown import render_markdown

from .lines import Log

Analyse = Callable[..., Any]


def history(n_prompt: int, common: int) -> Log:
    """A long conversation, and then another prompt that keeps ``common`` tokens of it."""
    log = Log(n_ctx=262_144)
    log.turn(103_410, 0, generated=71, after=[log.create(65_536, 1)])
    log.turn(n_prompt, common, cached=65_536, between=[log.check(65_536, common), log.restore(65_536)], ms=60_000.0)
    return log


def test_a_rewritten_history_is_not_called_new(analyse: Analyse) -> None:
    report = analyse(history(103_312, 66_120).lines).report
    turn = report.turns[-1]
    assert turn.outcome == "restored"
    assert "(103,312 tokens) parts from what the slot held (103,480) in its middle, at token 66,120" in turn.explanation
    page = render_markdown(report)
    assert "37,776 tokens behind a change took 60.0 s" in page
    assert "new tokens" not in page
    assert "these tokens were new" not in page


@pytest.mark.parametrize(("n_prompt", "common"), [(150_000, 103_480), (190_000, 103_000)])
def test_what_adds_to_the_conversation_is_new(analyse: Analyse, n_prompt: int, common: int) -> None:
    """All of it is kept, or but for its last words."""
    report = analyse(history(n_prompt, common).lines).report
    assert "in its middle" not in report.turns[-1].explanation
    assert "new tokens took" in render_markdown(report)
