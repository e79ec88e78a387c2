"""``ckptlog gate`` and ``ckptlog compare`` as a shell sees them, on real logs."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from junitparser import JUnitXml

from ckptlog import analysis, cli
from ckptlog.analysis import Analysis
from ckptlog.errors import InputError
from ckptlog.gate import run as gate_run


class Run(NamedTuple):
    code: int
    out: str
    err: str


Ckptlog = Callable[..., Run]
Log = Callable[[str], str]


@pytest.fixture
def ckptlog(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ckptlog:
    """Runs one command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("CKPTLOG_DEBUG", raising=False)

    def run(*args: str) -> Run:
        capfd.readouterr()
        code = cli.main(list(args))
        return Run(code, *capfd.readouterr())

    return run


@pytest.fixture
def good(log: Log) -> str:
    return log("b11549/hybrid/newconv_ck4_step8192")


@pytest.fixture
def bad(log: Log) -> str:
    return log("b11549/hybrid/newconv_ck2")


# --- exit codes ----------------------------------------------------------------------------------------


def test_0_passed(ckptlog: Ckptlog, good: str) -> None:
    run = ckptlog("gate", good)
    assert (run.code, run.err) == (0, "")
    # a long path is broken over lines
    assert "".join(run.out.split()).startswith(f"PASSED{good}")
    assert "6 checks passed (10 turns, 0 failed, 83 % reused)" in run.out


def test_1_failed_and_the_eviction_is_named(ckptlog: Ckptlog, bad: str) -> None:
    run = ckptlog("gate", bad)
    assert (run.code, run.err) == (1, "")
    flowing = " ".join(run.out.split())
    assert "1 of 6 checks failed: no checkpoint-reprefill" in flowing
    assert "turns 8 (line 367), 10 (line 425): checkpoint-reprefill, full, checkpoint-evicted" in flowing
    assert "line 215: the checkpoint at 182" in flowing
    assert "Do: --ctx-checkpoints" in flowing


UNUSABLE = [
    (["gate"], "no log given"),
    (["gate", "nowhere.log"], "no such file: nowhere.log"),
    (["gate", "*.nolog"], "no file matches *.nolog"),
    (["gate", "LOG", "--policy", "none.toml"], "none.toml: can't be read: no such file or directory"),
    (["gate", "LOG", "--baseline", "none.json"], "can't read the baseline none.json: no such file or directory"),
    (["gate", "--check-policy", "--policy", "bad.toml"], "bad.toml, line 2: gate.fail_onn: unknown key; did you mean fail_on?"),
    (["gate", "LOG", "--policy", "absent-baseline.toml"], "can't read the baseline gone.json: no such file or directory"),
    (["gate", "LOG", "--junit", "folder"], "can't write folder: it is a folder"),
    (["gate", "LOG", "--sarif", "plain.txt/x.sarif"], "can't write plain.txt/x.sarif: "),
    (["gate", "LOG", "--jobs", "0"], "Invalid value for '--jobs'"),
    (["compare", "LOG"], "Missing argument 'NEW'"),
    (["compare", "-", "-"], "standard input (-) can be read only once"),
    (["compare", "LOG", "nowhere.log"], "no such file: nowhere.log"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "message"), UNUSABLE)
def test_2_unusable(args: list[str], message: str, ckptlog: Ckptlog, good: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[gate]\nfail_onn = []\n")
    (tmp_path / "absent-baseline.toml").write_text('[gate.baseline]\nfile = "gone.json"\n')
    (tmp_path / "plain.txt").write_text("")
    (tmp_path / "folder").mkdir()
    run = ckptlog(*(good if arg == "LOG" else arg for arg in args))
    assert run.code == 2
    assert run.err.startswith(f"ckptlog: {message}")
    assert "Traceback" not in run.err


@pytest.mark.parametrize("content", [b"", b"hello\n" * 50, b'{"prompt": "x"}', bytes(range(256)) * 40])
def test_3_nothing_to_judge(content: bytes, ckptlog: Ckptlog, good: str, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(content)
    run = ckptlog("gate", "x.log")
    assert run.code == 3
    assert run.out.startswith("NOTHING TO JUDGE  x.log\n")
    assert ckptlog("compare", good, "x.log").code == 3
    assert ckptlog("gate", "x.log", "--allow-unknown").code == 3


def test_of_several_logs_the_worst_counts(ckptlog: Ckptlog, good: str, bad: str) -> None:
    Path("empty.log").write_bytes(b"")
    assert ckptlog("gate", good, "empty.log").code == 3
    assert ckptlog("gate", good, "empty.log", bad).code == 1


def test_an_unreadable_log_counts_most_and_keeps_no_other_from_being_judged(
    ckptlog: Ckptlog, good: str, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def analyze(paths: list[str]) -> Analysis:
        if paths == ["locked.log"]:  # what a permission or a bad disk comes to, which a test can't make
            raise InputError("can't read locked.log: permission denied")
        return real(paths)

    real = analysis.analyze
    monkeypatch.setattr(analysis, "analyze", analyze)
    Path("locked.log").write_bytes(b"")
    run = ckptlog("gate", "locked.log", good, bad)
    assert run.code == 2
    assert run.out.startswith("ERROR  locked.log\n  can't read locked.log: permission denied\n")
    assert run.out.splitlines()[-1] == "FAILED  3 logs: 1 passed, 1 failed, 1 error"


# --- policy and baseline -------------------------------------------------------------------------------


def test_check_policy_needs_no_log(ckptlog: Ckptlog, tmp_path: Path) -> None:
    run = ckptlog("gate", "--check-policy")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("no policy file here; the default policy: fails on arrival-rejection,")
    (tmp_path / "ckptlog.toml").write_text(
        '[gate]\nfail_on = ["error"]\n[[gate.check]]\nexpr = "count() > 1"\n'
    )
    assert ckptlog("gate", "--check-policy").out == "ckptlog.toml: fails on error; 1 check\n"
    assert ckptlog("gate", "--check-policy", "-o", "said.txt").out == ""
    assert (tmp_path / "said.txt").read_text() == "ckptlog.toml: fails on error; 1 check\n"


def test_schema_is_a_json_schema(ckptlog: Ckptlog) -> None:
    run = ckptlog("gate", "--schema")
    schema = json.loads(run.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate({"gate": {"fail_on": ["error"]}})


def test_the_policy_of_the_folder_is_used(ckptlog: Ckptlog, bad: str) -> None:
    Path("ckptlog.toml").write_text(
        '[gate]\nfail_on = ["context-shift"]\n[[gate.check]]\nname = "budget"\n'
        "expr = \"count(outcome == 'checkpoint-reprefill' and severity == 'costly') <= 2\"\n"
    )
    run = ckptlog("gate", bad)
    assert run.code == 0
    assert "+ budget: 2, at most 2 allowed" in run.out
    assert ckptlog("gate", bad, "--format", "json").code == 0
    assert json.loads(ckptlog("gate", bad, "-f", "json").out)["policy"] == "ckptlog.toml"


def test_a_baseline_is_written_and_judged_against(ckptlog: Ckptlog, good: str, bad: str) -> None:
    run = ckptlog("gate", good, "--write-baseline", "made/baseline.json")
    assert run.code == 0
    assert run.err == "ckptlog: baseline of 1 log written to made/baseline.json\n"
    assert ckptlog("gate", good, "--baseline", "made/baseline.json").code == 0
    run = ckptlog("gate", bad, "--baseline", "made/baseline.json")
    flowing = " ".join(run.out.split())
    assert run.code == 1
    assert "x reuse against the baseline: 0.751, was 0.83; 0.01 worse is allowed" in flowing
    assert "since the baseline: --ctx-checkpoints 4 -> 2" in flowing


def test_the_policys_baseline_is_beside_the_policy(ckptlog: Ckptlog, good: str, bad: str) -> None:
    Path("ci").mkdir()
    Path("ci/ckptlog.toml").write_text(
        '[gate]\nfail_on = []\n[gate.baseline]\nfile = "base.json"\nmax_regression = {n_lost = "10%"}\n'
    )
    # with --write-baseline it is not looked for: the first one has to be written somehow
    assert ckptlog("gate", good, "--policy", "ci/ckptlog.toml", "--write-baseline", "ci/base.json").code == 0
    assert ckptlog("gate", good, "--policy", "ci/ckptlog.toml").code == 0
    run = ckptlog("gate", bad, "--policy", "ci/ckptlog.toml")
    assert run.code == 1
    assert "x n_lost against the baseline: 371, was 31; 10 % worse is allowed" in run.out


def test_no_baseline_of_a_log_that_could_not_be_judged(ckptlog: Ckptlog) -> None:
    Path("empty.log").write_bytes(b"")
    run = ckptlog("gate", "empty.log", "--write-baseline", "b.json")
    assert run.code == 3
    assert "no baseline written: empty.log could not be judged" in run.err
    assert not Path("b.json").exists()


def test_unknown_fails_unless_allowed(ckptlog: Ckptlog, log: Log, good: str) -> None:
    # a turn whose server's end is missing, and with it every figure
    lines = subprocess.run(["gzip", "-dc", good], capture_output=True, check=True).stdout.splitlines(
        keepends=True
    )
    launch = next(n for n, line in enumerate(lines) if b"launch_slot_" in line and b"processing task" in line)
    Path("cut.log").write_bytes(b"".join(lines[: launch + 1]))
    run = ckptlog("gate", "cut.log")
    assert run.code == 1
    assert "x no unknown: 1 turn" in run.out
    run = ckptlog("gate", "cut.log", "--allow-unknown")
    assert run.code == 0
    assert "! no unknown: 1 turn" in run.out


# --- outputs -------------------------------------------------------------------------------------------


def test_all_outputs_in_one_go(ckptlog: Ckptlog, bad: str) -> None:
    outputs = ["--junit", "out/a/junit.xml", "--sarif", "out/b/gate.sarif", "--gitlab", "out/c/gitlab.json"]
    run = ckptlog("gate", bad, *outputs, "--format", "json", "-o", "out/d/gate.json")
    assert (run.code, run.out) == (1, "")
    assert sum(suite.failures for suite in JUnitXml.fromfile("out/a/junit.xml")) == 1
    assert json.loads(Path("out/b/gate.sarif").read_bytes())["runs"][0]["results"]
    assert len(json.loads(Path("out/c/gitlab.json").read_bytes())) == 2
    verdict = json.loads(Path("out/d/gate.json").read_bytes())
    assert verdict["passed"] is False
    assert [turn["turn"] for check in verdict["logs"][0]["checks"] for turn in check["turns"]] == [8, 10]
    assert not list(Path("out").rglob(".*"))


def test_output_is_the_same_every_time_and_everywhere(
    ckptlog: Ckptlog, good: str, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outputs(folder: str) -> dict[str, bytes]:
        Path(folder, "logs").mkdir(parents=True)
        for file in (good, bad):
            shutil.copy(file, Path(folder, "logs"))
        with monkeypatch.context() as elsewhere:
            elsewhere.chdir(folder)
            args = [
                "--junit",
                "j.xml",
                "--sarif",
                "s.json",
                "--gitlab",
                "g.json",
                "--write-baseline",
                "b.json",
            ]
            ckptlog("gate", "logs", *args, "-o", "t.txt")
            ckptlog("gate", "logs", "-f", "json", "-o", "v.json")
            ckptlog("compare", *sorted(str(p) for p in Path("logs").iterdir()), "-f", "json", "-o", "c.json")
            return {file.name: file.read_bytes() for file in Path().iterdir() if file.is_file()}

    first, second = outputs("first-place"), outputs("second-place/and/deeper")
    assert first.keys() == {"j.xml", "s.json", "g.json", "b.json", "t.txt", "v.json", "c.json"}
    assert first == second
    assert not any(b"-place" in content for content in first.values())


def test_github(ckptlog: Ckptlog, bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    run = ckptlog("gate", bad, "--github")
    assert run.code == 1
    assert sum(line.startswith("::error file=") for line in run.out.splitlines()) == 1
    written = Path("summary.md").read_text()
    assert written.startswith("before\n## ckptlog gate: failed\n")
    run = ckptlog("gate", bad, "--github", "--format", "json")
    json.loads(run.out)
    assert run.err.startswith("::error file=")


def test_a_job_summary_that_cannot_be_written(
    ckptlog: Ckptlog, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/such/folder/summary.md")
    run = ckptlog("gate", good, "--github")
    assert run.code == 2
    assert "can't write the job summary no/such/folder/summary.md" in run.err


def test_an_existing_output_keeps_its_content_when_the_new_one_fails(ckptlog: Ckptlog, good: str) -> None:
    Path("out").mkdir()
    Path("out/junit.xml").write_text("old")
    Path("out").chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        run = ckptlog("gate", good, "--junit", "out/junit.xml")
        if run.code == 0:  # root may write anywhere
            pytest.skip("this user may write into a read-only folder")
        assert run.code == 2
        assert Path("out/junit.xml").read_text() == "old"
    finally:
        Path("out").chmod(0o755)


def test_stdin(good: str) -> None:
    log = subprocess.run(["gzip", "-dc", good], capture_output=True, check=True).stdout
    run = subprocess.run(
        [sys.executable, "-m", "ckptlog", "gate", "-", "-f", "json"],
        input=log,
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert json.loads(run.stdout)["logs"][0]["path"] == "-"


def test_processes_give_what_one_process_gives(
    ckptlog: Ckptlog, good: str, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = ckptlog("gate", good, bad, "-f", "json", "--jobs", "1")
    monkeypatch.setattr(gate_run, "_WORTH_PROCESSES", 0)
    assert ckptlog("gate", good, bad, "-f", "json", "--jobs", "2") == alone


# --- compare -------------------------------------------------------------------------------------------


def test_compare(ckptlog: Ckptlog, good: str, bad: str) -> None:
    run = ckptlog("compare", good, bad)
    flowing = " ".join(run.out.split())
    assert (run.code, run.err) == (0, "")
    assert "WORSE 2 turns got worse, failed went from 0 to 2, reuse went from 0.83 to 0.751" in flowing
    assert "--ctx-checkpoints 4 -> 2" in flowing
    assert "turn 8 (line 367): restored -> checkpoint-reprefill, 170 -> 0 of 224 tokens reused" in flowing
    assert "All 10 turns correspond." in flowing


def test_compare_as_json(ckptlog: Ckptlog, good: str, bad: str) -> None:
    found = json.loads(ckptlog("compare", good, bad, "--format", "json").out)
    assert [change["new"]["turn"] for change in found["worse"]] == [8, 10]
    assert found["matched"] == 10
    assert {"run": 0, "name": "--ctx-checkpoints", "old": "4", "new": "2"} in found["settings"]


def test_a_server_that_died_while_idle_is_warned_of(ckptlog: Ckptlog) -> None:
    """It fails no check: all turns ended well."""
    run = ckptlog("gate", str(Path(__file__).parents[1] / "data" / "binary" / "10434" / "again-lv3.log.gz"))
    assert run.code == 0
    assert "warning: The server was killed, or crashed, while it was idle" in run.err
