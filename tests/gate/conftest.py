"""Verdicts on reports made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ckptlog.gate.evaluate import judge
from ckptlog.gate.policy import Policy, parse_policy
from ckptlog.gate.verdict import SCHEMA, GateVerdict, LogVerdict
from ckptlog.query.frames import turns_frame
from ckptlog.records import Report, Tool

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def gated() -> Callable[..., LogVerdict]:
    """The verdict on a report under a policy given as TOML."""

    def run(report: Report, toml: str = "", path: str = "server.log") -> LogVerdict:
        return judge(report, turns_frame(report), path, parse_policy(toml, "ckptlog.toml"))

    return run


@pytest.fixture
def whole() -> Callable[..., GateVerdict]:
    """Log verdicts as one."""

    def run(*logs: LogVerdict, policy: str | None = "ckptlog.toml") -> GateVerdict:
        passed = all(log.status == "passed" for log in logs)
        return GateVerdict(SCHEMA, Tool("ckptlog", "0.0.0"), policy, passed, list(logs))

    return run


@pytest.fixture
def policy() -> Callable[[str], Policy]:
    return lambda toml: parse_policy(toml, "ckptlog.toml")


@pytest.fixture
def log() -> Callable[[str], str]:
    """The path of a real log among the test data."""
    return lambda name: str(DATA / "logs" / f"{name}.log.gz")
