"""``doctor``, ``explain``, ``sample``, ``schema``."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from ckptlog.report.explain import render_entries
from ckptlog.verdict.catalogue import Entry, entries

from .conftest import ROOT, SAMPLES, Run

Sample = Callable[[str], str]
INDEX = tomllib.loads((SAMPLES / "index.toml").read_text())["sample"]


def test_sample_lists_every_sample(ckptlog: Run) -> None:
    text = ckptlog("sample").stdout.decode()
    names = [line for line in text.splitlines() if line and not line[0].isspace()]
    assert names == [row["name"] for row in INDEX]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("row", INDEX, ids=lambda row: row["name"])
def test_sample_prints_the_log_as_it_is(row: dict[str, str], ckptlog: Run) -> None:
    assert ckptlog("sample", row["name"]).stdout == (SAMPLES / row["file"]).read_bytes()


def test_an_unknown_sample_names_the_nearest(ckptlog: Run) -> None:
    done = ckptlog("sample", "healty")
    assert (done.returncode, done.stderr) == (
        2,
        b"ckptlog: there is no sample 'healty'; did you mean healthy?\n",
    )


def test_explain_lists_everything_that_has_a_name(ckptlog: Run) -> None:
    text = ckptlog("explain").stdout.decode()
    for entry in entries():
        assert f"  {entry.name} " in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_every_name_is_explained(entry: Entry) -> None:
    assert entry.title
    lines = [line.plain for line in render_entries([entry], 80)]
    assert lines[0].startswith(entry.name)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("spelling", ["checkpoint-evicted", "Checkpoint_Evicted", " checkpoint evicted"])
def test_explain_is_not_strict_about_spelling(spelling: str, ckptlog: Run) -> None:
    done = ckptlog("explain", spelling)
    assert done.returncode == 0
    assert done.stdout.startswith(b"checkpoint-evicted  (cause)\n")


def test_a_name_of_two_kinds_is_explained_twice(ckptlog: Run) -> None:
    text = ckptlog("explain", "other-conversation").stdout.decode()
    assert "(cause)" in text
    assert "(trigger)" in text


def test_explain_of_something_unknown_names_the_nearest(ckptlog: Run) -> None:
    done = ckptlog("explain", "evicted")
    assert done.returncode == 2
    assert b"did you mean checkpoint-evicted" in done.stderr
    assert (
        ckptlog("explain", "qqqq").stderr
        == b"ckptlog: nothing is called 'qqqq'; `ckptlog explain` lists them all\n"
    )


def test_doctor_says_what_a_log_is(ckptlog: Run, sample_log: Sample) -> None:
    text = ckptlog("doctor", sample_log("evicted-system-prompt")).stdout.decode()
    assert "prefixed, utf-8" in text
    assert "hybrid memory" in text
    assert "every line of the server's own was understood" in text
    assert "llama-server ... -lv 4" in text


def test_doctor_numbers_runs_as_the_report_does(ckptlog: Run, sample_log: Sample) -> None:
    """By the number that --where and the JSON know, and only where there are several."""
    log = sample_log("restarted")
    for number in ("run 0", "run 1"):
        assert f"  {number}, lines" in ckptlog("doctor", log).stdout.decode()
        assert f"\n{number}, slot 0\n" in ckptlog("diagnose", log).stdout.decode()
    assert b"2 of 4 turns selected" in ckptlog("diagnose", log, "--where", "run == 1").stdout
    assert "run 0" not in ckptlog("doctor", sample_log("healthy")).stdout.decode()


def test_doctor_shows_where_a_line_drifted(ckptlog: Run, sample_log: Sample, tmp_path: Path) -> None:
    log = Path(sample_log("evicted-system-prompt")).read_text()
    changed = log.replace("pos_max = ", "pos_top = ")
    assert changed != log
    (tmp_path / "new.log").write_text(changed)
    done = ckptlog("doctor", "new.log")
    lines = done.stdout.decode().splitlines()
    row = next(n for n, line in enumerate(lines) if "pos_top" in line)
    caret = lines[row + 1].index("^ expected")
    assert lines[row][caret:].startswith("pos_top")
    assert "pos_max" in lines[row + 1] + lines[row + 2]
    assert done.returncode == 0
    assert json.loads(ckptlog("diagnose", "new.log", "-f", "json").stdout)["sources"][0]["drifted_lines"] > 0


def test_doctor_of_another_programs_log(ckptlog: Run, tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text("nginx: started\n")
    done = ckptlog("doctor", "other.log")
    assert done.returncode == 0
    assert b"no line of a llama-server" in done.stdout
    assert b"holds no line of a llama-server" in done.stdout


def test_the_schema_is_one_object(ckptlog: Run) -> None:
    schema = json.loads(ckptlog("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"Report", "TurnRecord", "RunRecord"} <= set(schema["$defs"])


def test_a_routers_own_log_sends_to_the_other_stream(ckptlog: Run, tmp_path: Path) -> None:
    (tmp_path / "router.log").write_text(
        "0.00.001.000 I srv  llama_server: initializing ...\n"
        "0.01.000.000 I srv  proxy_reques: proxying request to model gemma on port 42027\n"
    )
    done = ckptlog("diagnose", "router.log")
    assert done.returncode == 3
    assert b"only a router's own lines" in done.stderr
    text = ckptlog("doctor", "router.log").stdout.decode()
    assert "llama-server ... -lv 4 > server.log 2>&1" in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x00\x01\xff" * 100, "is binary data"),
        (b'{"messages": []}\n', "is JSON, not a log"),
        (b'10.0.0.1 - - [01/Jan/2026] "GET / HTTP/1.1" 200\n', "holds no line of a llama-server"),
    ],
)
def test_doctor_understands_nothing_of_what_is_no_log(
    content: bytes, says: str, ckptlog: Run, tmp_path: Path
) -> None:
    (tmp_path / "x.log").write_bytes(content)
    text = " ".join(ckptlog("doctor", str(tmp_path / "x.log")).stdout.decode().split())
    assert says in text
    assert "understood" not in text


def test_the_capturing_command_can_be_pasted(ckptlog: Run, sample_log: Sample, tmp_path: Path) -> None:
    path = sample_log("healthy")
    text = ckptlog("doctor", path).stdout.decode()
    assert re.search(
        r"(?m)^ *LLAMA_SERVER_SLOTS_DEBUG=1 LLAMA_SERVER_SLOTS_N_DIFF=20 \\\n +llama-server \.\.\.", text
    )
    windows = tmp_path / "windows.log"
    windows.write_bytes(Path(path).read_text().encode("utf-16"))
    text = ckptlog("doctor", str(windows)).stdout.decode()
    assert "$env:LLAMA_SERVER_SLOTS_DEBUG=1\n" in text
    assert 'cmd /c "llama-server ... -lv 4 2> server.log"' in text


def test_doctor_agrees_with_diagnose_on_checkpoints_made_before_the_log(ckptlog: Run) -> None:
    log = str(ROOT / "tests/data/field/03-router-np4-n-ctx-slot.log")
    assert b"which checkpoints existed before the log begins" in ckptlog("diagnose", log).stdout
    assert b"no      which checkpoints there were" in ckptlog("doctor", log).stdout


@pytest.mark.parametrize(
    "word",
    [
        "harmless",
        "costly",
        "lost",
        "slot",
        "hybrid",
        "plain",
        "recurrent",
        "swa",
        "checkpoint",
        "observed",
        "derived",
        "inferred",
        "cut",
        "refused",
        "re-prefill",
        "failed",
    ],
)
def test_the_words_of_a_report_are_explained(word: str) -> None:
    assert [entry.name for entry in entries() if entry.kind == "word" and entry.name == word] == [word]
