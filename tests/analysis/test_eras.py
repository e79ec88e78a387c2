"""Servers of nineteen builds from August 2025 on, each with what it answered: the figures agree whatever the era,
and what ckptlog takes a build to be holds the true one even where the log does not say it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import ckptlog
from ckptlog.cli.reading import read
from ckptlog.replay.verdicts import Verdicts
from ckptlog.replay.whatif import Flags, whatif
from ckptlog.timeline.ranges import whole_of
from tests.live.compare import compare
from tests.live.fixtures import Fixture, stored

FOLDER = Path(__file__).parents[1] / "data" / "eras"
FIXTURES = list(stored(FOLDER))
#: the lines in which a build says its number, and answers that repeat it
SAYS_ITS_BUILD = re.compile(rb"(?m)^.*(?:\bbuild: \d+|build_info).*\n")
FINGERPRINT = re.compile(rb'"system_fingerprint":"[^"]*"')


def by_name(name: str) -> Fixture:
    return next(fixture for fixture in FIXTURES if fixture.name == name)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_figures_are_what_the_server_answered(fixture: Fixture) -> None:
    analysis = ckptlog.analyze(fixture.log)
    assert analysis.drift == []
    result = compare(fixture.truth(), analysis.report, fixture.name)
    assert result.disagreements == []
    assert result.figures > 20


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_the_bracket_of_a_build_that_is_not_named_holds_it(fixture: Fixture, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(FINGERPRINT.sub(b"", SAYS_ITS_BUILD.sub(b"", gzip.decompress(fixture.log.read_bytes()))))
    build = int(fixture.truth().build.removeprefix("b"))
    (run,) = ckptlog.analyze(log).report.runs
    assert run.build is None
    assert (run.build_min or 0) <= build <= (run.build_max or build), (run.build_min, run.build_max)


def test_cells_that_run_out_end_the_replay_and_nothing_else() -> None:
    """Two slots share a unified cache, and the server purges one when its cells are full; it does not say of which
    tokens."""
    log = str(by_name("b7551/swa/f25-lv4").log)
    analysis = read([log], timeline=True)
    answer = whatif(analysis.timeline, Flags(), Verdicts(analysis.report))
    assert answer.reproduced.doubtful
    assert None in {parting.n_cached_model for parting in answer.reproduced.partings}


def test_a_request_without_reuse_after_a_saved_prompt_came_in() -> None:
    """Task 211 forbids reuse, and 362 tokens of it came in from the RAM cache: no other conversation took the slot."""
    turns = ckptlog.analyze(by_name("b7551/swa/f13-lv4").log).report.turns
    turn = next(turn for turn in turns if turn.task == 211)
    assert (turn.n_common, turn.n_common_slot, turn.cause) == (362, 289, "cache-off")


def test_the_saved_prompt_that_came_in_is_the_one_of_the_printed_shares() -> None:
    """Chat C comes back: all of a saved prompt is in it (f_keep 1.000), and not of the one a limit left over."""
    log = FOLDER.with_name("logs") / "b8672" / "swa" / "pcache_tiny.log.gz"
    turn = next(turn for turn in ckptlog.analyze(log).report.turns if turn.task == 137)
    assert (turn.n_common, turn.n_cached, turn.trigger) == (242, 242, "appended")


@pytest.mark.parametrize(
    ("ratio", "parts", "whole"),
    [
        (1.0, (999, 999), 999),
        (0.928, (362, 362), 390),
        (1.0, (5000, 5000), None),
        (0.5, (100, 104), None),
        (0.0, (0, 0), None),
    ],
)
def test_what_a_part_and_its_share_say_of_the_whole(
    ratio: float, parts: tuple[int, int], whole: int | None
) -> None:
    assert whole_of(ratio, parts) == whole


def test_before_the_ram_cache_nothing_is_swapped_in() -> None:
    """Slots are taken without a look at what they hold (similarity 0), and no saved prompt can have come in."""
    turns = {turn.task: turn for turn in ckptlog.analyze(by_name("b6628/swa/f3-lv4").log).report.turns}
    assert (turns[94].n_common_slot, turns[94].trigger) == (455, "appended")
    # this one forbade reuse, which nothing tells from a prompt with nothing in common
    assert (turns[162].n_common, turns[162].trigger) == (None, None)
