"""The Markdown report: golden, and nothing of a log is markup in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ckptlog.records import Report
from ckptlog.report.markdown import code, escape, fenced, render_markdown

from . import build

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
