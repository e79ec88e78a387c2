"""The sizes of batches that the log does not print, and what is said where they are not the defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptlog.replay.verdicts import Verdicts
from ckptlog.replay.whatif import Flags, whatif
from ckptlog.timeline.model import Run

from .lines import Log

Analyse = Callable[..., Any]


class Raw(Log):
    """Raw prompts, in a log without the lines that tell -b and -ub."""

    def __init__(self) -> None:
        super().__init__(checkpoints=(32, 8192), n_ctx=8192)
        self.raw("I", "common_params_print_info: build 10600 (a1b2c3d4) with GNU 10.2.1 for Linux x86_64")
        self.listed: list[int] = []

    def prompt(self, n_prompt: int, starts: tuple[int, ...], *made: int, common: int = 0) -> Raw:
        """A prompt whose batches begin at ``starts``; checkpoints are made at ``made``."""
        first, search = starts[0], []
        if common:
            search = [self.check(n, common) for n in reversed(self.listed) if n > common or n == first]
            search.append(self.restore(first) if first else self.FORCED)
            search += [
                f"erased invalidated context checkpoint (pos_min = {n - 1}, pos_max = {n - 1}, n_tokens = {n}, "
                f"n_swa = 0, pos_next = {first}, size = 10.000 MiB)"
                for n in self.listed
                if n > first
            ]
        self.listed = [n for n in self.listed if n <= first]
        batches: list[str] = []
        for start in starts:
            if start != first:
                batches.append(f"cached n_tokens = {start}, memory_seq_rm [{start}, end)")
            if start in made:
                self.listed.append(start)
                batches.append(self.create(start, len(self.listed)))
        self.turn(n_prompt, common, cached=first, between=search, after=batches, generated=40)
        return self


def far_back() -> Raw:
    """-b 1024 -ub 1024: the nearest place lies 1,024 tokens before the first prompt's end."""
    log = Raw().prompt(1902, (0, 878, 1898), 878, 1898)
    return log.prompt(1911, (878, 887, 1907), 887, 1907, common=1880)


def small_batches() -> Raw:
    """-b 512: full batches of that size, and all places lie beyond the change."""
    log = Raw().prompt(1902, (0, 512, 1024, 1390, 1898), 1390, 1898)
    return log.prompt(1911, (0, 512, 1024, 1399, 1907), 1399, 1907, common=1200)


def sizes(analyse: Analyse, log: Raw) -> tuple[int | None, int | None]:
    run: Run = analyse(log.lines).timeline[0]
    return run.n_batch, run.n_ubatch


def test_the_sizes_are_learned_from_the_cuts_that_every_prompt_has(analyse: Analyse) -> None:
    assert sizes(analyse, far_back()) == (1024, 1024)
    assert sizes(analyse, small_batches()) == (512, 512)
    # -b 4096 -ub 2048: n_batch shows in full batches
    log = Raw().prompt(18200, (0, 4096, 8192, 9100, 13196, 16148, 18196), 9100, 16148, 18196)
    assert sizes(analyse, log) == (4096, 2048)


def test_a_cut_that_may_be_a_message_tells_no_size(analyse: Analyse) -> None:
    """One prompt with one place 1,024 before its end: nothing says that a larger batch would have gone on."""
    assert sizes(analyse, Raw().prompt(1902, (0, 878, 1898), 878, 1898)) == (None, None)


def test_no_number_is_given_that_rests_on_other_sizes_than_the_logs(analyse: Analyse) -> None:
    record = analyse(far_back().lines).report.turns[1]
    assert (record.cause, record.n_lost) == ("checkpoints-sparse", 1002)
    assert [fix.name for fix in record.fixes] == ["use-chat-endpoint"]
    assert "raw /completion prompts" in record.explanation
    assert "one long message" not in record.explanation


def test_raw_prompts_are_told_where_the_sizes_are_learned(analyse: Analyse) -> None:
    assert analyse(small_batches().lines).report.turns[1].cause == "no-user-boundary"


def test_a_replay_that_does_not_give_what_the_log_shows_gives_no_number(analyse: Analyse) -> None:
    """-ub 1024, and too little in the log to learn it from: under the default of 512 a turn would have gone otherwise."""
    analysis = analyse(far_back().lines)
    (run,) = analysis.timeline
    run.n_batch = run.n_ubatch = run.cuts = None
    answer = whatif([run], Flags(ctx_checkpoints=32), Verdicts(analysis.report))
    assert answer.reproduced.right < answer.reproduced.turns
    last = answer.turns[-1]
    assert (last.n_cached_whatif, last.n_saved, last.n_cached_whatif_range) == (None, None, (0, 1880))
    assert answer.summary.n_saved == 0
