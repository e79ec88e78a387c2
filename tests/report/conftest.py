"""Golden files: one a format, byte for byte, so that a reviewer sees a report as a report."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# a busy machine is no failure
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, bytes], None]:
    """Compare with ``golden/NAME``; ``CKPTLOG_UPDATE_GOLDEN=1 pytest tests/report`` writes it anew,
    to be read in the diff."""

    def check(name: str, actual: bytes) -> None:
        path = GOLDEN / name
        if os.environ.get("CKPTLOG_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(actual)
        assert path.exists(), f"no golden file {name}; make it with CKPTLOG_UPDATE_GOLDEN=1"
        assert actual.decode() == path.read_bytes().decode(), f"{name} changed"

    return check
