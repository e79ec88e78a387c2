"""Data goes one way, and so do imports; the command line starts without its heavy libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_package_imports_only_from_those_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    importlinter = pytest.importorskip("importlinter.cli", reason="needs the `lint` extra")
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    assert importlinter.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("ckptlog", ("polars", "lark", "textual", "rich", "msgspec")),
        ("ckptlog.cli", ("polars", "lark", "textual")),
        ("ckptlog.records", ("polars", "lark", "textual", "rich")),
        ("ckptlog.grammar", ("polars", "lark", "textual", "rich")),
        ("ckptlog.verdict.judge", ("polars", "lark", "textual", "rich")),
        ("ckptlog.analysis", ("textual", "rich", "lark")),
    ],
)
def test_imports_stay_light(module: str, absent: tuple[str, ...]) -> None:
    done = python(f"import sys, {module}; print(sorted(set(sys.modules) & set({absent!r})))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_help_stays_light() -> None:
    done = python(
        "import sys\nfrom ckptlog.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(repr(sorted(set(sys.modules) & {'polars', 'lark', 'textual'})))"
    )
    assert done.returncode == 0
    assert done.stderr.strip().endswith("[]"), done.stderr[-500:]


@pytest.mark.parametrize(
    "package",
    ["grammar", "query", "intake", "events", "server", "timeline", "replay", "verdict", "analysis", "report", "gate",
     "tui", "cli"],
)  # fmt: skip
def test_every_package_says_what_it_is(package: str) -> None:
    source = (ROOT / "ckptlog" / package / "__init__.py").read_text(encoding="utf-8")
    assert source.lstrip().startswith('"""')


def test_the_modules_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {path.name for path in (ROOT / "ckptlog").iterdir() if path.is_dir()}
    named = [(package, module) for package, module in re.findall(r"`(\w+)\.(\w+)`", text) if package in packages]
    assert len(named) > 10
    missing = [f"{package}.{module}" for package, module in named if not (ROOT / "ckptlog" / package / f"{module}.py").exists()]
    assert missing == []
