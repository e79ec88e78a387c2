"""The rules, on the worked examples of real logs: thresholds, restores, sweeps, cuts, thinning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptlog.server import policy
from ckptlog.server.memory import PlainMemory, RecurrentMemory, SlotMemory
from ckptlog.server.policy import Checkpoint, Settings, Slot
from ckptlog.server.rules import rules_at
from ckptlog.server.swa import SwaCells, SwaMemory

HYBRID = Settings("hybrid", 32, n_batch=256, n_ubatch=64)
SWA_512 = Settings("swa", 32, n_swa=512, n_batch=256, n_ubatch=64)


class FixedMemory(PlainMemory):
    """Memory that reports the pos_min a log printed."""

    def __init__(self, n: int, low: int) -> None:
        super().__init__()
        self.n = n
        self.low = low

    def pos_min(self) -> int:
        return self.low


def recurrent(n_tokens: int) -> RecurrentMemory:
    memory = RecurrentMemory()
    memory.n = n_tokens
    return memory


def hybrid_slot(n_tokens: int, *positions: int, task: int = 0) -> Slot:
    checkpoints = [Checkpoint(n, n - 1, n - 1, task) for n in positions]
    return Slot(recurrent(n_tokens), n_tokens, checkpoints)


def span(pos_min: int, pos_max: int, task: int = 0) -> Checkpoint:
    return Checkpoint(pos_max + 1, pos_min, pos_max, task)


def kept(slot: Slot) -> list[int]:
    return [c.n_tokens for c in slot.checkpoints]


# --- start of a turn -------------------------------------------------------------------------------


def test_deep_edit_restores_the_newest_that_fits_and_sweeps_what_lies_beyond() -> None:
    slot = hybrid_slot(482, 146, 158, 210, 228, 230, 280, 368, 370, 420, 445, 447, 457)
    start = policy.start_turn(rules_at(11549), HYBRID, slot, 462, 237)
    assert (start.threshold, start.n_checked, start.n_past) == (237, 8, 230)
    assert start.restored is not None
    assert start.restored.n_tokens == 230
    assert kept(slot) == [146, 158, 210, 228, 230]
    assert [c.n_tokens for c in start.invalidated] == [280, 368, 370, 420, 445, 447, 457]
    assert slot.n_tokens == slot.memory.pos_max() + 1 == 230


def test_the_same_prompt_again_needs_an_older_state_than_its_end() -> None:
    slot = hybrid_slot(268, 186, 249)
    start = policy.start_turn(rules_at(11549), HYBRID, slot, 253, 253)
    assert start.threshold == 252
    assert start.n_past == 249


def test_swa_resumes_one_token_before_the_checkpoint_and_keeps_it() -> None:
    slot = Slot(FixedMemory(1003, 235), 1003, [span(0, 531), span(0, 595), span(164, 931), span(228, 995)])
    start = policy.start_turn(rules_at(11549), SWA_512, slot, 600, 560)
    assert (start.threshold, start.n_checked, start.n_past) == (48, 4, 531)
    assert [c.n_tokens for c in start.invalidated] == [596, 932, 996]
    assert kept(slot) == [532]


@pytest.mark.parametrize(
    ("build", "checkpoints", "limit", "n_past"),
    [
        (9294, [span(0, 531), span(164, 931)], 47, 531),
        (8352, [span(0, 531), span(164, 931)], 48, 531),
        (7079, [span(0, 535)], 48, 535),
        (6628, [span(0, 599)], 48, 560),
        (8156, [span(0, 343), span(0, 743)], 48, 561),
    ],
)
def test_the_same_edit_on_other_builds(
    build: int, checkpoints: list[Checkpoint], limit: int, n_past: int
) -> None:
    slot = Slot(FixedMemory(1003, 235), 1003, checkpoints)
    start = policy.start_turn(rules_at(build), SWA_512, slot, 600, 560)
    assert (start.threshold, start.n_past) == (limit, n_past)


def test_recurrent_restore_of_a_long_prompt() -> None:
    slot = hybrid_slot(32157, 32112)
    start = policy.start_turn(rules_at(9592), HYBRID, slot, 33000, 32122)
    assert (start.threshold, start.n_past) == (32122, 32112)
    older = hybrid_slot(13893, 13319)
    assert policy.start_turn(rules_at(7079), HYBRID, older, 14000, 13831).n_past == 13319


def test_nothing_fits_and_the_sweep_of_that_build_takes_the_rest() -> None:
    settings = Settings("swa", 8, n_swa=128)
    slot = Slot(FixedMemory(1138, 1137), 1138, [span(299, 940)])
    start = policy.start_turn(rules_at(7079), settings, slot, 870, 333)
    assert (start.threshold, start.forced, start.n_past) == (205, True, 0)
    assert kept(slot) == []


def test_a_state_that_starts_at_token_0_fits_from_b8929_on() -> None:
    settings = Settings("swa", 32, n_swa=1024)
    for build, n_past in ((8672, 0), (8929, 961)):
        slot = Slot(FixedMemory(1200, 100), 1200, [span(0, 961)])
        assert policy.start_turn(rules_at(build), settings, slot, 1100, 1000).n_past == n_past


def test_a_plain_append_on_a_hybrid_model_searches_only_in_one_span_of_builds() -> None:
    for build, searched in ((9113, False), (9246, True), (9496, True), (9509, False), (11549, False)):
        slot = hybrid_slot(300, 282)
        start = policy.start_turn(rules_at(build), HYBRID, slot, 350, 300)
        assert (start.threshold is not None) is searched, build
        assert start.n_past == (282 if searched else 300), build


def test_a_state_beyond_the_prefix_is_restored_and_erased_at_once_up_to_b9592() -> None:
    for build, n_past, left in ((8672, 230, []), (9596, 0, [])):
        slot = Slot(FixedMemory(400, 180), 400, [span(100, 335)])
        start = policy.start_turn(rules_at(build), Settings("swa", 32, n_swa=64), slot, 300, 230)
        assert start.n_past == n_past
        assert kept(slot) == left


def test_memory_that_still_reaches_back_is_reused_but_the_sweep_runs() -> None:
    settings = Settings("swa", 32, n_swa=64)
    slot = Slot(FixedMemory(614, 358), 614, [span(102, 357), span(350, 605)])
    start = policy.start_turn(rules_at(10068), settings, slot, 620, 577)
    assert start.threshold is None
    assert start.n_past == 577
    assert [c.n_tokens for c in start.invalidated] == [606]


def test_nothing_in_common_wipes_the_list_without_a_search() -> None:
    slot = hybrid_slot(300, 182, 232)
    start = policy.start_turn(rules_at(11549), HYBRID, slot, 350, 0)
    assert (start.forced, start.threshold, kept(slot)) == (False, None, [])


def test_cache_prompt_false_counts_as_nothing_in_common() -> None:
    slot = hybrid_slot(300, 182)
    start = policy.start_turn(rules_at(11549), HYBRID, slot, 300, 300, cached=False)
    assert (start.n_past, start.forced, kept(slot)) == (0, False, [])


def test_plain_memory_evaluates_one_token_when_all_is_there() -> None:
    memory = PlainMemory()
    memory.n = 300
    slot = Slot(memory, 300)
    start = policy.start_turn(rules_at(11549), Settings("plain", 32), slot, 250, 250)
    assert (start.n_past, start.one_token, start.forced) == (249, True, False)


def test_swa_full_takes_the_window_out_of_the_threshold_from_b8929_on() -> None:
    settings = Settings("swa", 32, n_swa=512, swa_full=True)
    assert policy.threshold(rules_at(8672), settings, 600, 700) == 88
    assert policy.threshold(rules_at(8929), settings, 600, 700) == 600
    assert policy.threshold(rules_at(9246), settings, 600, 700) == 599
    assert policy.threshold(rules_at(11549), settings, 600, 600) == 599


# --- batches ---------------------------------------------------------------------------------------


def prefill(
    build: int, settings: Settings, slot: Slot, n_prompt: int, starts: tuple[int, ...] = (), task: int = 0
) -> tuple[list[int], list[int]]:
    """Batch starts and checkpoints made while a prompt is read from the slot's end on."""
    rules = rules_at(build)
    cuts, made = [], []
    tails = policy.tail_cuts(rules, settings, n_prompt)
    while slot.n_tokens < n_prompt:
        cuts.append(slot.n_tokens)
        n_end = policy.next_cut(rules, settings, slot, n_prompt, tails, starts)
        if policy.makes_checkpoint(rules, settings, slot, n_end, n_prompt, starts):
            made.append(policy.add_checkpoint(rules, settings, slot, task).made.n_tokens)
        slot.memory.append(n_end - slot.n_tokens, settings.n_ubatch)
        slot.n_tokens = n_end
    return cuts, made


def test_batches_of_a_cold_chat() -> None:
    cuts, made = prefill(11549, HYBRID, hybrid_slot(0), 214, (158,))
    assert cuts == [0, 146, 158, 210]
    assert made == [146, 158, 210]


def test_a_short_append_also_makes_one_where_the_reuse_ended() -> None:
    slot = hybrid_slot(228, 146, 158, 210)
    cuts, made = prefill(11549, replace(HYBRID, min_step=256), slot, 284, (158, 230), task=19)
    assert (cuts, made) == ([228, 230, 280], [228, 230, 280])


def test_not_so_when_the_user_start_behind_it_leaves_a_whole_ubatch() -> None:
    slot = hybrid_slot(320, 182)
    _, made = prefill(10068, replace(HYBRID, min_step=256), slot, 386, (182, 322), task=2)
    assert made == [322, 382]


def test_a_user_start_is_cut_with_the_list_before_the_batch_makes_its_own() -> None:
    settings = replace(HYBRID, min_step=256)
    cuts, made = prefill(11549, settings, hybrid_slot(0), 461, (158, 230, 370, 447))
    assert cuts == [0, 158, 230, 393, 447, 457]
    assert made == [158, 393, 447, 457]


def test_near_end_checkpoints_obey_the_distance_from_b9771_to_b9976() -> None:
    settings = replace(HYBRID, min_step=8192)
    for build, made in ((9873, []), (9981, [532, 596])):
        slot = hybrid_slot(500, 400)
        assert prefill(build, settings, slot, 600)[1] == made, build


def test_b9713_makes_them_only_behind_the_last_user_message() -> None:
    slot = hybrid_slot(228, 100)
    assert prefill(9713, HYBRID, slot, 284, (158, 230))[1] == [230, 280]
    assert prefill(9713, HYBRID, hybrid_slot(0), 284)[1] == [216, 280]


def test_b8672_keeps_64_tokens_between_two() -> None:
    assert prefill(8672, HYBRID, hybrid_slot(0), 1000)[1] == [932]
    spaced = replace(HYBRID, every_nt=256)
    assert prefill(8672, spaced, hybrid_slot(0), 1000)[1] == [256, 512, 768, 932]


def test_b8352_refuses_the_last_one_for_its_distance() -> None:
    cuts, made = prefill(8352, HYBRID, hybrid_slot(0), 600)
    assert cuts == [0, 256, 512, 532, 596]
    assert made == [532]


def test_older_cuts() -> None:
    assert prefill(7079, HYBRID, hybrid_slot(0), 600)[1] == [536]
    assert prefill(8156, HYBRID, hybrid_slot(0), 600) == ([0, 256, 344], [344])


def test_a_physical_batch_as_large_as_the_logical_one() -> None:
    settings = replace(HYBRID, n_batch=64)
    assert 311 - 64 in prefill(11549, settings, hybrid_slot(0), 311)[1]


def test_up_to_b6628_the_prompt_is_not_cut_and_the_end_is_kept() -> None:
    settings = Settings("swa", 3, n_swa=512, n_batch=256, n_ubatch=64)
    rules = rules_at(6628)
    assert policy.tail_cuts(rules, settings, 600) == ()
    slot = hybrid_slot(600)
    assert policy.makes_checkpoint(rules, settings, slot, 600, 600)
    assert not policy.makes_checkpoint(rules, settings, hybrid_slot(512), 600, 600)


def test_who_makes_checkpoints_at_all() -> None:
    new, old = rules_at(11549), rules_at(6628)
    assert policy.makes_any(new, HYBRID)
    assert not policy.makes_any(old, HYBRID)
    assert not policy.makes_any(new, replace(HYBRID, max_checkpoints=0))
    assert not policy.makes_any(new, Settings("plain", 32))
    assert not policy.makes_any(new, replace(SWA_512, swa_full=True))
    assert policy.makes_any(old, SWA_512)


# --- the list --------------------------------------------------------------------------------------


def add(build: int, settings: Settings, slot: Slot, n_tokens: int, task: int) -> policy.Added:
    slot.n_tokens = n_tokens
    memory: SlotMemory = recurrent(n_tokens)
    slot.memory = memory
    return policy.add_checkpoint(rules_at(build), settings, slot, task)


def test_full_list_drops_the_oldest() -> None:
    slot = hybrid_slot(0, 100, 200, 300)
    added = add(9713, replace(HYBRID, max_checkpoints=3), slot, 400, task=1)
    assert [c.n_tokens for c in added.evicted] == [100]
    assert kept(slot) == [200, 300, 400]
    assert added.size == 3


def test_thinning_spares_the_first_and_the_tasks_own() -> None:
    slot = hybrid_slot(0, 170, 182, 234, 900)
    slot.checkpoints.append(Checkpoint(950, 949, 949, 7))
    added = add(10068, replace(HYBRID, min_step=256), slot, 960, task=7)
    assert [c.n_tokens for c in added.thinned] == [182, 234]
    assert kept(slot) == [170, 900, 950, 960]


def test_from_b10865_thinning_waits_until_the_list_is_nearly_full() -> None:
    settings = replace(HYBRID, max_checkpoints=5, min_step=8192)
    slot = hybrid_slot(0, 170, 182, 234)
    assert add(11549, settings, slot, 300, task=1).thinned == []
    added = add(11549, settings, slot, 400, task=2)
    # one too many: it stops as soon as size + 1 < max
    assert [c.n_tokens for c in added.thinned] == [182]
    assert kept(slot) == [170, 234, 300, 400]


def test_an_unsorted_list_is_thinned_even_without_a_step() -> None:
    slot = Slot(recurrent(0), 0, [span(0, 402), span(0, 401)])
    added = add(11549, replace(HYBRID, max_checkpoints=3), slot, 450, task=9)
    assert [c.n_tokens for c in added.thinned] == [402]
    assert kept(slot) == [403, 450]


def test_the_same_place_again_replaces_but_only_after_eviction() -> None:
    slot = hybrid_slot(0, 100, 200, 249)
    added = add(11549, HYBRID, slot, 249, task=1)
    assert [c.n_tokens for c in added.superseded] == [249]
    assert added.size == 3
    full = hybrid_slot(0, 100, 200, 249)
    added = add(11549, replace(HYBRID, max_checkpoints=3), full, 249, task=0)
    assert [c.n_tokens for c in added.evicted] == [100]
    assert kept(full) == [200, 249]
    two = hybrid_slot(0, 532)
    add(10229, HYBRID, two, 532, task=0)
    assert kept(two) == [532, 532]


# --- other events ----------------------------------------------------------------------------------


def test_a_shift_leaves_the_list_stale_up_to_b10001() -> None:
    for build, left in ((10001, [632]), (10012, [])):
        slot = hybrid_slot(767, 632)
        policy.shift(rules_at(build), slot, 1, 383)
        assert slot.n_tokens == 384
        assert kept(slot) == left


def test_a_cleared_slot() -> None:
    for build, left in ((8672, [182]), (10012, [])):
        slot = hybrid_slot(300, 182)
        policy.clear(rules_at(build), slot)
        assert (slot.n_tokens, kept(slot)) == (0, left)


def test_slot_files_by_era() -> None:
    settings = replace(HYBRID, max_checkpoints=2)
    for build, left in ((8672, [50]), (11063, []), (11549, [210, 228])):
        rules = rules_at(build)
        saved = policy.store(rules, hybrid_slot(240, 146, 210, 228, task=3))
        slot = hybrid_slot(90, 50)
        policy.load_slot_file(rules, settings, slot, saved)
        assert (slot.n_tokens, slot.memory.pos_max(), kept(slot)) == (240, 239, left)
    assert {c.task for c in slot.checkpoints} == {policy.NO_TASK}


def test_a_cache_hit_brings_its_own_list() -> None:
    rules = rules_at(11549)
    saved = policy.store(rules, hybrid_slot(250, 168, 198, 232))
    slot = hybrid_slot(322, 170, 198, 234)
    policy.load_cached(slot, saved)
    assert (slot.n_tokens, kept(slot)) == (250, [168, 198, 232])


def test_a_stored_swa_state_reaches_back_one_window_from_b9479_on() -> None:
    for build, low in ((9464, 0), (9479, 20)):
        memory = SwaMemory(SwaCells(768, 512))
        memory.append(532, 64)
        slot = Slot(memory, 532)
        added = policy.add_checkpoint(rules_at(build), SWA_512, slot, 0)
        assert added.made.pos_min == 0
        memory.load(added.made.state, 532)
        assert memory.pos_min() == low
