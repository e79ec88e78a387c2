"""The scenarios, played on the server of this environment: ckptlog must see what the client saw."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog
from tests.live import scenario as sc
from tests.live.compare import compare
from tests.live.environments import installed

pytestmark = pytest.mark.live

SCENARIOS = sc.load()
PLAYED = [
    pytest.param(scenario, model, id=f"{model}-{name}")
    for name, scenario in SCENARIOS.items()
    if not scenario.large
    for model in scenario.models
]


@pytest.mark.parametrize(("scenario", "model"), PLAYED)
def test_scenario(scenario: sc.Scenario, model: str, models: Path, tmp_path: Path) -> None:
    from tests.live.play import play

    release = installed()
    assert release is not None
    truth = play(scenario, model, release, models=models, folder=tmp_path)
    analysis = ckptlog.analyze(tmp_path / f"{scenario.name}.log")
    assert truth.surprises() == []
    assert compare(truth, analysis.report).disagreements == []
    assert analysis.drift == []


def test_random_conversations(models: Path, tmp_path: Path) -> None:
    """Half a minute of made-up conversations; the smallest that goes wrong is shown."""
    from tests.live.generator import hunt
    from tests.live.play import play

    release = installed()
    assert release is not None

    def check(scenario: sc.Scenario) -> None:
        truth = play(scenario, scenario.models[0], release, models=models, folder=tmp_path)
        report = ckptlog.analyze(tmp_path / f"{scenario.name}.log").report
        assert compare(truth, report).disagreements == []

    found = hunt(check, seconds=30, first_seed=20261130)
    if found is not None:
        try:
            check(found)
        finally:
            print(sc.to_json(found).decode())


def test_a_survey_of_this_build_is_clean(models: Path, tmp_path: Path) -> None:
    """The command for a new build, on the build it was written on, with two scenarios."""
    from tests.live.survey import survey

    release = installed()
    assert release is not None
    result = survey(release, [SCENARIOS["deep-edit"], SCENARIOS["rejected-exactly"]], models, tmp_path)
    assert result.clean, "\n".join(result.lines())
    assert len(result.played) == 7
    assert result.comparison.figures > 200
