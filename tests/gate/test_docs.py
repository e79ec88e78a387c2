"""docs/gate.md says what the gate does.

    CKPTLOG_UPDATE_GOLDEN=1 pytest tests/gate/test_docs.py

writes its sample output anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ckptlog import cli
from ckptlog.gate.errors import PolicyError
from ckptlog.gate.policy import Baseline, Check, Gate, parse_policy
from ckptlog.gate.tolerance import DEFAULT, METRIC_NAMES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gate.md"


def test_the_example_policy_is_one() -> None:
    [toml] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(parse_policy(toml, "ckptlog.toml").gate.check) == 3


def test_the_example_error_is_what_is_said() -> None:
    [said] = re.findall(r"^ckptlog: (ckptlog\.toml, line 4: .*)$", PAGE.read_text(), re.MULTILINE)
    with pytest.raises(PolicyError) as raised:
        parse_policy('[gate]\n\n[[gate.check]]\nexpr = "count(faild) == 0"', "ckptlog.toml")
    assert str(raised.value) == said


@pytest.mark.parametrize("struct", [Gate, Check])
def test_every_key_is_described(struct: type[Gate | Check]) -> None:
    page = PAGE.read_text()
    for key in set(struct.__struct_fields__) - {"check", "baseline"}:
        assert f"| `{key}` |" in page, key


def test_every_figure_and_the_default_tolerances_are_described() -> None:
    page = PAGE.read_text()
    assert set(Baseline.__struct_fields__) == {"file", "max_regression", "warn_only"}
    for name in METRIC_NAMES:
        assert f"`{name}`" in page, name
    shown = ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in DEFAULT.items())
    assert f"{{{shown}}}" in page.replace("\n", " ")


def test_the_sample_output_is_real(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(["gate", "sample_logs/evicted-system-prompt.log", "--policy", os.devnull]) == 1
    block = f"<!-- sample -->\n```\n{capfd.readouterr().out}```\n<!-- /sample -->"
    if os.environ.get("CKPTLOG_UPDATE_GOLDEN"):
        new = re.sub(r"<!-- sample -->.*<!-- /sample -->", lambda _: block, PAGE.read_text(), flags=re.DOTALL)
        PAGE.write_text(new)
    assert block in PAGE.read_text(), "run CKPTLOG_UPDATE_GOLDEN=1 pytest tests/gate/test_docs.py"
