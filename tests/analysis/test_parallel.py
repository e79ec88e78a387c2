"""A big log read by several processes: the same report as from one, or not divided at all."""

from __future__ import annotations

import gzip
import random
import sys
from pathlib import Path

import msgspec
import pytest

from ckptlog import processes
from ckptlog.analysis import Analysis, analyze, parallel
from ckptlog.analysis.parts import Joined, Part, Result, Undivided, divided
from ckptlog.cli import reading
from ckptlog.report.as_json import render_json

analyze_module = sys.modules["ckptlog.analysis.analyze"]
DATA = Path(__file__).parents[1] / "data" / "logs"
LOGS = sorted(DATA.glob("b*/*/*.log.gz"))


def concatenated(path: Path, logs: list[Path]) -> Path:
    """Server after server into one file, as a service manager's redirection does."""
    with path.open("wb") as file:
        for log in logs:
            text = gzip.decompress(log.read_bytes())
            file.write(text if text.endswith(b"\n") else text + b"\n")
    return path


def joined(path: Path, parts: int) -> Analysis:
    """As by several processes, but in this one; results are copied as if they came from another."""
    works = [Part(span) for span in divided(str(path), parts, 0)]
    sent = [msgspec.msgpack.encode(work.result()) for work in works]
    whole = Joined(str(path), [msgspec.msgpack.decode(result, type=Result) for result in sent])
    at = 0
    for work, chosen in zip(works, whole.chosen(), strict=True):
        for i, fixes in work.number(chosen).items():
            whole.turns[at + i].fixes = fixes
        at += work.turns
    return Analysis(whole)


@pytest.mark.parametrize("seed", range(4))
def test_parts_give_the_report_of_the_whole(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = concatenated(tmp_path / "server.log", rng.sample(LOGS, 20))
    whole = analyze(path, processes=1)
    for parts in (2, 5):
        in_parts = joined(path, parts)
        assert render_json(in_parts.report) == render_json(whole.report)
        assert in_parts.drift == whole.drift


def test_parts_give_what_happened_outside_of_turns(tmp_path: Path) -> None:
    """A killed server's end is told by the start of the next, which is in the next part."""
    folder = DATA.parent / "binary" / "10434"
    names = ("again-lv3", "pre-lv3", "slotf-lv3", "sig-kill-gen-lv4", "drop-lv4", "sig-int-first-lv4", "tmpl-lv3", "slotf-foreign-lv4")
    path = concatenated(tmp_path / "server.log", [folder / f"{name}.log.gz" for name in names])
    whole = analyze(path, processes=1)
    assert {each.kind for run in whole.report.runs for each in run.incidents} == {"server-ended", "request-failed", "slot-file-failed"}
    divisions = 0
    for parts in (2, 3, 4):
        try:
            in_parts = joined(path, parts)
        except Undivided:
            continue
        divisions += 1
        assert render_json(in_parts.report) == render_json(whole.report)
    assert divisions


def test_processes_give_the_report_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = concatenated(tmp_path / "server.log", [log for log in LOGS if log.name == "lv4.log.gz"] * 2)
    monkeypatch.setattr(processes, "WORTH_BYTES", 1)
    monkeypatch.setattr(parallel, "LEAD_BYTES", 0)
    seen: list[int] = []
    several = analyze(path, processes=2, progress=seen.append)
    assert isinstance(several.analyzer, Joined)
    assert seen
    one = analyze(path, processes=1)
    assert render_json(several.report) == render_json(one.report)
    assert [len(run.turns) for run in several.timeline] == [len(run.turns) for run in one.timeline]


def test_a_helper_that_dies_leaves_the_log_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = concatenated(tmp_path / "server.log", [log for log in LOGS if log.name == "lv4.log.gz"])
    monkeypatch.setattr(processes, "WORTH_BYTES", 1)
    monkeypatch.setattr(processes, "SERVE", "raise SystemExit(1)")
    analysis = analyze(path, processes=2)
    assert not isinstance(analysis.analyzer, Joined)
    assert analysis.report.turns


@pytest.mark.parametrize("name", ["divided", "processes.Helper"])
def test_what_the_system_refuses_leaves_the_log_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = concatenated(tmp_path / "server.log", [log for log in LOGS if log.name == "lv4.log.gz"])

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(processes, "WORTH_BYTES", 1)
    monkeypatch.setattr(f"ckptlog.analysis.parallel.{name}", refused)
    analysis = analyze(path, processes=2)
    assert not isinstance(analysis.analyzer, Joined)
    assert analysis.report.turns


def test_helpers_are_stopped_where_there_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int] = []

    class Few:
        made = 0

        def __init__(self) -> None:
            if Few.made == 2:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            Few.made += 1
            self.number = Few.made

        def stop(self) -> None:
            stopped.append(self.number)

    monkeypatch.setattr(processes, "Helper", Few)
    with pytest.raises(BlockingIOError):
        processes.take(3)
    processes.dismiss()
    assert sorted(stopped) == [1, 2]


@pytest.mark.parametrize("timeline", [True, False])
def test_no_helper_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timeline: bool) -> None:
    path = concatenated(tmp_path / "server.log", [LOGS[0]])
    monkeypatch.setattr(processes, "WORTH_BYTES", 1)
    monkeypatch.setattr(processes, "how_many", lambda *_: 2)
    assert reading.read([str(path)], quiet=True, timeline=timeline).report.turns
    assert not processes.are_waiting()


def test_one_server_is_not_divided(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(gzip.decompress(LOGS[0].read_bytes()))
    with pytest.raises(Undivided):
        divided(str(path), 2, 0)


def test_a_fall_of_the_clock_that_begins_no_run_is_not_taken_for_one(tmp_path: Path) -> None:
    """The first event of a part must be what begins a run: here the clock falls on a line that is none."""
    line = b"%d.%02d.000.000 I slot      release: id  0 | task %d | stop processing: n_tokens = 9, truncated = 0\n"
    text = b"".join(line % (1 + i // 60, i % 60, i) for i in range(600))
    text += b"0.00.000.100 I something that the grammar does not know\n"
    text += b"".join(line % (90 + i // 60, i % 60, i) for i in range(600))
    path = tmp_path / "server.log"
    path.write_bytes(text)
    with pytest.raises(Undivided):
        joined(path, 2)


def test_a_timeline_that_is_kept_in_part_changes_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a budget so small that most runs' turns go, the same runs' fixes get their numbers."""
    path = concatenated(tmp_path / "server.log", [log for log in LOGS if log.name == "lv4.log.gz"] * 3)
    monkeypatch.setattr("ckptlog.verdict.replayed.MOST_RUNS", 2)
    monkeypatch.setattr("ckptlog.verdict.replayed.MOST_TURNS", 30)
    monkeypatch.setattr("ckptlog.analysis.kept.MOST_RUNS", 2)
    monkeypatch.setattr("ckptlog.analysis.kept.MOST_TURNS", 30)
    whole = analyze(path, processes=1, timeline=True)
    monkeypatch.setattr(analyze_module, "BIG_BYTES", 1)
    frugal = analyze(path, processes=1)
    kept = sum(len(run.turns) for run in frugal.analyzer.runs)
    assert 0 < kept < len(whole.report.turns)
    assert render_json(frugal.report) == render_json(whole.report)
    assert [len(run.turns) for run in frugal.timeline] == [len(run.turns) for run in whole.timeline]
