"""What a report says of servers played by hand: other adapters, sleep, clients that leave, slot files, speculation."""

from __future__ import annotations

import pytest

from ckptlog.records import TurnRecord

from .logs import report, turn


def outcomes(log: str) -> list[str]:
    return [record.outcome for record in report(f"played/{log}").turns]


def costly(log: str) -> list[TurnRecord]:
    return [record for record in report(f"played/{log}").turns if record.failed]


# ------------------------------------------------------------------ another LoRA


@pytest.mark.parametrize(
    ("log", "numbers", "held"),
    [
        ("b11549/hybrid/lora", [3, 9], [438, 392]),
        ("b9713/plain/lora-two-slots", [2, 3, 4], [371, 371, 371]),
        # what came back from the RAM cache goes, too
        ("b11549/hybrid/lora-ram-cache", [3], [371]),
        ("b9713/plain/lora-ram-cache", [3], [371]),
    ],
)
def test_another_lora_is_the_cause_where_the_server_says_so(log: str, numbers: list[int], held: list[int]) -> None:
    for number, n_tokens in zip(numbers, held, strict=True):
        record = turn(f"played/{log}", number)
        assert (record.outcome, record.severity, record.cause) == ("checkpoint-reprefill", "costly", "lora-changed")
        assert (record.n_common, record.n_cached, record.n_lost) == (n_tokens, 0, n_tokens)
        assert any("clearing cache for lora change" in e.text for e in record.evidence)
        assert [fix.name for fix in record.fixes] == ["give-each-lora-a-slot"]


def test_a_lora_is_not_blamed_where_the_adapters_stayed() -> None:
    assert [record.cause for record in costly("b11549/hybrid/lora")] == ["lora-changed"] * 2
    assert all(record.cause == "lora-changed" for record in costly("b9713/plain/lora-two-slots"))


def test_one_slot_is_told_to_become_two_with_the_context_of_each() -> None:
    (fix,) = turn("played/b11549/hybrid/lora", 3).fixes
    assert fix.flags == ["--parallel", "2", "-c", "8192"]
    (fix,) = turn("played/b9713/plain/lora-two-slots", 2).fixes
    assert fix.flags == []


# ------------------------------------------------------------------ reuse forbidden, before b10178


@pytest.mark.parametrize("log", ["b9713/hybrid/no-cache", "b8672/hybrid/no-cache"])
def test_a_request_that_forbids_reuse_is_not_cold_where_only_ratios_tell_what_was_held(log: str) -> None:
    """Nothing reused, nothing searched for, and two three-digit ratios that leave two lengths open."""
    for number, common in ((2, (2403, 2404)), (3, (2404, 2405))):
        record = turn(f"played/{log}", number)
        assert (record.outcome, record.severity, record.cause) == ("checkpoint-reprefill", "costly", "cache-off")
        assert (record.n_common, record.n_common_range, record.n_cached) == (None, common, 0)


def test_no_place_of_a_checkpoint_is_blamed_where_none_was_looked_for() -> None:
    """b9713 at -lv 3 shows every search; the adapters' line is hidden, so that the request's own word is not proved."""
    causes = [record.cause for record in costly("b9713/hybrid/no-cache-lv3")]
    assert causes == ["unknown", "unknown"]


# ------------------------------------------------------------------ slots that share batches


def test_batches_cut_by_other_slots_are_no_message_boundaries() -> None:
    """Raw prompts of four clients on three slots, -b 64: a batch is shorter by what other slots put into it."""
    failed = costly("b11549/hybrid/clients-leave")
    assert len(failed) >= 5
    for record in failed:
        assert record.cause == "no-user-boundary", record.explanation
        assert [fix.name for fix in record.fixes] == ["use-chat-endpoint"]


# ------------------------------------------------------------------ slot files without a line


@pytest.mark.parametrize(("log", "resumed"), [("b8672/hybrid/slot-files", 196), ("b9713/hybrid/slot-files", 260)])
def test_more_reused_than_was_left_there_is_a_slot_file(log: str, resumed: int) -> None:
    """The slot took a file in between; the list of its old content stayed, and one of it was restored."""
    edited = turn(f"played/{log}", 6)
    assert (edited.outcome, edited.n_cached) == ("restored", resumed)
    assert "had been made before a slot file was loaded" in edited.explanation
    other = turn(f"played/{log}", 8)
    assert (other.severity, other.cause) == ("costly", "slot-restored-bare")


# ------------------------------------------------------------------ sleep


@pytest.mark.parametrize(
    ("log", "number", "held"),
    [
        ("b11549/hybrid/sleep", 7, 862),
        ("b11549/hybrid/sleep", 8, 862),
        ("b11549/hybrid/sleep-lv3", 3, 334),
        ("b8672/hybrid/sleep", 3, 331),
    ],
)
def test_what_was_held_before_a_sleep_is_told_as_a_possibility(log: str, number: int, held: int) -> None:
    record = turn(f"played/{log}", number)
    assert (record.outcome, record.failed) == ("cold", False)
    assert f"{held:,} tokens were let go of when the server slept" in record.explanation
    assert "--sleep-idle-seconds" in record.explanation
    assert any("exiting sleeping state" in e.text for e in record.evidence)
    assert len(report(f"played/{log}").runs) == 1


# ------------------------------------------------------------------ speculation at the default level


def test_drafted_tokens_behind_the_end_hide_nothing_that_the_ratios_tell() -> None:
    assert outcomes("b11549/hybrid/draft-lv3") == ["cold", "reused", "reused", "restored", "unknown", "restored", "restored"]
    assert outcomes("b9713/hybrid/ngram-lv3") == ["cold", "reused", "reused", "restored", "unknown", "restored", "restored"]
    figures = [(t.n_prompt, t.n_cached) for t in report("played/b11549/hybrid/draft-lv3").turns[:4]]
    assert figures == [(214, 0), (283, 247), (350, 316), (419, 248)]


def test_a_long_prompt_is_judged_by_what_its_reuse_lies_between() -> None:
    log = "b11549/hybrid/ngram-long-lv3"
    assert outcomes(log) == ["cold", *["reused"] * 5, "unknown", "checkpoint-reprefill"]
    second = turn(f"played/{log}", 2)
    assert (second.n_prompt, second.n_cached, second.confidence) == (None, None, "inferred")
    assert report(f"played/{log}").summary.reuse is None


# ------------------------------------------------------------------ other requests


@pytest.mark.parametrize("log", ["b11549/hybrid/requests-lv3", "b9713/hybrid/requests-lv3"])
def test_an_empty_prompt_has_no_figures_of_the_turn_before(log: str) -> None:
    (empty,) = [record for record in report(f"played/{log}").turns if record.outcome == "not-completion"]
    assert (empty.n_prompt, empty.n_cached, empty.n_processed, empty.n_generated) == (0, 0, 0, 0)
    assert empty.prompt_ms is None


def test_embeddings_beside_completions_are_no_completions_at_the_default_level() -> None:
    log = outcomes("b11549/plain/rerank-lv3")
    assert log.count("not-completion") == 10
    assert log.count("unknown") == 2  # the chats: what their slot held before is not in the log


# ------------------------------------------------------------------ images


@pytest.mark.parametrize("log", ["b11549/hybrid/images", "b11549/swa/images", "b9713/hybrid/images"])
def test_an_image_is_no_start_of_a_message(log: str) -> None:
    """Two images in one long first message, edited behind the first one, then the second one exchanged.

    An image cuts the batch before it and lengthens the one behind it; with every spacing the same prompts were
    processed again from token 113.
    """
    failed = costly(log)
    assert len(failed) == 2
    for record in failed:
        assert (record.cause, record.variant, record.n_cached) == ("checkpoints-sparse", "partial", 113)
        assert "A message begins" not in record.explanation
        if "b9713" in log:  # cuts at the last user message only
            assert "--checkpoint-min-step" not in [flag for fix in record.fixes for flag in fix.flags]
            continue
        # behind the first batch a start would not have been cut, so the log can't tell that there is none
        assert "would not show" in record.explanation
        assert [fix.name for fix in record.fixes][:2] == ["smaller-spacing", "split-long-messages"]
        assert "would not show" in record.fixes[0].text


# ------------------------------------------------------------------ the same prompt, and nothing behind it


def test_a_memory_cleared_for_one_token_is_the_builds_own_fault() -> None:
    failed = costly("b8672/hybrid/same-prompt")
    assert len(failed) == 3
    for record in failed:
        assert (record.trigger, record.cause, record.n_lost) == ("repeated", "server-rule", 419)
        assert any("clearing the memory" in e.text for e in record.evidence)
        assert "b7079 to b9113" in record.explanation
        assert [fix.name for fix in record.fixes] == ["upgrade-server"]


# ------------------------------------------------------------------ a busy slot asked for by number


def test_a_prompt_loaded_into_a_busy_slot_is_told_of_the_turn_that_it_spoils() -> None:
    """Three clients with id_slot 0: the second batch of a prompt begins at token 423, where the first was 256 long."""
    spoilt = turn("played/b11549/hybrid/busy-slot", 4)
    assert (spoilt.outcome, spoilt.cause, spoilt.trigger) == ("checkpoint-reprefill", "slot-swapped", None)
    assert (spoilt.n_prompt, spoilt.n_cached, spoilt.n_processed) == (468, 0, 301)
    assert [fix.name for fix in spoilt.fixes] == ["free-slot-choice", "one-request-a-slot", "no-ram-cache"]
    other = turn("played/b11549/hybrid/busy-slot", 7)
    assert (other.outcome, other.cause, other.n_cached, other.n_processed) == ("reused", None, 430, 56)
    assert "its answer may be off" in other.explanation
    assert {record.task for record in report("played/b11549/hybrid/busy-slot").turns if "may be off" in record.explanation} == {
        226,
        442,
    }


def test_what_a_busy_slot_ends_with_is_not_its_prompt_at_a_level_that_hides_the_swap() -> None:
    told = {record.task: record.n_cached for record in report("played/b11549/hybrid/busy-slot-lv3").turns}
    assert (told[217], told[426]) == (None, None)


def test_a_client_that_left_in_mid_answer_is_not_said_to_have_left_in_mid_prompt() -> None:
    """b9713 at -lv 3 prints where it resumed, not how long the prompt was: 530 of 534, then some of the answer."""
    (left,) = [record for record in report("played/b9713/hybrid/many-answers-lv3").turns if record.outcome == "cancelled"
               and record.child_of is None]  # fmt: skip
    assert (left.n_cached, left.n_processed, left.n_generated) == (530, None, None)


def test_a_swap_in_mid_prompt_is_no_lost_line() -> None:
    """424 were reused and 70 processed of 462: the rest was read twice, for the slot's content was taken away."""
    spoilt = next(record for record in report("played/b11549/hybrid/busy-slot-again").turns if record.task == 216)
    assert (spoilt.n_prompt, spoilt.n_cached, spoilt.n_processed) == (462, 424, 70)
    assert "may be off" in spoilt.explanation


def test_what_was_reused_was_known_to_the_server() -> None:
    """A new slot filled from the RAM cache, at a level that hides it: 642 tokens, not the 0 that the slot held."""
    filled = next(record for record in report("played/b11549/hybrid/unified-per-slot-lv3").turns if record.task == 62)
    assert (filled.n_cached, filled.n_known) == (642, None)
