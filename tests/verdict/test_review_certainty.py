"""What a rare event, or a setting, does not change: an ordinary turn beside it keeps its cause and its advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .lines import Log

Analyse = Callable[..., Any]


def batch(start: int) -> str:
    return f"cached n_tokens = {start}, memory_seq_rm [{start}, end)"


# ------------------------------------------------------------------ a busy slot asked for by number


def evicted() -> Log:
    log = Log(checkpoints=(2, 0))
    log.turn(10_000, 0, after=[
        log.create(4000, 1, 2), log.create(9_484, 2, 2), log.erase_old(4000), log.create(9_996, 2, 2),
    ])  # fmt: skip
    log.turn(10_100, 5000, cached=0, between=[log.check(9_996, 5000), log.check(9_484, 5000), Log.FORCED])
    return log


def swap(log: Log) -> list[str]:
    """While the last turn generates, its slot is asked for by number, and a saved prompt is loaded into it."""
    at = max(i for i, line in enumerate(log.lines) if "prompt eval time" in line)
    stamp = log.lines[at].split(" I ")[0]
    lines = [
        f"slot get_availabl: id  0 | task {log.task} | selected slot by id (0)",
        f"slot get_availabl: id  0 | task {log.task} |  - skipping, is_processing = 1",
        "srv  get_availabl: updating prompt cache",
        "srv          load:  - looking for better prompt, base f_keep = 0.016, f_sim = 0.015",
        "srv          load:  - found better prompt with f_keep = 1.000, f_sim = 0.918",
    ]
    return [*log.lines[:at], *(f"{stamp} I {line}" for line in lines), *log.lines[at:]]


def test_what_was_swapped_in_behind_the_search_is_not_why_it_found_nothing(analyse: Analyse) -> None:
    plain = analyse(evicted().lines).report.turns[-1]
    spoilt = analyse(swap(evicted())).report.turns[-1]
    assert plain.cause == "checkpoint-evicted"
    for name in ("outcome", "cause", "trigger", "n_common", "n_cached", "n_lost"):
        assert getattr(spoilt, name) == getattr(plain, name), name
    assert "may be off" in spoilt.explanation
    assert [fix.name for fix in spoilt.fixes[: len(plain.fixes)]] == [fix.name for fix in plain.fixes]
    assert "free-slot-choice" in [fix.name for fix in spoilt.fixes]
    assert any("found better prompt" in quote.text for quote in spoilt.evidence)


# ------------------------------------------------------------------ what a spacing hides


def long_message(spacing: int) -> Log:
    """A first user message at 2,000 that goes on to the prompt's end; the edit is at 15,000."""
    log = Log(checkpoints=(32, spacing))
    log.raw("I", "llama_context: n_batch               = 2048")
    log.raw("I", "llama_context: n_ubatch              = 512")
    log.turn(20_000, 0, after=[
        batch(2000), log.create(2000, 1), *(batch(at) for at in range(4048, 19_484, 2048)),
        batch(19_484), log.create(19_484, 2), batch(19_996), log.create(19_996, 3),
    ])  # fmt: skip
    search = [log.check(n, 15_000) for n in (19_996, 19_484, 2000)]
    log.turn(20_100, 15_000, cached=2000, between=[*search, log.restore(2000)])
    return log


@pytest.mark.parametrize(("spacing", "hides"), [(256, False), (12_000, True)])
def test_a_spacing_hides_no_message_that_begins_further_behind_the_checkpoint(
    analyse: Analyse, spacing: int, hides: bool
) -> None:
    edit = analyse(long_message(spacing).lines).report.turns[-1]
    assert (edit.cause, edit.n_common, edit.n_cached) == ("checkpoints-sparse", 15_000, 2000)
    assert ("would not show" in edit.explanation) is hides
    assert ("smaller-spacing" in [fix.name for fix in edit.fixes]) is hides
    assert "split-long-messages" in [fix.name for fix in edit.fixes]


# ------------------------------------------------------------------ who cleared a slot


def back_again(*between: str) -> Log:
    """A conversation of 10,009 tokens loses slot 0, and a prompt of its length finds the slot empty."""
    log = Log(n_slots=2)
    log.turn(10_000, 0)
    for text in between:
        log.raw("I", text)
    log.held = 0
    log.turn(10_100, 0)
    return log


OTHER = [
    "slot get_availabl: id  1 | task -1 | selected slot by LRU, t_last = -1",
    "slot launch_slot_: id  1 | task 5 | processing task, is_child = 0",
    "slot process_sing: id  0 | task -1 | saving idle slot to prompt cache",
    "srv   prompt_save:  - saving prompt with length 10009, total state size = 20.000 MiB (draft: 0.000 MiB)",
]
CLEARED = "slot prompt_clear: id  0 | task -1 | clearing prompt with 10009 tokens"


def test_what_the_server_clears_from_an_idle_slot_is_not_its_clients_doing(analyse: Analyse) -> None:
    too_big = "srv         alloc:  - prompt state size 20.000 MiB exceeds cache size limit 16.000 MiB, skipping"
    back = analyse(back_again(*OTHER, too_big, CLEARED).lines).report.turns[-1]
    assert back.outcome == "cold"
    assert "10,009 tokens were too large for the RAM prompt cache" in back.explanation
    assert "--cache-ram" in back.explanation
    assert "A client does that" not in back.explanation


def test_what_an_idle_slot_held_is_in_the_ram_cache_where_a_longer_entry_begins_with_it(analyse: Analyse) -> None:
    already = "srv         alloc:  - prompt is already in the cache, skipping"
    back = analyse(back_again(*OTHER, already, CLEARED).lines).report.turns[-1]
    assert "cleared" not in back.explanation


def test_a_slot_cleared_behind_an_error_is_not_its_clients_doing(analyse: Analyse) -> None:
    log = back_again(CLEARED)
    assert "A client does that" in analyse(log.lines).report.turns[-1].explanation
    at = next(i for i, line in enumerate(log.lines) if "stop processing" in line)
    stamp = log.lines[at].split(" I ")[0]
    failed = f"{stamp} E srv    send_error: task id = 1, error: Context size has been exceeded."
    back = analyse([*log.lines[:at], failed, *log.lines[at:]]).report.turns[-1]
    assert "10,009 tokens were cleared from a slot when its request ended" in back.explanation
    assert "A client does that" not in back.explanation
