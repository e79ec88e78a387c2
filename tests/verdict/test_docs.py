"""docs/outcomes.md is what the rules say, and every word of a report is explained."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ckptlog.records import Outcome
from ckptlog.verdict.catalogue import entries
from ckptlog.verdict.causes import CAUSES, TOLD_ONLY
from ckptlog.verdict.docs import outcomes_markdown
from ckptlog.verdict.triggers import TRIGGERS

PAGE = Path(__file__).parents[2] / "docs" / "outcomes.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == outcomes_markdown(), "python -m ckptlog.verdict.docs docs/outcomes.md"


def test_every_outcome_cause_and_trigger_has_an_entry() -> None:
    named = {(entry.kind, entry.name) for entry in entries()}
    assert {name for kind, name in named if kind == "outcome"} == set(get_args(Outcome))
    assert {name for kind, name in named if kind == "cause"} == {rule.name for rule in (*CAUSES, *TOLD_ONLY)}
    assert {name for kind, name in named if kind == "trigger"} == set(TRIGGERS)


def test_no_entry_is_empty_and_none_is_there_twice() -> None:
    seen = set()
    for entry in entries():
        assert entry.title, entry.name
        assert entry.kind != "cause" or (entry.text and entry.example), entry.name
        assert (entry.kind, entry.name) not in seen
        seen.add((entry.kind, entry.name))
