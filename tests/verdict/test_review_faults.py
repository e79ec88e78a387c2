"""Known faults of builds that no recorded log shows, on turns made by hand."""

from __future__ import annotations

import pytest

from ckptlog.server.builds import faults
from ckptlog.timeline.model import Check, Checkpoint, Quote, Run, Turn
from ckptlog.timeline.starts import Starts
from ckptlog.verdict.causes_drafts import DraftLeftBehind
from ckptlog.verdict.faults import fault_of, told
from ckptlog.verdict.judge import judge


def swa_run(build: int, window: int = 1024) -> Run:
    return Run(
        0,
        0,
        1,
        99,
        build_min=build,
        build_max=build,
        has_swa_cache=True,
        n_swa=window,
        n_ctx_slot=8192,
        start_seen=True,
    )


def edit_within_the_window(run: Run) -> Turn:
    """987 tokens in common of 1,000 held; a checkpoint [0, 961] in the list; the search refused it."""
    turn = Turn(3, 0, 0, 0, 40, 50, 80, ended="release", start_seen=True, released=True)
    turn.n_prompt, turn.n_held, turn.n_common, turn.n_cached = 1100, 1000, 987, 0
    turn.n_processed, turn.n_generated, turn.prompt_ms = 1100, 5, 2200.0
    turn.basis = {"n_common": "observed", "n_cached": "observed"}
    turn.list_visible = turn.before_known = True
    turn.starts = Starts(first_born=962)
    turn.before = [Checkpoint(962, 0, 961, 10.0, 0, 0, 20, 30)]
    turn.checks = [Check(55, "Checking checkpoint with [0, 961] against 0...", 0, 961, 0)]
    turn.forced = Quote(56, "forcing full prompt re-processing due to lack of cache data")
    turn.batch_starts = [0]
    return turn


def test_a_checkpoint_from_token_0_that_the_build_refuses() -> None:
    """Issue 21510: the checkpoint is there, and no flag and no client is to blame."""
    run = swa_run(8672)
    verdict = judge(run, edit_within_the_window(run))
    assert (verdict.outcome, verdict.severity, verdict.cause) == (
        "checkpoint-reprefill",
        "costly",
        "server-rule",
    )
    assert "known fault of b6751 to b8672 (issue 21510, mended in b8929)" in verdict.explanation
    assert [fix.name for fix in verdict.fixes] == ["upgrade-server", "swa-full"]
    assert "b8929" in verdict.fixes[0].text
    says = next(evidence.says for evidence in verdict.evidence if evidence.line == 55)
    assert says.startswith("this checkpoint holds everything from token 0"), "it does reach back: the rule refused it"


def test_the_build_that_mends_it_is_not_blamed() -> None:
    run = swa_run(8929)
    assert "known fault" not in judge(run, edit_within_the_window(run)).explanation


def test_a_checkpoint_swept_away_by_the_turn_that_restored_it() -> None:
    """Up to b9592 a state beyond the common prefix is restored, and erased at once."""
    run = swa_run(8672, window=64)
    turn = edit_within_the_window(run)
    turn.checks, turn.before = [], []
    turn.dead = [
        Checkpoint(
            900,
            700,
            899,
            10.0,
            0,
            0,
            20,
            30,
            fate="invalidated",
            fate_line=44,
            fate_task=30,
            restored_by=[30],
        )
    ]
    verdict = judge(run, turn)
    assert verdict.cause == "checkpoint-invalidated"
    assert "known fault of b6751 to b9592" in verdict.explanation
    assert verdict.fixes[0].name == "upgrade-server"


def test_a_crash_while_a_checkpoint_was_loaded() -> None:
    run = Run(0, 0, 1, 99, build_min=10068, build_max=10068, has_recurrent=True, has_attention=True)
    turn = Turn(1, 0, 0, 0, 40, 50, 80, ended="restart", start_seen=True)
    turn.n_prompt = 500
    turn.checks = [Check(55, "checking checkpoint with [99, 99] against 100...", 99, 99, 100)]
    verdict = judge(run, turn)
    assert (verdict.outcome, verdict.variant) == ("error", "crash")
    assert "b9113 to b11434 (mended in b11549)" in verdict.explanation
    assert verdict.fixes[0].name == "upgrade-server"
    turn.checks = []
    assert "known fault" not in judge(run, turn).explanation


def edit_of_a_hybrid(run: Run) -> Turn:
    """3,000 tokens in common, and the only checkpoint before them at 200; no message begins in between."""
    turn = Turn(2, 0, 0, 0, 40, 50, 80, ended="release", start_seen=True, released=True)
    turn.n_prompt, turn.n_held, turn.n_common, turn.n_cached = 3400, 3300, 3000, 200
    turn.n_processed, turn.n_generated, turn.prompt_ms = 3200, 5, 6400.0
    turn.basis = {"n_common": "observed", "n_cached": "observed"}
    turn.list_visible = turn.before_known = True
    turn.starts = Starts(first_born=200)
    turn.before = [Checkpoint(200, 199, 199, 10.0, 0, 0, 20, 30)]
    turn.restored = turn.before[0]
    turn.restored_quote = Quote(56, "restored context checkpoint (pos_min = 199, ...)")
    turn.batch_starts = [200]
    return turn


def hybrid_run(build: int) -> Run:
    return Run(0, 0, 1, 99, build_min=build, build_max=build, has_recurrent=True, has_attention=True, start_seen=True)


@pytest.mark.parametrize(("build", "has_it"), [(9771, True), (9976, True), (9981, False), (11549, False)])
def test_near_end_checkpoints_that_obey_the_spacing(build: int, has_it: bool) -> None:
    """From b9771 to b9976 most turns made no checkpoint at all at the default spacing."""
    run = hybrid_run(build)
    verdict = judge(run, edit_of_a_hybrid(run))
    assert verdict.cause == "checkpoints-sparse"
    assert ("known fault of b9771 to b9976 (mended in b9981)" in verdict.explanation) is has_it
    assert ("upgrade-server" in [fix.name for fix in verdict.fixes]) is has_it


@pytest.mark.parametrize(("build", "wrong"), [(6628, True), (6751, False)])
def test_the_line_of_an_eviction_that_shows_another_checkpoint(build: int, wrong: bool) -> None:
    """Up to b6628 the line names the newest entry, although the oldest goes: its numbers are not to be trusted."""
    run = swa_run(build, window=64)
    turn = edit_within_the_window(run)
    turn.checks, turn.before = [], []
    text = "SWA checkpoint erase, pos_min = 900, pos_max = 1999, size = 10.000 MiB"
    turn.dead = [
        Checkpoint(900, 0, 899, 10.0, 0, 0, 20, 30, fate="evicted", fate_line=44, fate_task=30, fate_text=text)
    ]
    verdict = judge(run, turn)
    assert verdict.cause == "checkpoint-evicted"
    says = next(evidence.says for evidence in verdict.evidence if evidence.line == 44)
    assert "the checkpoint at 900" in says
    assert ("builds up to b6628 print the numbers of the newest one here" in says) is wrong


def test_a_fault_is_told_of_its_memories_only() -> None:
    assert fault_of(swa_run(8672), "stale-after-shift") is not None
    assert fault_of(hybrid_run(8672), "stale-after-shift") is not None, "a slot file's stale list is restored there too"
    assert fault_of(hybrid_run(8672), "start-not-matched") is None, "only a window reaches back to token 0"


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_is_told_of_its_builds_only(fault: object) -> None:
    found = next(f for f in faults() if f is fault)
    inside = Run(0, 0, 1, 9, build_min=found.last, build_max=found.last)
    unknown = Run(0, 0, 1, 9, build_min=0, build_max=None)
    assert fault_of(inside, found.name) == (found, True)
    if found.mended is None:
        later = Run(0, 0, 1, 9, build_min=found.last + 1, build_max=None)
        assert fault_of(later, found.name) == (found, False)
        assert told(later, found.name)[1] == []
    else:
        mended = Run(0, 0, 1, 9, build_min=found.mended, build_max=None)
        assert fault_of(mended, found.name) is None
        assert told(mended, found.name) == ("", [])
    assert fault_of(unknown, found.name) == (found, False)
    assert told(unknown, found.name)[0].startswith("This is probably a known fault")


def test_the_rules_own_text_names_the_tables_numbers() -> None:
    fault = next(fault for fault in faults() if fault.name == "drafts-left-behind")
    text = " ".join(DraftLeftBehind.doc().split())
    assert f"issue {fault.issue}; pull request {fault.pull} would mend it): no build up to b{fault.last} is" in text


def test_an_unknown_fault_is_an_error() -> None:
    with pytest.raises(KeyError, match="no-such-fault"):
        fault_of(Run(0, 0, 1, 9), "no-such-fault")
