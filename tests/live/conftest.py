"""The server's part of the test run: models made once, and a clear word where it cannot run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_NEEDED = ("xllamacpp", "gguf", "numpy")


def missing_packages() -> list[str]:
    """What the live tests need and this environment lacks."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = missing_packages()
    if not missing:
        return
    reason = f"needs llama.cpp's server: {', '.join(missing)} not installed (pip install 'ckptlog[live]')"
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny models; each is written when it is first asked for."""
    return tmp_path_factory.mktemp("models")
