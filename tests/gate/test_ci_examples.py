"""The examples of docs/ci and action.yml, run as far as that is possible without their CI."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from junitparser import JUnitXml

from ckptlog.gate.policy import load_policy

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
HERE = Path(__file__).parent

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="gate.sh waits for the server with curl")


def program(path: Path, *command: str) -> Path:
    """An executable that is ``command`` with whatever it is given."""
    quoted = " ".join(f"'{word}'" for word in command)
    path.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    path.chmod(0o755)
    return path


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A PATH on which ``ckptlog`` and ``python3`` are this checkout's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs / "ckptlog", sys.executable, "-m", "ckptlog")
    program(programs / "python3", sys.executable)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_", "GITHUB_"))}
    return clean | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.fixture
def gate_sh(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs docs/ci/gate.sh in an empty folder."""

    def run(server: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
        settings = {"SERVER": str(server), "MODEL": "model.gguf", "PORT": free_port()} | more
        command = ["sh", str(CI / "gate.sh"), *options]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment | settings,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


GateSh = Callable[..., subprocess.CompletedProcess[str]]


def test_the_example_policy_is_sound() -> None:
    policy = load_policy(str(CI / "ckptlog.toml"))
    assert len(policy.gate.check) == 3


@needs_curl
@pytest.mark.parametrize(("name", "code"), [("newconv_ck2", 1), ("newconv_ck4_step8192", 0)])
def test_shell_with_a_stored_log(
    name: str, code: int, gate_sh: GateSh, log: Callable[[str], str], tmp_path: Path
) -> None:
    stored = log(f"b11549/hybrid/{name}")
    server = program(tmp_path / "server", sys.executable, str(HERE / "stored_server.py"), stored)
    done = gate_sh(server)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("FAILED" if code else "PASSED")
    assert JUnitXml.fromfile(str(tmp_path / "ckptlog-out/junit.xml"))
    assert (tmp_path / "ckptlog-out/gate.sarif").exists()


@needs_curl
def test_shell_with_a_server_that_does_not_start(gate_sh: GateSh, tmp_path: Path) -> None:
    done = gate_sh(program(tmp_path / "server", "sh", "-c", "echo no such model >&2; exit 1"))
    assert done.returncode == 2
    assert "gate.sh: the server did not start" in done.stderr
    assert "no such model" in done.stderr


@needs_curl
def test_shell_with_a_scenario_that_fails(gate_sh: GateSh, log: Callable[[str], str], tmp_path: Path) -> None:
    stored = log("b11549/hybrid/newconv_ck2")
    server = program(tmp_path / "server", sys.executable, str(HERE / "stored_server.py"), stored)
    (tmp_path / "broken.py").write_text("raise SystemExit(1)")
    done = gate_sh(server, SCENARIO=str(tmp_path / "broken.py"))
    assert done.returncode == 2
    assert "gate.sh: the scenario failed" in done.stderr


@needs_curl
@pytest.mark.live
def test_the_scenario_tells_a_cap_of_2_from_a_cap_of_32(gate_sh: GateSh, tmp_path: Path) -> None:
    """The regression pair: the same conversation on llama.cpp's own server, caps 32 and 2."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason="needs llama.cpp's server (pip install 'ckptlog[live]')")
    from ..live.models import WRITERS

    WRITERS["hybrid"](tmp_path / "model.gguf")
    server = program(tmp_path / "server", sys.executable, str(HERE / "llama_server.py"))
    options = ["--ctx-size", "16384", "--parallel", "1", "--cache-ram", "0", "--checkpoint-min-step", "0"]
    before = gate_sh(
        server, *options, "--ctx-checkpoints", "32", OUT="before", GATE="--write-baseline base.json"
    )
    assert before.returncode == 0, before.stdout + before.stderr
    after = gate_sh(server, *options, "--ctx-checkpoints", "2", OUT="after", GATE="--baseline base.json")
    said = " ".join(after.stdout.split())
    assert after.returncode == 1, after.stdout + after.stderr
    assert "checkpoint-evicted" in said
    assert "x failed against the baseline: 1, was 0" in said
    assert "since the baseline: --ctx-checkpoints 32 -> 2" in said
    assert "Do: --ctx-checkpoints" in said


def script_of_the_action() -> str:
    """The gate step's script, out of action.yml without a YAML library."""
    text = (ROOT / "action.yml").read_text()
    found = re.search(r"id: gate\n.*?\n( +)run: \|\n(.*)", text, re.DOTALL)
    assert found is not None
    return textwrap.dedent(found[2])


@pytest.mark.skipif(shutil.which("bash") is None, reason="the action's script is for bash")
@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"LOGS": "GOOD"}, 0, "PASSED"),
        ({"LOGS": "GOOD\nBAD\n"}, 1, "::error file="),
        (
            {"LOGS": "BAD", "POLICY": "lenient.toml", "JUNIT": "out/j.xml", "SARIF": "out/s.sarif"},
            0,
            "PASSED",
        ),
        ({"LOGS": "nowhere.log"}, 2, ""),
        ({"LOGS": "$(touch forged) `touch forged` ; touch forged"}, 2, ""),
        ({"LOGS": "--check-policy"}, 2, ""),
    ],
)
def test_the_actions_script(
    settings: dict[str, str],
    code: int,
    said: str,
    environment: dict[str, str],
    log: Callable[[str], str],
    tmp_path: Path,
) -> None:
    (tmp_path / "lenient.toml").write_text("[gate]\nfail_on = []\n")
    good, bad = log("b11549/hybrid/newconv_ck4_step8192"), log("b11549/hybrid/newconv_ck2")
    inputs = dict.fromkeys(("LOGS", "POLICY", "BASELINE", "JUNIT", "SARIF"), "") | {"ALLOW_UNKNOWN": "false"}
    inputs |= {name: text.replace("GOOD", good).replace("BAD", bad) for name, text in settings.items()}
    github = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of_the_action()],
        cwd=tmp_path,
        env=environment | inputs | github,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert said in done.stdout
    assert (tmp_path / "output").read_text() == f"exit-code={code}\n"
    assert (tmp_path / "summary.md").exists() == (code < 2)
    assert not (tmp_path / "forged").exists()
    assert (tmp_path / "out").exists() == ("JUNIT" in settings)
