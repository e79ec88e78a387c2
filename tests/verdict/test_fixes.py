"""What a fix says and sets, from what the log tells of the server."""

from __future__ import annotations

import pytest

from ckptlog.records import Fix
from ckptlog.timeline.model import Checkpoint, Run, Turn
from ckptlog.verdict.case import Case
from ckptlog.verdict.fixes import (
    larger_ram_cache,
    listed,
    more_slots,
    no_shift,
    not_larger_context,
    raise_count,
    split_cache,
    swa_full,
    upgrade,
)


def a_run(build: int = 11549, **known: object) -> Run:
    run = Run(0, 0, 1, 9, build_min=build, build_max=build)
    for name, value in known.items():
        setattr(run, name, value)
    return run


@pytest.mark.parametrize(
    ("run", "says", "flags"),
    [
        (a_run(prompt_cache_enabled=True, prompt_cache_mib=512.0), "now 512 MiB", ["--cache-ram", "1024"]),
        (a_run(prompt_cache_enabled=False, prompt_cache_mib=0.0), "now off", ["--cache-ram", "8192"]),
        (a_run(), "8,192 MiB is the default", ["--cache-ram", "16384"]),
    ],
)
def test_more_room_for_the_prompt_cache(run: Run, says: str, flags: list[str]) -> None:
    fix = larger_ram_cache(run)
    assert fix is not None
    assert says in fix.text
    assert fix.flags == flags


def test_no_more_room_than_no_limit_or_where_there_is_no_such_cache() -> None:
    assert larger_ram_cache(a_run(prompt_cache_enabled=True)) is None
    assert larger_ram_cache(a_run(build=6628)) is None


@pytest.mark.parametrize(
    ("run", "count"),
    [
        (a_run(checkpoints_max=2), "4"),
        (a_run(checkpoints_max=32), "64"),
        (a_run(), "64"),
        (a_run(build=7079), "16"),
    ],
)
def test_more_checkpoints_are_never_fewer_than_the_default(run: Run, count: str) -> None:
    """Where the level hides what is set, it may be the default."""
    assert raise_count(run, None).flags == ["--ctx-checkpoints", count]


def test_another_slot_takes_no_context_from_the_others() -> None:
    split = more_slots(a_run(n_slots=2, n_ctx_slot=4096, kv_unified=False))
    assert split.flags == ["--parallel", "3", "-c", "12288"]
    assert more_slots(a_run(n_slots=2, n_ctx_slot=4096, kv_unified=True)).flags == ["--parallel", "3"]


def test_the_first_advice_is_no_alternative_to_anything() -> None:
    found = listed([Fix("full", "Or keep it whole.", ["--swa-full"]), Fix("other", "Or do this.")], a_run())
    assert found == [Fix("full", "Keep it whole.", ["--swa-full"]), Fix("other", "Or do this.")]
    assert listed([], a_run()) == []


@pytest.mark.parametrize(
    ("low", "high", "flags", "says"),
    [
        (0, 5900, ["--no-context-shift"], "Or refuse instead of deleting."),
        (6301, 6301, [], "without --context-shift"),
        (7000, 7100, [], "without --context-shift"),
        # whether shifting is on by default there is not known: what works in both stands first
        (0, None, ["--no-context-shift"], "which this log may be of"),
        (4000, 7000, ["--no-context-shift"], "only with --context-shift"),
    ],
)
def test_how_shifting_is_switched_off_hangs_on_the_build(low: int, high: int | None, flags: list[str], says: str) -> None:
    run = Run(0, 0, 1, 9, build_min=low, build_max=high)
    assert no_shift(run).flags == flags
    assert says in no_shift(run).text


@pytest.mark.parametrize(
    ("build", "flags"), [(11549, ["--no-kv-unified"]), (7827, ["--no-kv-unified"]), (7551, ["--parallel", "3"])]
)
def test_a_cache_is_split_by_a_flag_that_the_build_has(build: int, flags: list[str]) -> None:
    assert split_cache(a_run(build, n_slots=3)).flags == flags


def test_under_ollama_a_flag_is_not_said_to_be_the_users() -> None:
    run = a_run(ollama=True)
    first, second = listed([raise_count(run, 4), raise_count(run, 8)], run)
    assert first.text.endswith("this is one for a llama-server of your own.)")
    assert "Ollama" not in second.text
    assert no_shift(run).flags == []


def a_swa_run(**known: object) -> Run:
    """A checkpoint of 1,536 positions has 170.013 MiB: 0.11 MiB a token."""
    run = a_run(build=9400, **{"n_swa": 1024, "n_slots": 1, **known})
    run.checkpoints = [Checkpoint(8190, 6654, 8189, 170.013, 0, 0, 1, 5)]
    return run


@pytest.mark.parametrize(
    ("run", "price", "order"),
    [
        (a_swa_run(n_ctx_slot=262_144, kv_unified=False), "about 28 GiB more for those layers", ["upgrade-server", "swa-full"]),
        (a_swa_run(n_ctx_slot=262_144, n_slots=6), "28 GiB more a slot", ["upgrade-server", "swa-full"]),
        (a_swa_run(n_ctx_slot=4096), "about 453 MiB more", ["swa-full", "upgrade-server"]),
        # what is not known may be dear
        (a_run(n_swa=1024, n_ctx_slot=4096), "which this log does not tell", ["upgrade-server", "swa-full"]),
    ],
)
def test_swa_full_has_its_price_and_its_place_by_it(run: Run, price: str, order: list[str]) -> None:
    full = swa_full(run)
    assert full is not None
    assert price in full.text
    assert [fix.name for fix in listed([full, upgrade(9981, "it is mended there")], run)] == order


def test_what_changed_is_not_guessed_where_the_log_shows_it() -> None:
    turn = Turn(1, 0, 0, 0, 7, 10, 20)
    assert Case(a_run(), turn).perhaps == " (a clock, an id)"
    turn.mismatch_old, turn.mismatch_new = "fa690;", "0aaa9;"
    assert Case(a_run(), turn).perhaps == ""


def test_a_larger_context_is_no_use_in_a_turn_in_which_nothing_overflowed() -> None:
    """Another turn of the same log may have overflowed."""
    fix = not_larger_context(a_run(n_ctx_slot=16_384), 16_383)
    assert fix is not None
    assert "in this turn nothing overflowed" in fix.text
