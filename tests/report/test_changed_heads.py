"""Long prompts of which nothing is reused: the texts where they part, or a possibility where the level hides them."""

from __future__ import annotations

import pytest

from ckptlog.records import Evidence, MismatchRecord, Report, TurnRecord
from ckptlog.report.markdown import render_markdown
from ckptlog.report.text import render_text

from .build import a_report, a_turn


def flowing(report: Report) -> str:
    return " ".join(" ".join(line.plain for line in render_text(report, 80, None)).split())


def rewritten(old: str, new: str) -> list[TurnRecord]:
    return [
        a_turn(
            line, 24_511, 0, outcome="checkpoint-reprefill", severity="harmless", trigger="prefix-rewritten",
            cause="before-first-boundary", n_common=41, mismatch=MismatchRecord(41, old, new),
        )
        for line in (20, 60)
    ]  # fmt: skip


def test_the_texts_where_a_changed_head_parts_are_shown() -> None:
    report = a_report(rewritten("fa690;\nYou", "0aaa9;\nYou"))
    assert 'the slot held "fa690;\\nYou", the new prompt has "0aaa9;\\nYou".' in flowing(report)
    assert "0aaa9;" in render_markdown(report)


def test_texts_of_a_prompt_are_data() -> None:
    """Cut short, and neither colour, nor markup, nor a line of its own."""
    report = a_report(rewritten("\x1b[31m" + "x" * 500, "**bold**\n# heading\n<b>"))
    assert "\x1b" not in flowing(report)
    assert "x" * 70 not in flowing(report)
    page = render_markdown(report)
    assert "\n# heading" not in page
    assert "<b>" not in page
    assert "**bold**" not in page


@pytest.mark.parametrize(("lengths", "told"), [((24_102, 24_511, 25_233), True), ((24_102, 9_000, 60_000), False)])
def test_prompts_that_grow_and_reuse_nothing_may_be_one_conversation(lengths: tuple[int, ...], told: bool) -> None:
    turns = [a_turn(20, lengths[0], 0, outcome="cold", n_common=0)]
    turns += [a_turn(40 + n, n, 0, outcome="unknown", n_common=None) for n in lengths[1:]]
    report = a_report(turns)
    assert ("perhaps one conversation whose beginning the client changes" in flowing(report)) is told
    assert ("perhaps one conversation" in render_markdown(report)) is told


def test_what_else_is_to_be_told_is_told_beside_a_changed_head() -> None:
    """In both reports; what the changed head is told with stands once."""
    turns = rewritten("fa690;", "0aaa9;")
    late = a_turn(90, 30_000, 29_000, outcome="restored")
    late.evidence = [Evidence(0, 90, "srv stop: cancel task, id_task = 9", "", "client-gone")]
    report = a_report([*turns, late])
    for told in (flowing(report), render_markdown(report)):
        assert "the server finished the answer all the same" in " ".join(told.split())
    assert flowing(report).count("THE BEGINNING OF THE PROMPT CHANGED") == 1
    assert flowing(report).count("shared only 41 tokens") == 1
