"""docs/policy.md shows what the model does: its pictures and its table are drawn by it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("policy_pictures", DOCS / "policy_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_drawn_by_the_model() -> None:
    """``python docs/policy_pictures.py`` draws it anew."""
    text = (DOCS / "policy.md").read_text(encoding="utf-8")
    assert pictures().drawn(text) == text


def test_every_picture_is_on_the_page() -> None:
    text = (DOCS / "policy.md").read_text(encoding="utf-8")
    for name in pictures().PICTURES:
        assert f"<!-- picture: {name} -->\n```\nturn 1" in text
    assert "| create | b9771 (not b9763) | user-start |" in text
