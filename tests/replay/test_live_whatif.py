"""The what-if against llama.cpp's own server: made-up conversations, played under flags A and B; what is
predicted for B from A's log must be what the server then does."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

import ckptlog
from ckptlog.replay.follow import Followed, follow
from ckptlog.replay.from_timeline import run_from_timeline
from ckptlog.replay.predict import predict
from tests.live import scenario as sc
from tests.live.conftest import missing_packages
from tests.live.environments import installed

from .test_real_logs import agreeing_turns

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        bool(missing_packages()), reason="needs llama.cpp's server (pip install 'ckptlog[live]')"
    ),
]


def played(scenario: sc.Scenario, models: Path, folder: Path) -> Followed | None:
    """The scenario's log, followed; None if no prompt was processed in it."""
    from tests.live.play import play

    release = installed()
    assert release is not None
    play(scenario, scenario.models[0], release, models=models, folder=folder)
    runs = [run for run in ckptlog.analyze(folder / f"{scenario.name}.log").timeline if run.turns]
    converted = [run_from_timeline(run) for run in runs]
    return follow(converted[0]) if converted and converted[0].turns else None


def before_a_coincidence(first: Followed, second: Followed) -> int:
    """Turns up to one in which the logs contradict each other about user starts: a last message whose
    start falls on a cut near the prompt's end (its length then is 64 tokens, say) can't be told from that
    cut, and an earlier one is taken for the last."""
    for number, (a, b) in enumerate(zip(first.learned, second.learned, strict=False)):
        for one, other in ((a, b), (b, a)):
            unseen = set(one.user_starts) - set(other.user_starts)
            if any(not any(low <= start < high for low, high in other.hidden) for start in unseen):
                return number
    return 1 << 30


def other_flags(scenario: sc.Scenario) -> sc.Scenario:
    """The same conversation under other checkpoint flags, always the same ones for the same scenario."""
    rng = random.Random(sc.to_json(scenario))
    flags = {
        **scenario.flags,
        "ctx-checkpoints": rng.choice((1, 2, 3, 4, 8, 32)),
        "checkpoint-min-step": rng.choice((0, 64, 256, 8192)),
    }
    return msgspec.structs.replace(scenario, name="other", flags=flags)


def test_what_is_predicted_is_what_the_server_does(tmp_path: Path) -> None:
    """Half a minute of made-up conversations; the smallest that goes wrong is shown."""
    from tests.live.generator import hunt

    models = tmp_path / "models"
    models.mkdir()

    def check(scenario: sc.Scenario) -> None:
        first = played(scenario, models, tmp_path)
        if first is None:
            return
        assert [(m.turn.task, m.expected, m.found) for m in first.mismatches] == []
        second = played(other_flags(scenario), models, tmp_path)
        assert second is not None
        n = min(agreeing_turns(first, second), before_a_coincidence(first, second))
        prediction = predict(first, second.run.settings, second.rules)
        pairs = list(zip(prediction.turns, second.run.turns, strict=False))[:n]
        wrong = [
            (turn.task, predicted.low, predicted.high, turn.n_cached)
            for predicted, turn in pairs
            if turn.n_cached is not None and not predicted.low <= turn.n_cached <= predicted.high
        ]
        assert wrong == []

    found = hunt(check, seconds=30, first_seed=20261130)
    if found is not None:
        try:
            check(found)
        finally:
            print(sc.to_json(found).decode())
