"""Needed counts, sweeps, bounds: on conversations written down here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptlog.replay.follow import follow, follow_all
from ckptlog.replay.inputs import Adopt, Clear, Load, Op, Run, Save, Step, Turn
from ckptlog.replay.loss import is_costly_turn
from ckptlog.replay.predict import predict
from ckptlog.replay.sweep import Alternatives, sweep
from ckptlog.server.policy import Settings
from ckptlog.server.rules import Rules, rules_at
from ckptlog.server.rules import rules_for as rules_between

SYSTEM = 1000
TURN = 300


def played(run: Run, rules: Rules, starts: dict[int, tuple[int, ...]]) -> Run:
    """The run as a server with these settings would have logged it: batches, operations, reuse points."""
    from ckptlog.replay.world import World

    world = World(run, rules, run.settings)
    for step in run.steps:
        if not isinstance(step, Turn):
            world.other_step(step)
            continue
        found = world.play(step, step.n_common or 0, starts[step.task])
        step.n_cached = found.n_cached
        step.batch_starts = tuple(found.batch_starts)
        step.ops = tuple(found.ops())
        step.prompt_ms = float(step.n_prompt - found.n_cached)
    return run


def chats(settings: Settings, n_chats: int = 3, n_turns: int = 3, build: int = 11549) -> Run:
    """Chats with one system prompt, one after another on one slot; each new one parts from the old just
    behind the system prompt."""
    steps: list[Step] = []
    starts: dict[int, tuple[int, ...]] = {}
    held = 0
    for chat in range(n_chats):
        users: list[int] = []
        for number in range(n_turns):
            task = chat * n_turns + number
            # a user message begins two tokens behind the old content: end mark and newline
            users.append(held + 2 if number else SYSTEM)
            n_common = held if number else min(held, SYSTEM + 3)
            n_prompt = users[-1] + TURN
            starts[task] = tuple(users)
            held = n_prompt + 20
            steps.append(Turn(0, task, n_prompt, n_common, n_after=held))
    run = Run(settings, (rules_at(build),), steps=steps, checkpoint_mib=10.0)
    return played(run, rules_at(build), starts)


HYBRID = Settings("hybrid", 2, min_step=8192, n_batch=2048, n_ubatch=512)


def test_a_log_made_by_the_rules_is_reproduced() -> None:
    followed = follow(chats(HYBRID))
    assert followed.reproduced
    assert followed.n_judged == 9
    # the user starts come back out of the cuts alone
    assert followed.learned[2].user_starts == (1000, 1322, 1644)


def test_needed_count_is_the_smallest_that_keeps_the_system_prompt() -> None:
    run = chats(HYBRID)
    followed = follow(run)
    assert run.turns[3].n_cached == 0
    alternatives = Alternatives(followed)
    needed = alternatives.needed_count(3)
    assert needed is not None
    count = needed.settings.max_checkpoints
    # not 1000: of the first prompt's checkpoints the oldest survives, made 4 + n_ubatch before its end
    assert needed.n_cached == 1300 - 516
    assert needed.ram_mib == 10.0 * count
    # on servers that really have so many, and one fewer
    assert chats(replace(HYBRID, max_checkpoints=count)).turns[3].n_cached == needed.n_cached
    assert chats(replace(HYBRID, max_checkpoints=count - 1)).turns[3].n_cached == 0


def test_what_if_equals_a_server_with_those_flags() -> None:
    followed = follow(chats(HYBRID))
    for count in (1, 3, 4, 8, 32):
        for step in (0, 64, 512, 8192):
            settings = replace(HYBRID, max_checkpoints=count, min_step=step)
            other = chats(settings)
            prediction = predict(followed, settings)
            for predicted, turn in zip(prediction.turns, other.turns, strict=True):
                assert predicted.low <= turn.n_cached <= predicted.high, (count, step, turn.task)  # type: ignore[operator]


def test_the_sweep_finds_the_cheapest_that_is_good_enough() -> None:
    alternatives = Alternatives(follow(chats(HYBRID)))
    found = sweep(alternatives)
    assert found.helps
    assert found.now.n_costly == 2
    assert found.saving_all is not None
    assert found.saving_all.n_costly == 0
    cheaper = [t for t in found.tried if (t.ram_mib or 0) < (found.saving_all.ram_mib or 0)]
    assert all(t.n_costly for t in cheaper)
    assert found.best.n_saved == 2 * SYSTEM
    assert found.best.ms_saved == pytest.approx(2 * SYSTEM)


def test_a_prompt_rewritten_at_its_head_is_beyond_help() -> None:
    steps: list[Step] = [Turn(0, task, 3000, 23 if task else 0, n_after=3010) for task in range(4)]
    run = Run(replace(HYBRID, max_checkpoints=32), (rules_at(11549),), steps=steps)
    run = played(run, rules_at(11549), dict.fromkeys(range(4), (2900,)))
    alternatives = Alternatives(follow(run))
    found = sweep(alternatives)
    assert not found.helps
    assert alternatives.needed_count(1) is not None or found.now.n_costly == 0


def test_a_user_start_that_was_never_cut_makes_a_range() -> None:
    """Three user messages in one first prompt: with a large step only the first and last are cut."""
    starts = {0: (1000, 1300, 2000, 4000), 1: (1000, 1300, 2000, 4000)}
    wide = replace(HYBRID, max_checkpoints=32)
    tight = replace(wide, min_step=64)

    def log(settings: Settings) -> Run:
        steps: list[Step] = [Turn(0, 0, 5000, 0, n_after=5010), Turn(0, 1, 5000, 1700, n_after=5010)]
        return played(Run(settings, (rules_at(11549),), steps=steps), rules_at(11549), starts)

    seen, real = follow(log(wide)), log(tight)
    assert seen.learned[0].hidden
    prediction = predict(seen, tight).turns[1]
    assert prediction.n_cached is None
    assert prediction.low <= 1300 == real.turns[1].n_cached <= prediction.high
    # the other way round everything was cut
    assert predict(follow(real), wide).turns[1].n_cached == log(wide).turns[1].n_cached


def test_of_builds_that_cannot_be_told_apart_all_are_given() -> None:
    run = chats(replace(HYBRID, max_checkpoints=32))
    run.rules = rules_between(10865, None)
    assert {f.rules.first for f in follow_all(run)} == {11549}
    run.rules = rules_between(9940, None)
    followed = follow_all(run)
    assert all(f.reproduced for f in followed)
    assert followed[0].rules.first == 11549


def test_a_slot_file_without_a_line_is_inferred_where_only_it_explains_a_turn() -> None:
    """The slot held 1,320 tokens; the log shows a plain reuse of 1,000 on recurrent memory."""
    run = chats(replace(HYBRID, max_checkpoints=32), n_chats=1, n_turns=1, build=11063)
    step = Turn(0, 9, 1200, 1000, n_cached=1000, n_after=1210, batch_starts=(1000, 1196))
    step.ops = (Op("created", 1000), Op("created", 1196))
    run.steps.append(step)
    followed = follow(run)
    assert followed.reproduced
    assert followed.learned[1].unseen == Adopt(0, 1000)
    assert predict(followed, run.settings).turns[1].n_cached == 1000


def test_content_that_moves_through_the_prompt_cache_keeps_what_is_known_of_it() -> None:
    run = chats(replace(HYBRID, max_checkpoints=32), n_chats=1, n_turns=2)
    rules = rules_at(11549)
    steps: list[Step] = [
        *run.steps,
        Save(0, "a"),
        Clear(0),
        Load(0, "a"),
        Turn(0, 7, 1950, 1642, n_after=1960),
    ]
    starts = {0: (1000,), 1: (1000, 1322), 7: (1000, 1322, 1644)}
    moved = played(Run(run.settings, (rules,), steps=steps), rules, starts)
    followed = follow(moved)
    assert followed.reproduced
    assert followed.learned[-1].user_starts == (1000, 1322, 1644)


@pytest.mark.parametrize(
    ("n_common", "n_cached", "n_prompt", "costly"),
    [
        (1000, 0, 1000, True),
        (100, 0, 1000, False),
        (400, 0, 9000, False),
        (400, 0, 1000, True),
        (1000, 600, 2000, False),
        (1000, 400, 2000, True),
        (1000, 1000, 2000, False),
    ],
)
def test_costly_turns(n_common: int, n_cached: int, n_prompt: int, costly: bool) -> None:
    assert is_costly_turn(n_common, n_cached, n_prompt) is costly
