"""The model of the RAM prompt cache."""

from __future__ import annotations

from ckptlog.timeline.cache import CacheEntry, RamCache


def test_after_a_listing_the_server_holds_nothing_else() -> None:
    """Also where the listing is just what was expected: only then may a ratio tell which entry was loaded."""
    cache = RamCache()
    cache.save(CacheEntry(1000, []))
    assert cache.fitting(0.5) == []
    cache.begin_listing()
    cache.listed([(1000, 0)])
    assert cache.end_listing() == []
    assert [entry.n_tokens for entry in cache.fitting(0.5)] == [1000]
