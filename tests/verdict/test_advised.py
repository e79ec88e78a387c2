"""What is advised was tried: the same client, played once more on a server with the flags that a report names."""

from __future__ import annotations

from .logs import report, turn


def test_rules_that_two_prompts_share_are_not_lost_where_no_slot_could_resume_there() -> None:
    """178 tokens in slot 3, hybrid memory, and the first checkpoint of that slot far behind them: a slot that is used
    again for less alike prompts processes them all the same (played: 0 reused)."""
    record = turn("advice/shared-rules", 3)
    assert record.n_known == 178
    assert (record.outcome, record.cause, record.fixes) == ("cold", None, [])


def test_a_slot_that_was_not_used_could_not_have_resumed_where_its_checkpoint_was_pushed_out() -> None:
    record = turn("advice/similarity-too-high", 6)
    assert (record.cause, record.n_known, record.n_cached) == ("slot-taken", 1041, 0)
    assert "had been pushed out: more of them are needed as well" in record.explanation
    # neither alone: played, 0 reused
    assert record.fixes[0].flags == ["--slot-prompt-similarity", "0.1", "--ctx-checkpoints", "8"]
    both = turn("advice/similarity-and-8-checkpoints", 6)
    assert (both.outcome, both.n_cached) == ("restored", 974)


def test_swa_full_keeps_no_more_of_what_came_back_from_the_ram_cache_than_the_window() -> None:
    now, record = turn("advice/ram-cache-swa", 6), turn("advice/swa-full-ram-cache", 6)
    assert (now.cause, now.n_common, now.n_cached) == ("checkpoint-evicted", 332, 0)
    # the same turn under --swa-full: nothing gained, so it is no advice
    assert (record.outcome, record.n_common, record.n_cached) == ("checkpoint-reprefill", 332, 0)
    assert record.cause == "server-rule"
    assert "had come back from the RAM prompt cache" in record.explanation
    assert "swa-full" not in [fix.name for fix in now.fixes]
    assert "RAM prompt cache" in next(fix.text for fix in now.not_fixes if fix.name == "swa-full")
    assert [fix.name for fix in record.fixes] == ["give-each-conversation-a-slot", "without-swa-full"]


def test_swa_full_is_told_with_what_it_does_not_mend_where_prompts_are_saved() -> None:
    for name, told in (("advice/saved-prompts-swa", True), ("logs/b11549/swa/newconv_ck2", False)):
        texts = [fix.text for t in report(name).turns for fix in t.fixes if fix.name == "swa-full"]
        assert texts
        assert all(("came back from the RAM prompt cache" in text) is told for text in texts)


def test_at_the_default_level_no_checkpoint_is_missed_by_a_prompt_that_only_adds() -> None:
    """The client said cache_prompt false; older checkpoints of the slot had been pushed out, as always in a long chat."""
    record = turn("advice/cache-off-lv3", 3)
    assert (record.n_common, record.n_cached, record.cause) == (1109, 0, "unknown")
    assert [fix.name for fix in record.fixes] == ["send-cache-prompt"]


def test_the_chat_endpoint_is_advised_with_room_for_the_checkpoints_that_it_makes() -> None:
    (fix,) = turn("advice/raw-3-checkpoints", 5).fixes
    assert fix.name == "use-chat-endpoint"
    assert "--ctx-checkpoints 32 (the default; 3 now)" in fix.text


def test_a_clock_is_moved_behind_the_conversation_and_not_to_the_system_prompts_end() -> None:
    """At the system prompt's end it costs all that follows, every turn: played, 0 of 9,886 tokens were reused."""
    at_the_end, behind = report("advice/clock-end").turns, report("advice/clock-user").turns
    assert [turn.n_cached for turn in at_the_end] == [0] * 7
    assert {turn.cause for turn in at_the_end[1:]} == {"before-first-boundary"}
    for record in at_the_end[1:]:
        assert record.fixes[0].name == "keep-the-head-stable"
        assert "out of the system prompt, into the last user message" in record.fixes[0].text
    assert all((turn.n_cached or 0) > 0.8 * (turn.n_prompt or 0) for turn in behind[1:])


def test_a_smaller_spacing_and_room_are_advised_together_where_neither_does_alone() -> None:
    """b10566 thins out whenever it makes a checkpoint: at 8,192 apart no count keeps the one that was needed."""
    records, both = report("advice/b10566-edits-1-checkpoint").turns, report("advice/b10566-edits-32-checkpoints-256-apart").turns
    advised = [record for record in records if record.failed and record.fixes[0].name == "smaller-spacing"]
    assert [record.n_common for record in advised] == [1547, 1506]
    for record in advised:
        assert record.fixes[0].flags == ["--checkpoint-min-step", "256", "--ctx-checkpoints", "32"]
        assert "It takes both" in record.fixes[0].text
    assert not any(record.failed for record in both)


def test_a_spacing_of_half_the_log_s_own_is_tried_and_comes_true() -> None:
    """Played on b9713 with --checkpoint-min-step 128: 303 tokens reused, on either memory."""
    for memory in ("hybrid", "swa"):
        (record,) = [t for t in report(f"live/b9713/{memory}/thinning").turns if t.failed]
        assert record.fixes[0].flags == ["--checkpoint-min-step", "128"]
        assert "resumes at token 303" in record.fixes[0].text
