"""Speculation: accepted drafts that stay behind an answer's end, and what they hide."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlog import analyze
from ckptlog.records import TurnRecord

from .lines import Log


def drafted(log: Log, generated: int, extra: int, accepted: int = 900) -> None:
    """The last turn's release follows a line on its drafts, and leaves ``extra`` tokens behind the answer's end."""
    release = log.lines.pop()
    assert "stop processing" in release
    log.slot("print_timing", f"draft acceptance = 0.80000 ( {accepted} accepted /  {generated} generated), mean len =  3.10")
    log.held += extra
    log.slot("release", f"stop processing: n_tokens = {log.held}, truncated = 0")


def turns(tmp_path: Path, log: Log) -> list[TurnRecord]:
    path = tmp_path / "server.log"
    path.write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    return analyze(path).report.turns


def two_turns(generated: int, extra: int, common: int, *, first: int = 1400, at: int = 1396) -> Log:
    log = Log()
    log.turn(first, 0, generated=generated, after=[log.create(at, 1)])
    drafted(log, generated, extra)
    log.turn(common + 31, common, cached=at, generated=50, between=[log.check(at, common), log.restore(at)])
    return log


def test_what_was_drafted_beyond_the_answer_costs_the_answer(tmp_path: Path) -> None:
    """1,400 and 1,499 tokens, 2 more in the slot: the prompt keeps all that the client saw and parts at 2,899."""
    turn = turns(tmp_path, two_turns(1499, 2, 2899))[1]
    assert (turn.outcome, turn.severity, turn.cause) == ("checkpoint-reprefill", "costly", "draft-left-behind")
    assert (turn.trigger, turn.confidence, turn.n_lost) == ("appended", "derived", 1503)
    assert [fix.name for fix in turn.fixes] == ["no-speculation", "fewer-drafts"]
    assert any("n_tokens = 2900" in evidence.text for evidence in turn.evidence)


def test_a_lesser_loss_is_told_too(tmp_path: Path) -> None:
    """Half of the prompt and more was kept: restored, as ever, but with the words."""
    turn = turns(tmp_path, two_turns(1499, 2, 11_499, first=10_000, at=9996))[1]
    assert (turn.outcome, turn.failed, turn.cause, turn.trigger) == ("restored", False, None, "appended")
    assert "behind the answer's end" in turn.explanation
    assert [fix.name for fix in turn.fixes] == ["no-speculation", "fewer-drafts"]


@pytest.mark.parametrize(
    ("extra", "common"),
    [
        (2, 2897),  # within what the client saw: the client changed it
        (0, 2897),
        (1000, 2899),  # more than were accepted: not drafts alone
    ],
)
def test_where_the_client_changed_the_answer_it_is_not_the_drafts(tmp_path: Path, extra: int, common: int) -> None:
    turn = turns(tmp_path, two_turns(1499, extra, common))[1]
    assert turn.cause != "draft-left-behind"
    assert turn.trigger != "appended"


def low_level(*, processed: int, released: int, generated: int, sim: str) -> Log:
    """The default level: no prompt's length, no checkpoints."""
    log = Log(checkpoints=None)
    for task, prompt, n_gen, held, choice in (
        (1, 1400, 14_990, 16_391, "selected slot by LRU, t_last = -1"),
        (2, processed, generated, released, f"selected slot by LCP similarity, f_sim_best = {sim} (> 0.100 thold), f_keep = 1.000"),
    ):
        log.task = task
        log.slot("get_availabl", choice, task=-1)
        log.slot("launch_slot_", "processing task, is_child = 0")
        for what, n in (("prompt eval", prompt), ("       eval", n_gen)):
            log.slot("print_timing", f"{what} time = {n}.00 ms / {n} tokens (    1.00 ms per token,  1000.00 tokens per second)")
        log.slot("print_timing", "draft acceptance = 0.80000 (   40 accepted /    50 generated), mean len =  3.10")
        log.slot("release", f"stop processing: n_tokens = {held}, truncated = 0")
    log.lines = [line for line in log.lines if "checkpoints disabled" not in line]
    return log


def test_a_loss_that_the_drafts_cannot_hide(tmp_path: Path) -> None:
    """Drafts only make the release larger: of 16,383 tokens in common at most 1,397 can have been reused."""
    turn = turns(tmp_path, low_level(processed=15_025, released=16_471, generated=50, sim="0.998"))[1]
    assert (turn.outcome, turn.variant, turn.severity) == ("checkpoint-reprefill", "silent", "costly")
    assert turn.n_cached is None
    assert "from about token 1,397" in turn.headline


def test_a_small_loss_within_the_drafts_bounds(tmp_path: Path) -> None:
    turn = turns(tmp_path, low_level(processed=600, released=16_471, generated=50, sim="0.998"))[1]
    assert (turn.outcome, turn.failed) == ("restored", False)
