"""A template that puts the system prompt into the first user message (Gemma)."""

from __future__ import annotations

from .logs import turn


def test_a_folded_system_prompt_is_no_rewritten_head() -> None:
    session = turn("sample/gemma-system-prompt", 3)
    assert (session.outcome, session.variant, session.severity) == ("checkpoint-reprefill", "full", "costly")
    assert (session.trigger, session.cause) == ("edited", "before-first-boundary")
    assert "The first user message begins at token 1 already" in session.explanation
    assert session.fixes[0].flags == ["--swa-full"]
    assert [fix.name for fix in session.fixes] == ["swa-full", "name-delimiters", "keep-the-head-stable"]
