"""Figures that a verdict rests on, where the log shows them only in part."""

from __future__ import annotations

import pytest

from .logs import turn


@pytest.mark.parametrize("log", ["logs/b11549/hybrid/lv3", "logs/b11549/swa/lv3", "logs/b10068/hybrid/lv3"])
def test_a_swap_from_the_cache_that_the_level_hides_is_no_common_prefix_of_nothing(log: str) -> None:
    """The slot held nothing of the prompt, and 334 tokens came from the cache: what was lost is not known."""
    back = turn(log, 7)
    assert back.n_common_slot == 0
    assert back.n_cached
    assert back.n_common is None
    assert back.n_common_range == (back.n_cached, back.n_prompt)
    assert (back.n_lost, back.n_known) == (None, None)
    assert back.confidence == "inferred"


def test_plain_memory_may_also_have_moved_pieces() -> None:
    back = turn("logs/b11549/plain/lv3", 7)
    assert (back.n_common, back.n_common_range) == (None, (0, back.n_prompt))


def test_user_starts_of_what_a_slot_file_replaced_are_forgotten() -> None:
    """An append to a restored slot: the starts known were those of the content before it."""
    append = turn("live/b9713/hybrid/save-restore", 6)
    assert append.outcome == "reused"
    assert append.trigger is None


def test_one_token_more_than_in_common_is_what_b8156_reuses_after_a_restore() -> None:
    """Cached 561 of 560 in common, and the timing agrees: 600 - 39 (policy, section 2, step 5)."""
    restored = turn("samples/b8156.turns", 3)
    assert (restored.outcome, restored.n_common, restored.n_cached, restored.n_processed) == (
        "restored",
        560,
        561,
        39,
    )
    assert restored.n_lost == 0
