"""Each cause on a log made for it, and beside it the log in which one thing is different and it must not be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .lines import Log

Analyse = Callable[..., Any]


def cause(analyse: Analyse, log: Log) -> str | None:
    found: str | None = analyse(log.lines).report.turns[-1].cause
    return found


def edited(log: Log, *search: str, common: int = 5000, cached: int = 0, n_prompt: int = 10_100) -> Log:
    log.turn(n_prompt, common, cached=cached, between=search)
    return log


def test_checkpoints_disabled(analyse: Analyse) -> None:
    log = Log(checkpoints=None)
    log.turn(10_000, 0)
    assert cause(analyse, edited(log, Log.FORCED)) == "checkpoints-disabled"
    log = Log()
    log.turn(10_000, 0, after=[log.create(9_996, 1)])
    assert cause(analyse, edited(log, log.check(9_996, 5000), Log.FORCED)) != "checkpoints-disabled"


def test_cache_off(analyse: Analyse) -> None:
    """No search was made although much was in common; a search shows that the request allowed reuse."""
    log = Log()
    log.turn(10_000, 0)
    assert cause(analyse, edited(log)) == "cache-off"
    log = Log()
    log.turn(10_000, 0)
    assert cause(analyse, edited(log, Log.FORCED)) != "cache-off"


def test_checkpoint_evicted(analyse: Analyse) -> None:
    def log(position: int) -> Log:
        log = Log(checkpoints=(2, 0))
        log.turn(10_000, 0, after=[
            log.create(position, 1, 2), log.create(9_484, 2, 2), log.erase_old(position), log.create(9_996, 2, 2),
        ])  # fmt: skip
        return edited(log, log.check(9_996, 5000), log.check(9_484, 5000), Log.FORCED)

    report = analyse(log(4000).lines).report
    turn = report.turns[-1]
    assert turn.cause == "checkpoint-evicted"
    (dead,) = (c for c in report.checkpoints if c.fate == "evicted")
    assert any(quote.line == dead.fate_line for quote in turn.evidence)
    assert "4,000" in turn.explanation
    # one that lies beyond the divergence would not have served
    assert cause(analyse, log(6000)) != "checkpoint-evicted"


def test_checkpoint_thinned(analyse: Analyse) -> None:
    def log(position: int) -> Log:
        log = Log()
        log.turn(10_000, 0, after=[log.create(position, 1), log.create(9_996, 2)])
        log.turn(11_000, 10_009, after=[
            f"erasing context checkpoint too close to an earlier one (pos_min = {position - 1}, pos_max = {position - 1}, "
            f"n_tokens = {position}, size = 10.000 MiB)"
        ])  # fmt: skip
        return edited(log, log.check(9_996, 5000), Log.FORCED)

    assert cause(analyse, log(4000)) == "checkpoint-thinned"
    assert cause(analyse, log(6000)) != "checkpoint-thinned"


def test_checkpoint_invalidated(analyse: Analyse) -> None:
    """A side request sweeps the list; what comes back later needs what was swept."""
    def log(second: int) -> Log:
        log = Log()
        log.turn(10_000, 0, after=[log.create(4000, 1), log.create(9_996, 2)])
        log.turn(10_100, 5000, cached=4000, between=[log.check(9_996, 5000), log.restore(4000), (
            "erased invalidated context checkpoint (pos_min = 3999, pos_max = 3999, n_tokens = 4000, n_swa = 0, "
            "pos_next = 0, size = 10.000 MiB)"
        )])  # fmt: skip
        return edited(log, Log.FORCED, common=second)

    assert cause(analyse, log(5000)) == "checkpoint-invalidated"
    assert cause(analyse, log(3000)) != "checkpoint-invalidated"


def test_shift_cleared(analyse: Analyse) -> None:
    def log(*after: str) -> Log:
        log = Log(n_ctx=12_000)
        log.turn(10_000, 0, after=[log.create(4000, 1), log.create(9_996, 2), *after], generated=100)
        return edited(log, Log.FORCED)

    assert cause(analyse, log("slot context shift, n_keep = 6000, n_left = 5999, n_discard = 2999")) == "shift-cleared"
    assert cause(analyse, log()) != "shift-cleared"


def test_cache_load_failed(analyse: Analyse) -> None:
    def log(*before: str) -> Log:
        log = Log()
        log.turn(10_000, 0, after=[log.create(9_996, 1)])
        log.turn(10_100, 5000, cached=0, before=before, between=[Log.FORCED])
        return log

    assert cause(analyse, log()) != "cache-load-failed"
    failed = analyse(log("failed to load prompt from cache").lines).report.turns[-1]
    # the slot was cleared: nothing was in common with it any more
    assert failed.outcome == "cold" or failed.cause == "cache-load-failed"


RESTORE_FAILED = "failed to restore context checkpoint (pos_min = 4999, pos_max = 4999, n_tokens = 5000, size = 10.000 MiB)"


def test_restore_failed(analyse: Analyse) -> None:
    def log(*failed: str) -> Log:
        log = Log()
        log.turn(10_000, 0, after=[log.create(5_000, 1), log.create(9_996, 2)])
        log.turn(10_100, 6000, cached=0, between=[log.check(9_996, 6000), log.check(5_000, 6000), *failed, Log.FORCED])
        return log

    assert cause(analyse, log()) != "restore-failed"
    turn = analyse(log(RESTORE_FAILED).lines).report.turns[-1]
    assert (turn.cause, turn.confidence) == ("restore-failed", "observed")
    shown = {evidence.says: evidence.text for evidence in turn.evidence}
    assert "[4999, 4999]" in shown["this checkpoint fits"]
    assert RESTORE_FAILED in shown["but its state could not be put back"]
    assert not any(fix.flags for fix in turn.fixes), "no flag is to blame"


def test_before_first_boundary(analyse: Analyse) -> None:
    """Every checkpoint ever made lies behind the change, a user message's start among them."""
    def log(first: int) -> Log:
        log = Log(checkpoints=(32, 0))
        log.turn(10_000, 0)
        at = next(i for i, line in enumerate(log.lines) if "cached n_tokens = 0," in line) + 1
        head = log.lines[at - 1].split(" I ")[0]
        log.lines[at:at] = [
            f"{head} I slot   operator(): id  0 | task 1 | cached n_tokens = {n}, memory_seq_rm [{n}, end)" for n in (first, first + 2048)
        ] + [f"{head} I slot create_check: id  0 | task 1 | {log.create(first, 1)}"]
        return edited(log, log.check(first, 900), Log.FORCED, common=900)

    assert cause(analyse, log(1500)) == "before-first-boundary"
    assert cause(analyse, log(500)) != "before-first-boundary"


def test_no_cause_without_a_beginning(analyse: Analyse) -> None:
    """A log that begins in mid-run proves nothing of what was in the list: unknown, and what to capture."""
    log = Log()
    log.turn(10_000, 0, after=[log.create(9_996, 1)])
    edited(log, log.check(9_996, 5000), Log.FORCED)
    second = next(i for i, line in enumerate(log.lines) if "checking sim" in line)
    (turn,) = analyse(log.lines[second:]).report.turns
    assert (turn.outcome, turn.cause, turn.confidence) == ("checkpoint-reprefill", "unknown", "inferred")
    assert turn.missing


def test_a_cause_comes_with_the_lines_that_show_it(analyse: Analyse) -> None:
    log = Log()
    log.turn(10_000, 0, after=[log.create(9_996, 1)])
    edited(log, log.check(9_996, 5000), Log.FORCED)
    turn = analyse(log.lines).report.turns[-1]
    for quote in turn.evidence:
        assert log.lines[quote.line - 1] == quote.text
        assert quote.says
    assert any("forcing full" in quote.text for quote in turn.evidence)


def test_a_short_prompt_can_lose_little(analyse: Analyse) -> None:
    """How much was in common is not known, but not more than the prompt: harmless."""
    def log(n_prompt: int) -> Any:
        log = Log()
        log.turn(10_000, 0)
        log.turn(n_prompt, 5, cached=0, between=[Log.FORCED])
        lines = [line for line in log.lines if "sim" not in line or "LCP" in line]
        return analyse([line for line in lines if "selected slot" not in line]).report.turns[-1]

    assert (log(30).n_common, log(30).outcome, log(30).severity) == (None, "checkpoint-reprefill", "harmless")
    assert log(3000).severity is None
