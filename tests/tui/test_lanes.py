"""Turns and checkpoints by slot, from real logs."""

from __future__ import annotations

import pytest

from ckptlog.analysis import analyze
from ckptlog.records import Report
from ckptlog.tui.book import Book
from ckptlog.tui.lanes import Lane
from tests.tui.conftest import EVICTED, FOUR_SLOTS, LOGS, REJECTED


def lanes_of(path: object) -> tuple[Report, list[Lane]]:
    report = analyze(str(path)).report
    return report, list(Book(report).lanes.values())


def test_the_story_of_an_evicted_checkpoint() -> None:
    _, (lane,) = lanes_of(EVICTED)
    failed = next(item for item in lane.turns if item.turn.failed)
    (needed,) = [
        life for life in lane.blamed(failed.turn) if life.record.n_tokens <= (failed.turn.n_common or 0)
    ]
    assert needed.record.fate == "evicted"
    assert lane.turns[needed.born].number == 1
    assert needed.died is not None
    assert lane.turns[needed.died].number == 2
    assert lane.index[failed.number] > needed.died


@pytest.mark.parametrize(
    "name", ["newconv_ck2", "pcache_on", "save_restore", "fifo", "kv_full", "reject", "ncmpl_shift"]
)
def test_the_lives_agree_with_the_lists_of_the_turns(name: str) -> None:
    """What a slot held at the end of a turn is the same whether told by the turn or by the lives."""
    _, lanes = lanes_of(LOGS / "b11549" / "hybrid" / f"{name}.log.gz")
    compared = 0
    for lane in lanes:
        for index, item in enumerate(lane.turns):
            listed = item.turn.checkpoints
            # a list that is changed between two turns counts to the later one
            if listed is None or (index + 1 < len(lane.turns) and _differs(listed.after, lane, index + 1)):
                continue
            alive = sorted(life.record.n_tokens for life in lane.lives_at(index) if life.after(index))
            assert alive == sorted(listed.after), (lane.name, item.number)
            compared += 1
    assert compared >= 2


def _differs(after: list[int], lane: Lane, index: int) -> bool:
    following = lane.turns[index].turn.checkpoints
    return following is None or sorted(following.before) != sorted(after)


def test_every_turn_is_in_one_lane() -> None:
    report, lanes = lanes_of(FOUR_SLOTS)
    numbers = [item.number for lane in lanes for item in lane.turns]
    assert sorted(numbers) == list(range(1, len(report.turns) + 1))
    assert [lane.name for lane in lanes] == ["slot 0", "slot 1", "slot 2", "slot 3"]


def test_a_refusal_does_not_count_as_used_context() -> None:
    _, (lane,) = lanes_of(REJECTED)
    assert lane.n_ctx is not None
    assert max(item.turn.n_prompt or 0 for item in lane.turns) > lane.n_ctx
    assert lane.used <= lane.n_ctx
