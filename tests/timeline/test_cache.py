"""The model of the RAM prompt cache."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ckptlog.timeline.cache import CacheEntry, RamCache
from ckptlog.timeline.lists import ListKeeper
from ckptlog.timeline.model import Run, Selection, Turn
from ckptlog.timeline.slot import SlotState
from ckptlog.timeline.starts import Starts


def test_after_a_listing_the_server_holds_nothing_else() -> None:
    """Also where the listing is just what was expected: only then may a ratio tell which entry was loaded."""
    cache = RamCache()
    cache.save(CacheEntry(1000, []))
    assert cache.fitting(0.5) == []
    cache.begin_listing()
    cache.listed([(1000, 0)])
    assert cache.end_listing() == []
    assert [entry.n_tokens for entry in cache.fitting(0.5)] == [1000]


def test_of_two_entries_as_long_the_beginning_of_what_is_saved_is_obsolete() -> None:
    cache = RamCache()
    for starts in ((159, 230), (158, 229)):
        cache.save(CacheEntry(632, [], starts=Starts(user=starts)))
    cache.save(CacheEntry(691, [], starts=Starts(user=(158, 229, 640))))
    cache.remove_obsolete(632)
    cache.settle()
    assert [entry.starts.user for entry in cache.entries] == [(159, 230), (158, 229, 640)]


def test_of_two_entries_as_long_the_one_at_the_candidates_place_is_loaded() -> None:
    """Each candidate must be better than those before it: of two alike it is the first."""
    cache = RamCache()
    for starts in ((159,), (158,), (160,)):
        cache.save(CacheEntry(632 if starts != (160,) else 700, [], starts=Starts(user=starts)))
    selection = Selection(0, 1, "lru", found=(0.263, 0.892))
    selection.candidates = [(632, 166, 0.263, 0.892), (632, 4, 0.006, 0.022), (700, 166, 0.237, 0.892)]
    assert selection.chosen == 0
    taken = cache.take(632, selection.chosen, 3)
    assert taken is not None
    assert taken.starts.user == (159,)


def test_a_list_that_is_not_the_entrys_shows_that_another_was_loaded() -> None:
    run, turn = Run(1, 0, 1, 1, build_min=10178), Turn(2, 1, 0, 0, 2, 2, 2)
    state = SlotState(0, starts=Starts(user=(158,), complete=True))
    turn.cache_loaded, turn.before_known, turn.starts = True, True, state.starts
    gone: Any = SimpleNamespace(f={"n_tokens": 260, "pos_min": 259, "pos_max": 259}, line=9, text="")
    ListKeeper().erased(run, state, turn, gone, "invalidated")
    assert (turn.starts.user, turn.starts.sure, state.starts.user, turn.before_known) == ((), False, (), False)
