"""What a person reads first: said without a word that misleads."""

from __future__ import annotations

from .logs import turn


def test_a_harmless_re_prefill_is_not_told_as_a_loss() -> None:
    other = turn("logs/b11549/hybrid/lcp_lru", 6)
    assert (
        other.headline == "The prompt was processed from the beginning: 4 tokens of it had been in the slot."
    )
    ranged = turn("live/b9713/hybrid/slot-taken", 4)
    assert (
        ranged.headline
        == "The prompt was processed from the beginning: at most 22 tokens of it had been in the slot."
    )
    costly = turn("logs/b11549/hybrid/fifo", 9)
    assert costly.headline.startswith("The prompt was processed again from the beginning: 675 tokens")


def test_the_flags_of_a_full_unified_cache_are_whole() -> None:
    full = turn("logs/b11549/hybrid/kv_full", 4)
    assert full.outcome == "error"
    flags = {fix.name: fix.flags for fix in full.fixes}
    (flag, size), (slots_flag, slots) = flags["larger-context"], flags["fewer-slots"]
    assert flag == "-c"
    assert int(size) >= 2 * (full.n_prompt or 0)
    assert (slots_flag, int(slots) >= 1) == ("--parallel", True)
    assert flags["split-cache"] == ["--no-kv-unified"]


def test_a_threshold_is_explained_where_a_window_is_taken_off() -> None:
    edit, short = turn("logs/b11549/swa/fifo", 10), turn("logs/b11549/swa/head_timestamp", 2)
    assert any(e.says.endswith("(161; less the window that is 97)") for e in edit.evidence)
    assert any(e.says.endswith("(24; less the window, but never below 0, that is 0)") for e in short.evidence)
