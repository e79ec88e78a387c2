"""What every command line has in common: help, version, errors, exit codes, cheap start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ckptlog as package
from ckptlog import cli
from ckptlog.cli import COMMANDS, LazyCommands, main

from .conftest import ROOT, Run

HEAVY = ("polars", "lark", "textual", "rich", "msgspec")


def imported(code: str) -> set[str]:
    """Top-level modules in ``sys.modules`` after ``code``."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["-h"], [], ["no-such-command"]])
def test_the_start_imports_nothing_heavy(args: list[str]) -> None:
    modules = imported(f"from ckptlog.cli import main\nmain({args!r})")
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("name", ["diagnose", "doctor", "explain", "sample", "schema"])
def test_a_commands_own_help_imports_nothing_heavy(name: str) -> None:
    modules = imported(f"from ckptlog.cli import main\nassert main([{name!r}, '--help']) == 0")
    assert not modules & {"polars", "lark", "textual"}


def test_importing_the_package_is_cheap_and_gives_the_public_names() -> None:
    assert not imported("import ckptlog") & {*HEAVY, "typer"}
    assert "polars" in imported("import ckptlog; ckptlog.analyze")
    assert {"analyze", "Analysis", "__version__"} <= set(dir(package))
    with pytest.raises(AttributeError):
        package.no_such_name  # noqa: B018


def test_the_version_is_the_projects_own(ckptlog: Run) -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = project.get("version", package.__version__)
    assert ckptlog("--version").stdout == f"ckptlog {version}\n".encode()


def test_help_lists_every_command_with_examples(ckptlog: Run) -> None:
    done = ckptlog("--help")
    text = done.stdout.decode()
    assert done.returncode == 0
    for name in LazyCommands():
        assert f"\n  {name} " in text
    assert "Examples:" in text
    assert "-lv 4" in text


@pytest.mark.parametrize("name", list(LazyCommands()))
def test_every_command_has_help_with_examples(name: str, ckptlog: Run) -> None:
    done = ckptlog(name, "--help")
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"ckptlog {name}" in done.stdout.decode()
    assert "Example" in done.stdout.decode()


def test_a_command_is_a_function_of_its_modules_name() -> None:
    for name in LazyCommands():
        assert name in COMMANDS
        assert LazyCommands()[name].name == name


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["diagnos"], "ckptlog: No such command 'diagnos'. Did you mean 'diagnose'? (try: ckptlog --help)\n"),
        (["diagnose"], "ckptlog: Missing argument 'LOG' (try: ckptlog diagnose --help)\n"),
        (["schema", "--frob"], "ckptlog: No such option: --frob (try: ckptlog schema --help)\n"),
    ],
)
def test_wrong_usage_is_one_line_and_2(args: list[str], told: str, ckptlog: Run) -> None:
    done = ckptlog(*args)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", told)


def test_without_arguments_it_shows_its_help(ckptlog: Run) -> None:
    done = ckptlog()
    assert done.returncode == 2
    assert b"Usage: ckptlog" in done.stderr


def test_hostile_arguments_stay_text(ckptlog: Run) -> None:
    done = ckptlog("diagnose", "\x1b[2Jgone\u202e.log")
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert "\u202e" not in done.stderr.decode()


def test_a_fault_of_its_own_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: LazyCommands, name: str) -> object:
        raise ZeroDivisionError("out of luck")

    monkeypatch.setattr(cli.LazyCommands, "__getitem__", broken)
    monkeypatch.delenv("CKPTLOG_DEBUG", raising=False)
    assert main(["diagnose", "x"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "a fault of ckptlog's own (ZeroDivisionError: out of luck)" in told
    monkeypatch.setenv("CKPTLOG_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["diagnose", "x"])


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: LazyCommands, name: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.LazyCommands, "__getitem__", interrupted)
    assert main(["diagnose", "x"]) == 130


def test_a_closed_pipe_ends_quietly() -> None:
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m ckptlog schema | head -c 1",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ckptlog", "schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, b"ckptlog: No space left on device\n")


def test_shell_completion_offers_the_commands(ckptlog_process: Run) -> None:
    done = ckptlog_process(_CKPTLOG_COMPLETE="complete_bash", COMP_WORDS="ckptlog d", COMP_CWORD="1")
    assert done.stdout.split() == [b"diagnose", b"doctor"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("diagnose", "x.log", "--format", "html"), b"'--format' / '-f': 'html' is not one of"),
        (("whatif", "x.log", "--ctx-checkpoints", "x"), b"'--ctx-checkpoints': a whole number is wanted"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(args: tuple[str, ...], says: bytes, ckptlog: Run) -> None:
    done = ckptlog(*args)
    assert done.returncode == 2
    assert says in done.stderr
    assert b"Value error" not in done.stderr
    assert b"Input should be" not in done.stderr
