"""A row of token ids as the server prints it below the windows."""

from __future__ import annotations

import pytest

from ckptlog.timeline.on_prompt import token_ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (None, []),
        ("", []),
        ("  12   345 -1 ", [12, 345, -1]),
        ("12 0x1F 3", []),
        ("12 nan", []),
        ("1" * 5000, []),
    ],
)
def test_a_damaged_row_says_nothing(text: str | None, ids: list[int]) -> None:
    assert token_ids(text) == ids
