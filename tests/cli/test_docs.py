"""The documentation says what the code does: every option, every field, every example."""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec
import pytest
from typer.main import get_command

from ckptlog import records
from ckptlog.cli import COMMANDS, LazyCommands, app

from .conftest import ROOT, Run

DOCS = ROOT / "docs"


def test_every_command_is_in_the_table() -> None:
    text = (DOCS / "commands.md").read_text()
    for name in COMMANDS:
        assert f"| `ckptlog {name}" in text


@pytest.mark.parametrize("name", ["diagnose", "doctor", "explain", "sample", "schema"])
def test_every_option_is_documented(name: str) -> None:
    text = (DOCS / "commands.md").read_text()
    for param in LazyCommands()[name].params:
        for option in param.opts:
            if option.startswith("-"):
                assert option in text, f"{name} {option}"


def test_no_option_is_documented_that_is_not_there() -> None:
    known = {opt for name in LazyCommands() for param in LazyCommands()[name].params for opt in param.opts}
    known |= {opt for param in get_command(app).params for opt in param.opts} | {"--help"}
    for line in re.findall(r"(?m)^\s*(?:ckptlog|.*\| ckptlog) .*$", (DOCS / "commands.md").read_text()):
        for option in re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", line.partition("ckptlog")[2].partition(" -- ")[0]):
            assert option in known, f"{option} in {line!r}"


RECORDS = [
    value
    for value in vars(records).values()
    if isinstance(value, type) and issubclass(value, msgspec.Struct) and value is not msgspec.Struct
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_of_the_report_is_documented(record: type[msgspec.Struct]) -> None:
    text = (DOCS / "json.md").read_text()
    missing = [name for name in record.__struct_fields__ if f"`{name}`" not in text]
    assert missing == []


def test_the_python_examples_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(), re.DOTALL):
        exec(block, names)
    shown = capsys.readouterr().out
    assert "checkpoint-evicted" in shown
    assert "# ckptlog report" in shown


REPORT = re.compile(r"(<!-- (\$ ckptlog [^\n]*) -->\n```\n)(.*?)(```)", re.DOTALL)


def test_the_readmes_reports_are_real(ckptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CKPTLOG_UPDATE_GOLDEN=1 pytest tests/cli/test_docs.py`` writes them anew."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    monkeypatch.chdir(ROOT)

    def real(block: re.Match[str]) -> str:
        done = ckptlog(*block[2].split()[2:])
        assert done.returncode == 0
        return block[1] + done.stdout.decode() + block[4]

    assert REPORT.search(text)
    actual = REPORT.sub(real, text)
    if os.environ.get("CKPTLOG_UPDATE_GOLDEN"):
        readme.write_text(actual)
    assert readme.read_text() == actual


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in DOCS.glob("*.md"))])
def test_every_link_leads_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page}: {target}"


def test_the_readme_names_only_commands_that_exist() -> None:
    named = re.findall(r"(?:`|bin/|\$ )ckptlog ([a-z]+)\b", (ROOT / "README.md").read_text())
    assert named
    assert set(named) <= set(COMMANDS)
