"""The same client, played once more on a server with other flags: what was advised holds, and what was foretold came."""

from __future__ import annotations

import pytest

import ckptlog
from ckptlog.records import Report, TurnRecord
from ckptlog.replay.verdicts import Verdicts
from ckptlog.replay.whatif import Flags, WhatIf, whatif
from ckptlog.report.whatif import render_whatif
from tests.verdict.logs import DATA, report


def played(name: str) -> Report:
    return report(f"advice/{name}")


def ask(name: str, flags: Flags | None = None) -> WhatIf:
    analysis = ckptlog.analyze(DATA / "advice" / f"{name}.log.gz")
    return whatif(analysis.timeline, flags or Flags(), Verdicts(analysis.report))


def text(answer: WhatIf) -> str:
    return "\n".join(line.plain for line in render_whatif(answer, 80))


def costly(name: str) -> list[TurnRecord]:
    return [turn for turn in played(name).turns if turn.failed]


@pytest.mark.parametrize(
    ("log", "under", "flags"),
    [
        ("edits-1-checkpoint", "edits-10-checkpoints", Flags(10)),
        ("edits-1-checkpoint", "edits-6-checkpoints-64-apart", Flags(6, 64)),
        ("left-in-mid-prompt", "left-in-mid-prompt-3-checkpoints", Flags(3)),
        ("compacted-no-checkpoints", "compacted-3-checkpoints", Flags(3)),
        ("compacted-no-checkpoints", "compacted-32-checkpoints", Flags(32)),
    ],
)
def test_what_a_server_with_those_flags_reuses_lies_in_the_range_that_was_given(
    log: str, under: str, flags: Flags
) -> None:
    turns = ask(log, flags).turns
    real = played(under).turns
    assert [turn.n_prompt for turn in turns] == [turn.n_prompt for turn in real]
    for foretold, turn in zip(turns, real, strict=True):
        low, high = foretold.n_cached_whatif_range or (foretold.n_cached_whatif,) * 2
        assert low is not None
        assert high is not None
        assert turn.n_cached is not None
        assert low <= turn.n_cached <= high, turn.task


def test_a_smaller_spacing_is_not_recommended_on_messages_that_the_log_does_not_show() -> None:
    assert costly("edits-6-checkpoints-64-apart")  # (what six would do if there were no messages but those that were cut)
    assert not costly("edits-10-checkpoints")
    answer = ask("edits-1-checkpoint")
    assert answer.recommended is not None
    assert answer.recommended.saving_all == answer.recommended.count_alone == {"--ctx-checkpoints": 10}
    assert "? perhaps less" in text(answer)
    assert answer.settings is not None
    tighter = [item.summary for item in answer.settings if "--checkpoint-min-step" in item.flags]
    assert any(found.n_saved_range is not None and found.n_saved_range[0] < found.n_saved for found in tighter)


def test_of_a_log_without_checkpoints_so_many_are_recommended_as_the_messages_it_hides_may_take() -> None:
    assert len(costly("compacted-3-checkpoints")) == 2
    assert not costly("compacted-32-checkpoints")
    answer = ask("compacted-no-checkpoints")
    assert answer.recommended is not None
    for flags in (answer.recommended.saving_all, answer.recommended.cheapest):
        assert flags is not None
        assert 3 < int(flags["--ctx-checkpoints"]) <= 32
    assert "As far as the log shows" in text(answer)


def test_a_prompt_sent_again_goes_on_where_the_one_that_was_left_would_have_come_to() -> None:
    answer = ask("left-in-mid-prompt", Flags(3))
    again = answer.turns[6]
    # at 512 in the log, when its client left, and at 1,717 with the checkpoint that 3 of them keep
    assert (again.n_common, again.n_cached) == (512, 512)
    assert again.n_cached_whatif is None
    assert not again.costly_whatif
    assert played("left-in-mid-prompt-3-checkpoints").turns[6].n_cached == 1585


def test_where_nothing_is_certain_of_a_log_without_checkpoints_the_servers_default_is_recommended() -> None:
    analysis = ckptlog.analyze(DATA / "live" / "b11549" / "swa" / "no-checkpoints.log.gz")
    answer = whatif(analysis.timeline, Flags(), Verdicts(analysis.report))
    assert answer.recommended is not None
    assert answer.recommended.saving_all == {"--ctx-checkpoints": 32}


def test_of_a_log_in_which_nothing_is_costly_no_setting_is_recommended_as_saving_all() -> None:
    answer = ask("clock-user")
    assert not answer.summary.n_costly_now
    assert answer.recommended is not None
    assert answer.recommended.saving_all is None
