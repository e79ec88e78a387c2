"""The page about the language says what the code does, and the words are those of `ckptlog explain`."""

from __future__ import annotations

import re

import pytest

from ckptlog.query import compile_check, compile_filter, words
from ckptlog.verdict.catalogue import entries

from . import columns_table
from .columns_table import PAGE

BLOCKS = re.findall(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_tables_are_the_codes() -> None:
    page = PAGE.read_text()
    assert page == columns_table.filled(page), "run python -m tests.query.columns_table"


def test_the_examples_are_understood() -> None:
    filters, error, checks = BLOCKS
    for line in filters.splitlines():
        compile_filter(line)
    for line in checks.splitlines():
        compile_check(line)
    command, answer = error.splitlines()
    expression = re.search(r'--where "(.*)"', command)
    assert expression is not None
    with pytest.raises(Exception, match="outcome is never") as raised:
        compile_filter(expression[1])
    assert answer == f"ckptlog: {raised.value}"


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("outcome", words.OUTCOMES),
        ("variant", words.VARIANTS),
        ("trigger", words.TRIGGERS),
        ("cause", words.CAUSES),
    ],
)
def test_the_words_are_those_that_can_be_explained(kind: str, known: tuple[str, ...]) -> None:
    assert set(known) == {entry.name for entry in entries() if entry.kind == kind}
