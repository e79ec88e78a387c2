"""Causes of recorded turns whose story the client's record tells: what the log proves, and how it is said."""

from __future__ import annotations

import pytest

from ckptlog.records import TurnRecord

from .logs import report, turn


def names(record: TurnRecord) -> list[str]:
    return [fix.name for fix in record.fixes]


# ------------------------------------------------------------------ held elsewhere, and gone


def test_what_the_ram_cache_held_is_the_cause_where_the_slot_lost_nothing() -> None:
    """2,642 tokens lay in the cache in an entry of 12,984: a fifth of it, and the server asks for a quarter."""
    session = turn("sample/held-elsewhere", 7)
    assert (session.outcome, session.severity, session.cause) == (
        "checkpoint-reprefill",
        "costly",
        "slot-taken",
    )
    assert (session.n_common, session.n_known, session.n_lost) == (10, 2642, 10)
    assert "a prompt of 12,984 tokens saved in the RAM prompt cache" in session.explanation
    assert "at least a quarter" in session.explanation
    assert names(session) == ["give-each-conversation-a-slot"]


@pytest.mark.parametrize(
    ("log", "number", "lost"),
    [
        ("sample/title-request", 4, "3,273 tokens were overwritten"),
        ("live/b10566/hybrid/slot-taken", 5, "498 tokens were overwritten"),
        ("live/b10566/hybrid/ram-cache-tiny", 5, "1,037 tokens were dropped from the RAM prompt cache"),
        # its own save pushed the entry out that it was about to look for
        ("live/b10566/hybrid/ram-cache-tiny", 6, "982 tokens were dropped from the RAM prompt cache"),
    ],
)
def test_a_conversation_that_came_back_is_told_as_a_possibility(log: str, number: int, lost: str) -> None:
    back = turn(log, number)
    assert (back.trigger, back.cause, back.severity) == (
        "other-conversation",
        "other-conversation",
        "harmless",
    )
    assert f"If this conversation had been here before: {lost}" in back.explanation
    assert back.fixes == []


def test_no_log_is_said_to_prove_that_the_cache_dropped_it() -> None:
    for log in (
        "sample/prompt-cache-evicted",
        "live/b8672/hybrid/ram-cache-tiny",
        "live/b9713/swa/ram-cache-tiny",
    ):
        assert "prompt-cache-evicted" not in {record.cause for record in report(log).turns}


# ------------------------------------------------------------------ a rewritten beginning, or another conversation


@pytest.mark.parametrize("build", ["b8672", "b9713", "b10566"])
@pytest.mark.parametrize("number", [3, 4])
def test_a_clock_in_the_system_prompt(build: str, number: int) -> None:
    clock = turn(f"live/{build}/hybrid/rewritten-system-prompt", number)
    assert (clock.trigger, clock.cause, clock.confidence) == (
        "prefix-rewritten",
        "before-first-boundary",
        "inferred",
    )
    assert "If it is the same conversation, its beginning was changed" in clock.explanation
    assert "if it is another one, there was nothing to keep" in clock.explanation


def test_a_long_prompt_with_a_clock_keeps_its_advice_though_nothing_was_lost() -> None:
    clock = turn("sample/clock-in-system-prompt", 3)
    assert (clock.severity, clock.failed) == ("harmless", False)
    assert names(clock) == ["keep-the-head-stable"]


@pytest.mark.parametrize("build", ["b8672", "b9713", "b10566"])
def test_a_shorter_prompt_than_the_slot_holds_is_another_conversation(build: str) -> None:
    taken = turn(f"live/{build}/hybrid/slot-taken", 4)
    assert (taken.trigger, taken.cause) == ("other-conversation", "other-conversation")


@pytest.mark.parametrize(
    ("log", "number"),
    [
        ("logs/b11549/plain/shift_keep_m1", 2),
        ("logs/b11549/swa/shift_keep_m1", 2),
        ("logs/b11549/swa/shift_keep_32", 2),
    ],
)
def test_behind_a_context_shift_the_divergence_is_the_servers_doing(log: str, number: int) -> None:
    assert turn(log, number).trigger is None


@pytest.mark.parametrize(
    "log",
    ["logs/b10068/hybrid/save_restore", "logs/b11549/hybrid/save_restore", "logs/b11549/swa/save_restore"],
)
def test_user_starts_behind_a_restored_slots_content_are_not_the_first(log: str) -> None:
    """The second message was edited; the first start that this process saw lies behind it."""
    assert turn(log, 9).trigger == "edited"


@pytest.mark.parametrize("model", ["hybrid", "swa"])
def test_a_clock_in_the_very_first_words(model: str) -> None:
    """Seven tokens in common, and the lengths of a conversation that goes on: told as both."""
    clock = turn(f"review/{model}/undo-edit", 9)
    assert (clock.trigger, clock.cause) == ("other-conversation", "other-conversation")
    assert "If it is the same one, its very first words were changed" in clock.explanation
    other = turn("logs/b11549/hybrid/lcp_lru", 6)
    assert other.cause == "other-conversation"
    assert "first words" not in other.explanation


@pytest.mark.parametrize("model", ["hybrid", "swa"])
def test_a_slot_asked_for_by_number_is_compared_behind_the_line_that_names_it(model: str) -> None:
    """The comparison belongs to this request: taken for the next one's, it made a new chat look robbed."""
    own, fresh, moved = (
        turn(f"review/{model}/by-number", 3),
        turn(f"review/{model}/by-number", 4),
        turn(f"review/{model}/by-number", 5),
    )
    assert own.n_common == own.n_cached
    assert (own.outcome, own.trigger) == ("reused", "appended")
    assert (fresh.outcome, fresh.cause, fresh.n_known) == ("cold", None, 0)
    assert moved.severity == "harmless"
    assert moved.n_common is not None
    assert moved.n_common == moved.n_common_slot == moved.n_known < 32


# ------------------------------------------------------------------ where builds make checkpoints


@pytest.mark.parametrize(
    ("log", "number", "where"),
    [
        ("live/b8672/hybrid/spacing-step0", 10, "near the end of each prompt (here from token"),
        ("live/b8672/hybrid/compacted", 6, "near the end of each prompt (here from token 431 on)"),
        ("live/b9713/hybrid/spacing-step0", 10, "Builds up to b9763 make checkpoints only near the end"),
    ],
)
def test_an_edit_in_the_middle_is_not_a_rewritten_head(log: str, number: int, where: str) -> None:
    """These builds make no checkpoint where earlier messages begin: an upgrade helps, not another client."""
    edit = turn(log, number)
    assert (edit.trigger, edit.cause, edit.severity) == ("edited", "checkpoints-sparse", "costly")
    assert where in edit.explanation
    assert "keep-the-head-stable" not in names(edit)
    assert names(edit)[-1] == "upgrade-server"


def test_a_smaller_distance_is_told_only_where_a_batch_begins_before_the_change() -> None:
    """b8672 takes them at the starts of batches (here of 256): at 439 there is one, at 186 there is none."""
    by_batch = turn("live/b8672/hybrid/spacing-step0", 10)
    if by_batch.fixes[0].name == "smaller-spacing":
        (flag, value) = by_batch.fixes[0].flags
        assert flag == "--checkpoint-every-n-tokens"
        assert int(value) <= (by_batch.n_common or 0)
    assert "smaller-spacing" not in names(turn("live/b8672/hybrid/unicode", 2))


@pytest.mark.parametrize(
    ("log", "number", "at"),
    [
        ("live/b10566/hybrid/spacing-step512", 10, "241"),
        ("logs/b11549/swa/minstep_8192", 5, "184"),
        # cut right behind the first checkpoint of an empty list, and no checkpoint made
        ("logs/b11549/hybrid/minstep_8192", 5, "184"),
    ],
)
def test_a_spacing_that_skipped_messages_is_told_even_where_the_replay_finds_no_number(
    log: str, number: int, at: str
) -> None:
    edit = turn(log, number)
    assert edit.cause == "checkpoints-sparse"
    assert f"A message begins at {at}" in edit.explanation
    assert edit.fixes[0].name == "smaller-spacing"
    assert edit.fixes[0].flags[0] == "--checkpoint-min-step"
    assert f"resume at {at} at least" in edit.fixes[0].text


@pytest.mark.parametrize("log", ["live/b11549/hybrid/long-first-message", "sample/sparse-checkpoints"])
def test_that_no_message_begins_in_between_is_said_where_its_start_would_show(log: str) -> None:
    """Into an empty list the first two starts are cut, whatever the spacing: the second one lies behind the change."""
    edit = next(t for t in report(log).turns if t.cause == "checkpoints-sparse")
    assert "the change lies deep inside one long message" in edit.explanation
    assert "would not show" not in edit.explanation
    assert edit.fixes[0].name == "split-long-messages"


@pytest.mark.parametrize(
    "log",
    [
        "live/b10566/hybrid/three-clients",
        "live/b10566/recurrent/three-clients",
        "live/b10809/hybrid/three-clients",
        "live/b11549/hybrid/three-clients",
        "live/b11549/recurrent/three-clients",
    ],
)
def test_where_messages_begin_is_seen_in_batches_that_others_share_and_do_not_fill(log: str) -> None:
    """The first message begins at 147, near the prompt's end: the three slots put 215 of 256 tokens into that batch."""
    edit = turn(log, 9)
    assert (edit.outcome, edit.n_common, edit.n_cached) == ("restored", 154, 147)
    assert edit.trigger == "edited"


def test_a_new_session_is_told_by_where_it_parts() -> None:
    session = next(t for t in report("sample/evicted-system-prompt").turns if t.failed)
    assert session.cause == "checkpoint-evicted"
    assert "a new conversation with the same system prompt, or an edited first message" in session.explanation
    deep = turn("logs/b11549/hybrid/fifo", 9)
    assert deep.cause == "checkpoint-evicted"
    assert "system prompt" not in deep.explanation


# ------------------------------------------------------------------ known faults


@pytest.mark.parametrize("number", [2, 3, 4])
def test_appends_that_search_are_named_as_the_fault_they_are(number: int) -> None:
    append = turn("sample/append-searches", number)
    assert "known fault of b9246 to b9496 (mended in b9509)" in append.explanation
    if append.failed:
        assert (append.cause, append.confidence) == ("server-rule", "derived")
        assert append.fixes[0].name == "upgrade-server"
        assert "b9509" in append.fixes[0].text
        assert not any("prompts part" in e.says for e in append.evidence)
    else:
        assert (append.outcome, append.cause, append.confidence) == ("restored", None, "observed")


def test_slot_files_without_checkpoints_are_named_as_a_fault() -> None:
    edit = turn("live/b8672/hybrid/save-restore", 8)
    assert edit.cause == "slot-restored-bare"
    assert "only a plain append can be resumed" in edit.explanation
    assert "known fault of all builds up to b11434 (mended in b11549)" in edit.explanation


def test_a_sliding_window_model_cannot_even_append_to_a_bare_slot_file() -> None:
    append = turn("logs/b10068/swa/save_restore", 6)
    assert append.cause == "slot-restored-bare"
    assert "can't even resume a plain append" in append.explanation


@pytest.mark.parametrize(
    ("log", "number", "why"),
    [
        ("logs/b8672/hybrid/save_restore", 7, "made before a slot file was loaded"),
        ("live/b8672/swa/shift-keep-all", 2, "made before a context shift"),
    ],
)
def test_a_stale_restore_is_flagged(log: str, number: int, why: str) -> None:
    """Up to b10001 the list outlives what it was made for."""
    stale = turn(log, number)
    assert stale.outcome == "restored"
    assert why in stale.explanation
    assert "known fault of all builds up to b10001 (mended in b10012)" in stale.explanation
    assert names(stale) == ["upgrade-server"]
    fresh = turn("logs/b11549/hybrid/save_restore", 9)
    assert (fresh.outcome, fresh.explanation) == ("restored", "")


# ------------------------------------------------------------------ a client that left


def test_when_the_client_left_is_told() -> None:
    during_prompt = turn("live/b10566/hybrid/gone-during-prompt", 3)
    assert during_prompt.explanation.startswith(
        "It left while the prompt was being processed: 2,595 of 12,000 tokens"
    )
    during_answer = turn("live/b10566/hybrid/gone-during-generation", 3)
    assert during_answer.explanation.startswith("It left after 2 tokens of the answer.")
