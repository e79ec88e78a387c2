"""What is advised was tried: the same client, played once more on a server with the flags that a report names."""

from __future__ import annotations

from .logs import turn


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
    assert ["--slot-prompt-similarity", "0.1"] in [fix.flags for fix in record.fixes]
    assert ["--ctx-checkpoints", "8"] in [fix.flags for fix in record.fixes]
    both = turn("advice/similarity-and-8-checkpoints", 6)
    assert (both.outcome, both.n_cached) == ("restored", 974)
