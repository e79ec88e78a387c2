"""Stored logs of the real server, one set a build: ckptlog must say what the client saw.

Needs no server. ``python -m tests.live fixtures`` plays the scenarios again and rewrites them.
"""

from __future__ import annotations

import pytest

import ckptlog
from tests.live import scenario as sc
from tests.live.compare import compare
from tests.live.environments import KEPT, Release
from tests.live.fixtures import Fixture, stored

FIXTURES = list(stored())


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda f: f.name)
def test_ckptlog_says_what_the_client_saw(fixture: Fixture) -> None:
    analysis = ckptlog.analyze(fixture.log)
    assert compare(fixture.truth(), analysis.report, fixture.name).disagreements == []
    assert analysis.drift == []


@pytest.mark.parametrize("release", KEPT)
def test_every_scenario_is_stored_with_the_flags_it_has_now(release: str) -> None:
    build = Release(release).build
    have = {f.name: f for f in FIXTURES if f.name.startswith(build + "/")}
    for name, scenario in sc.load().items():
        if scenario.large or (scenario.logger and f"{build}/{scenario.models[0]}/{name}" not in have):
            continue  # (an older build cannot write every form of log)
        flags, env = sc.settings(scenario)
        for model in scenario.models:
            fixture = have.get(f"{build}/{model}/{name}")
            assert fixture is not None, f"{build}/{model}/{name} is not stored"
            for server in fixture.truth().servers:
                assert server.flags == flags
                assert server.env == env
