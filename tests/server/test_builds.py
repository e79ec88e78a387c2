"""The build table: brackets, options, log levels, faults."""

from __future__ import annotations

import itertools

import pytest

from ckptlog.server import builds
from ckptlog.server.rules import edges, eras, rules_at, rules_for


def test_every_choice_is_in_order_and_says_where_it_changed() -> None:
    for name, rows in builds.table()["choice"].items():
        firsts = [row["first"] for row in rows]
        assert firsts == sorted(set(firsts)), name
        assert firsts[0] == 0, name
        for before, row in itertools.pairwise(rows):
            assert before["first"] <= row["after"] < row["first"], (name, row)


@pytest.mark.parametrize(
    ("flag", "low", "high", "known"),
    [
        ("--checkpoint-min-step", 9310, None, True),
        ("--checkpoint-min-step", 8352, 9305, False),
        ("--checkpoint-min-step", 9246, None, None),
        ("--checkpoint-min-step", 9306, 9309, None),
        ("--checkpoint-every-n-tokens", 8352, 9305, True),
        ("--checkpoint-every-n-tokens", 11549, None, False),
        ("--ctx-checkpoints", None, 6628, False),
        ("--ctx-checkpoints", 6751, None, True),
        ("--swa-checkpoints", None, None, True),
        ("LLAMA_SERVER_SLOTS_N_DIFF", 10593, 10593, False),
        ("LLAMA_SERVER_SLOTS_N_DIFF", 11549, 11549, True),
        ("--log-jsonl", 10819, 10825, None),
        ("message_delimiters", None, 10223, False),
    ],
)
def test_flags_by_bracket(flag: str, low: int | None, high: int | None, known: bool | None) -> None:
    assert builds.flag_exists(flag, low, high) is known


def test_an_unknown_flag_is_an_error() -> None:
    with pytest.raises(KeyError):
        builds.flag_exists("--no-such-flag", None, None)


@pytest.mark.parametrize(
    ("lines", "low", "high", "level"),
    [
        ("checkpoints", 8672, 9113, 3),
        ("checkpoints", 9246, 9828, 3),
        ("checkpoints", 9830, None, 4),
        ("checkpoints", 9246, None, 4),
        ("checkpoints", None, 7079, 0),
        ("prompt", 9246, 9246, 4),
        ("similarity", None, 10173, None),
        ("similarity", 10178, None, 4),
    ],
)
def test_log_level_that_shows_lines(lines: str, low: int | None, high: int | None, level: int | None) -> None:
    assert builds.log_level(lines, low, high) == level


def test_faults_by_bracket_and_memory() -> None:
    def names(memory: str, low: int | None, high: int | None) -> dict[str, bool]:
        return {fault.name: sure for fault, sure in builds.known_faults(memory, low, high)}

    assert names("hybrid", 9246, 9496) == {
        "append-searches": True,
        "stale-after-shift": True,
        "slot-file-bare": True,
        "restore-aborts": True,
        "drafts-left-behind": True,
    }
    assert names("hybrid", 9113, 9246)["append-searches"] is False
    assert names("hybrid", 11549, 11549) == {"drafts-left-behind": True}
    assert names("hybrid", 11549, None) == {"drafts-left-behind": False}
    assert names("plain", None, None) == {"full-slot-refused": False}
    assert names("plain", 7079, None) == {}
    assert set(names("unknown", 9246, 9246)) == set(names("hybrid", 9246, 9246)) | set(names("swa", 9246, 9246))
    assert names("swa", 8672, 8672)["start-not-matched"] is True


@pytest.mark.parametrize(
    ("build", "max_checkpoints", "min_step", "every_nt"),
    [
        (6628, 3, 0, -1),
        (7079, 8, 0, -1),
        (8156, 8, 0, -1),
        (8672, 32, 0, 8192),
        (9310, 32, 256, -1),
        (11549, 32, 8192, -1),
    ],
)
def test_defaults(build: int, max_checkpoints: int, min_step: int, every_nt: int) -> None:
    rules = rules_at(build)
    assert (rules.default_max, rules.default_min_step, rules.default_every_nt) == (
        max_checkpoints,
        min_step,
        every_nt,
    )


def test_a_bracket_gives_every_set_of_rules_it_allows() -> None:
    assert [rules.first for rules in rules_for(11549, None)] == [11549]
    assert [rules.first for rules in rules_for(10865, None)] == [10865, 11243, 11549]
    # in the gap between two builds that were read, both sides are possible
    assert [rules.first for rules in rules_for(9114, 9114)] == [8929, 9246]
    assert [rules.first for rules in rules_for(9113, 9113)] == [8929]
    assert len(rules_for(None, None)) == len(eras())
    assert rules_for(9246, 9496)[-1].threshold == "position-less-1"


def test_each_edge_lies_before_its_era() -> None:
    for first, after in edges().items():
        assert after < first or first == 0
