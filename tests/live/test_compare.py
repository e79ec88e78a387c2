"""The comparer itself: it must object when a figure, an outcome or a checkpoint list is wrong."""

from __future__ import annotations

import msgspec
import pytest

import ckptlog
from ckptlog.records import Report
from tests.live.compare import compare
from tests.live.fixtures import FOLDER, Fixture
from tests.live.truth import Request, SlotContents, Truth

FIXTURE = Fixture(FOLDER / "b11549" / "hybrid" / "deep-edit.log.gz")


@pytest.fixture(scope="module")
def report() -> Report:
    result: Report = ckptlog.analyze(FIXTURE.log).report
    return result


@pytest.fixture
def copy(report: Report) -> Report:
    """A report of one's own to spoil."""
    return msgspec.json.decode(msgspec.json.encode(report), type=Report)


@pytest.fixture
def truth() -> Truth:
    return FIXTURE.truth()


def test_agrees_with_an_honest_report(truth: Truth, report: Report) -> None:
    result = compare(truth, report)
    assert result.disagreements == []
    assert result.turns == len(truth.turns()) == 7
    assert result.gaps == 0
    assert result.checkpoints_proved >= 1


@pytest.mark.parametrize(
    "figure", ["n_prompt", "n_cached", "n_processed", "n_generated", "slot", "n_common_slot"]
)
def test_objects_to_a_wrong_figure(truth: Truth, copy: Report, figure: str) -> None:
    setattr(copy.turns[5], figure, getattr(copy.turns[5], figure) + 1)
    assert any(f"{figure} is" in d for d in compare(truth, copy).disagreements)


def test_objects_to_a_missing_figure_at_a_level_that_shows_it(truth: Truth, copy: Report) -> None:
    copy.turns[2].n_cached = None
    assert any("n_cached is None" in d for d in compare(truth, copy).disagreements)


def test_objects_to_a_turn_too_few_and_one_too_many(truth: Truth, copy: Report) -> None:
    last = copy.turns.pop()
    assert any("has no turn" in d for d in compare(truth, copy).disagreements)
    copy.turns += [last, msgspec.structs.replace(last, task=999)]
    assert any("task 999" in d and "belongs to no request" in d for d in compare(truth, copy).disagreements)


def test_objects_to_a_failure_that_nobody_saw(truth: Truth, copy: Report) -> None:
    copy.turns[1].outcome = "limit-stop"
    assert any("outcome is limit-stop" in d for d in compare(truth, copy).disagreements)


def test_objects_to_a_checkpoint_that_would_have_served_better(truth: Truth, copy: Report) -> None:
    edited = copy.turns[5]
    assert edited.checkpoints is not None
    assert edited.n_common is not None
    edited.checkpoints.before = [*edited.checkpoints.before, edited.n_common]
    assert any("would resume at" in d for d in compare(truth, copy).disagreements)


def test_objects_to_a_lost_checkpoint(truth: Truth, copy: Report) -> None:
    edited = copy.turns[5]
    assert edited.checkpoints is not None
    edited.checkpoints.before = [n for n in edited.checkpoints.before if n != edited.n_cached]
    assert any("would resume at" in d for d in compare(truth, copy).disagreements)


def _request(seq: int, prompt: list[int], answer: list[int], **more: object) -> Request:
    fields: dict[str, object] = {
        "seq": seq,
        "step": "",
        "endpoint": "",
        "server": 0,
        "t0": float(seq),
        "t1": float(seq),
        "slot": 0,
        "n_prompt": len(prompt),
        "predicted_n": len(answer),
        "end": "eos",
        "prompt_ids": prompt,
        "answer_ids": answer,
        **more,
    }
    return msgspec.convert(fields, Request)


def test_a_slot_holds_the_prompt_and_all_but_the_last_token_of_the_answer() -> None:
    first = _request(0, [1, 2, 3], [4, 5, 6])
    second = _request(1, [1, 2, 3, 4, 5, 6, 7], [8])
    SlotContents().follow([first, second])
    assert first.lcp_slot == 0
    assert second.lcp_slot == 5


def test_a_refused_request_leaves_the_slot_as_it_was_and_a_shift_makes_it_unknown() -> None:
    requests = [
        _request(0, [1, 2, 3], [4, 5]),
        _request(1, [9, 9], [], end="rejected"),
        _request(2, [1, 2, 3, 4, 8], [5], end="context shift"),
        _request(3, [1, 2, 3], [4]),
    ]
    SlotContents().follow(requests)
    assert [r.lcp_slot for r in requests] == [0, 0, 4, None]
