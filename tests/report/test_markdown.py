"""The Markdown report: golden, and nothing of a log is markup in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ckptlog.records import Fix, Report
from ckptlog.report.markdown import code, escape, fenced, render_markdown

from . import build
from .build import a_report, a_turn, an_evicted_turn

CASES: dict[str, Callable[[], Report]] = {
    "evicted": build.evicted,
    "healthy": build.healthy,
    "low_level": build.low_level,
    "nasty": build.nasty,
}


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, golden: Callable[[str, bytes], None]) -> None:
    golden(f"{case}.md", render_markdown(CASES[case]()).encode())


def test_nothing_of_a_hostile_log_is_markup() -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(render_markdown(build.nasty()))
    assert "<script" not in html
    assert "<img" not in html
    assert "<em>" not in html
    assert "<h1>heading" not in html
    assert html.count("<h1>") == 1
    assert "<a " not in html
    assert "\x1b" not in html


@given(st.text(max_size=80))
def test_escaped_text_is_read_back_as_text(text: str) -> None:
    html = MarkdownIt("gfm-like", {"linkify": False}).render(f"x {escape(text)} x")
    assert "<a" not in html
    assert "<em" not in html
    assert "<strong" not in html
    assert "<code" not in html
    assert "<img" not in html


@given(st.text(alphabet="`ab ", max_size=40))
def test_no_text_closes_its_own_code(text: str) -> None:
    tokens = MarkdownIt().parse("x " + code(text) + " <b>")
    assert [child.type for child in tokens[1].children or []].count("code_inline") == 1
    block = MarkdownIt().parse("\n".join([*fenced([text, "```", "````"]), "after"]))
    assert [token.type for token in block if token.type == "fence"] == ["fence"]


def test_ten_thousand_turns_are_short() -> None:
    assert len(render_markdown(build.many()).splitlines()) < 150


def test_a_turn_without_figures_gets_no_empty_sentence() -> None:
    turn = a_turn(
        outcome="error", n_prompt=None, n_cached=None, n_processed=None, n_generated=None, n_common=None
    )
    text = render_markdown(a_report([turn]))
    assert "Turn 1" not in text
    assert "1 with an error" in text
    assert "0 failed" not in text


def test_flags_and_sentence_are_told_apart() -> None:
    turn = an_evicted_turn(1, 100, fixes=[Fix("more", "Replayed on this log.", ["--ctx-checkpoints", "6"])])
    assert "**Do:** `--ctx-checkpoints 6`: Replayed on this log." in render_markdown(a_report([turn]))


def test_a_low_level_says_what_could_be_worked_out() -> None:
    text = render_markdown(build.low_level())
    assert "the reuse could be worked out for 11 of 11 turns" in text
    assert "LLAMA_SERVER_SLOTS_N_DIFF=20 \\\n  llama-server ... -lv 4" in text


def test_slow_turns_and_changed_heads_are_told_first() -> None:
    slow = a_turn(100, 10211, 1279, outcome="restored", n_processed=8932, prompt_ms=2990500.0)
    assert "**Slow, but not the cache's fault: 8,932 new tokens" in render_markdown(a_report([slow]))
    head = an_evicted_turn(
        1, 100, 3000, severity="harmless", failed=False, n_common=15, n_lost=15, trigger="prefix-rewritten",
        fixes=[Fix("keep", "Send it unchanged.")],
    )  # fmt: skip
    text = render_markdown(a_report([head]))
    assert "**The beginning of the prompt changed: hardly anything was reused.**" in text
    assert "**Do:** Send it unchanged." in text
