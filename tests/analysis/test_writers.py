"""Several servers in one wrapped file: each has the turns that its own log has."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from ckptlog.analysis import Analysis, analyze
from ckptlog.analysis.parts import Part, Span, Undivided
from ckptlog.intake.writers import Writers
from ckptlog.records import Report
from ckptlog.report.redact import redacted
from ckptlog.report.text import render_text
from ckptlog.tui.book import Book
from tests.conftest import differences, plain_report

Lines = list[str]
#: how server ``i`` of two writes its ``n``-th line, and the names that are told of the two
Form = tuple[Callable[[int, int, str], str], tuple[str, str]]


def clock(n: int) -> str:
    return f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"


NAMES = ("chat", "title")
FORMS: dict[str, Form] = {
    "docker compose": (lambda i, n, line: f"{f'llama-{NAMES[i]}-1':13s} | {line}", ("llama-chat-1", "llama-title-1")),
    "replicas": (lambda i, n, line: f"llama-{i + 1}  | {line}", ("llama-1", "llama-2")),
    "docker compose -t": (lambda i, n, line: f"{NAMES[i]}-1 | 2026-05-14T{clock(n)}.{n:09d}Z {line}", ("chat-1", "title-1")),
    "docker compose, colours": (
        lambda i, n, line: f"\x1b[3{i + 3}m{NAMES[i]}-1 | \x1b[0m{line}", ("chat-1", "title-1"),
    ),
    "docker service": (lambda i, n, line: f"llm_{NAMES[i]}.1.x7k2m9q0@node{i}    | {line}", ("llm_chat.1.x7k2m9q0@node0", "llm_title.1.x7k2m9q0@node1")),
    "podman-compose": (lambda i, n, line: f"[{NAMES[i]}] | {line}", ("[chat]", "[title]")),
    "foreman": (lambda i, n, line: f"22:40:00 {NAMES[i]}.1  | {line}", ("chat.1", "title.1")),
    "pm2": (lambda i, n, line: f"{i}|llama  | {line}", ("0|llama", "1|llama")),
    "kubectl logs --prefix": (lambda i, n, line: f"[pod/llama-{i}/server] {line}", ("llama-0/server", "llama-1/server")),
    "kail": (lambda i, n, line: f"default/llama-{i}[server]: {line}", ("default/llama-0[server]", "default/llama-1[server]")),
    "journald": (lambda i, n, line: f"Dec 03 {clock(n)} tuba llama-server[{240 + i}]: {line}", ("llama-server[240]", "llama-server[241]")),
    "journald, two units": (lambda i, n, line: f"2026-05-23T{clock(n)}+0200 tuba {NAMES[i]}[{70 + i}]: {line}", ("chat[70]", "title[71]")),
    "journald, two hosts": (lambda i, n, line: f"Dec 03 {clock(n)} gpu{i} llama: {line}", ("llama", "gpu1 llama")),
    "docker compose under journald": (
        lambda i, n, line: f"Dec 03 {clock(n)} tuba docker-compose[812]: {NAMES[i]}-1 | {line}",
        ("docker-compose[812]: chat-1", "docker-compose[812]: title-1"),
    ),
    "syslog, RFC 5424": (lambda i, n, line: f"<3{i}>1 2026-10-11T{clock(n)}.003Z tuba llama {77 + i} - - {line}", ("llama 77", "llama 78")),
    "journald json": (
        lambda i, n, line: json.dumps({"_PID": str(7 + i), "_SYSTEMD_UNIT": f"{NAMES[i]}.service", "MESSAGE": line}),
        ("chat[7]", "title[8]"),
    ),
    "docker's journald driver": (
        lambda i, n, line: json.dumps({"MESSAGE": line, "_PID": "812", "CONTAINER_NAME": NAMES[i]}), NAMES,
    ),
    "pods in json": (
        lambda i, n, line: json.dumps({"kubernetes": {"pod_name": f"llm-{i}", "container_name": "server"}, "message": line}),
        ("llm-0/server", "llm-1/server"),
    ),
}  # fmt: skip


def merged(logs: Iterable[Lines], form: Callable[[int, int, str], str], *, most: int = 12, seed: int = 1) -> Lines:
    """The logs' lines in turns, a few of each at a time."""
    rng, left, found = random.Random(seed), [(i, list(reversed(log))) for i, log in enumerate(logs)], []
    while left:
        i, log = rng.choices(left, [len(log) for _, log in left])[0]
        for _ in range(min(rng.randint(1, most), len(log))):
            found.append(form(i, len(found), log.pop()))
        left = [pair for pair in left if pair[1]]
    return found


def in_tail(logs: Iterable[Lines]) -> Lines:
    """As ``tail -f`` of two files."""
    marked = merged(logs, lambda i, n, line: f"{i}{line}")
    found: Lines = []
    for before, line in pairwise(["", *marked]):
        if line[:1] != before[:1]:
            found += [*([""] if found else []), f"==> /var/log/{NAMES[int(line[0])]}.log <=="]
        found.append(line[1:])
    return found


def of_server(report: Report, *names: str | None) -> Any:
    """What a report says of these servers, as if it were of their log alone."""
    found = plain_report(report, places=False)
    runs = [run for run in found["runs"] if run["server"] in names]
    numbers = {run["run"]: number for number, run in enumerate(runs)}
    told: dict[str, list[Any]] = {"runs": [{**run, "run": numbers[run["run"]], "server": None} for run in runs]}
    for what in ("turns", "checkpoints"):
        told[what] = [
            {**item, "run": numbers[item["run"]]} for item in found[what] if item["run"] in numbers
        ]
    return told


LOGS = [
    ("b11549/hybrid/newconv_ck2", "b11549/swa/fifo"),
    ("b10068/hybrid/save_restore", "b11549/hybrid/debug_window"),
    ("b8672/plain/lv4", "b8672/swa/lv4"),
]


#: no rule knows these wrappers: what they look like is learned from the lines that have a head
LEARNED = frozenset({"docker service", "podman-compose", "foreman"})


@pytest.mark.parametrize("pair", LOGS)
@pytest.mark.parametrize("form", FORMS)
def test_each_server_has_the_turns_of_its_own_log(
    form: str, pair: tuple[str, str], recorded: Callable[[str], Any], analyse: Callable[..., Analysis]
) -> None:
    wrap, names = FORMS[form]
    logs = [recorded(name) for name in pair]
    if form in LEARNED and pair == LOGS[2]:
        pytest.skip("of the second name, what stands before its first heads (start-up lines without any) is not read")
    report = analyse(merged([log.lines for log in logs], wrap)).report
    for i, (log, name) in enumerate(zip(logs, names, strict=True)):
        alone = analyse([wrap(i, n, line) for n, line in enumerate(log.lines)]).report
        assert differences(of_server(alone, None), of_server(report, name)) == [], name
    assert {run.server for run in report.runs} == set(names)
    assert report.warnings == []


@pytest.mark.parametrize("pair", LOGS)
def test_tail_of_two_files(
    pair: tuple[str, str], recorded: Callable[[str], Any], analyse: Callable[..., Analysis]
) -> None:
    logs = [recorded(name) for name in pair]
    report = analyse(in_tail([log.lines for log in logs])).report
    for log, name in zip(logs, NAMES, strict=True):
        assert differences(of_server(log.report, None), of_server(report, f"/var/log/{name}.log")) == []


def test_a_log_that_only_quotes_such_heads_is_one_servers(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    lines = list(recorded("b11549/hybrid/debug_window").lines)
    for at in (300, 200):
        lines[at:at] = ["", "==> other.log <=="]
    assert {run.server for run in analyse(lines).report.runs} == {None}


@pytest.mark.parametrize("form", ["docker compose", "journald", "journald json", "docker compose under journald"])
@pytest.mark.parametrize("size", [1, 7, 4000])
def test_however_it_is_cut(
    form: str, size: int, recorded: Callable[[str], Any], analyse: Callable[..., Analysis], changed: Callable[..., Any]
) -> None:
    wrap, _ = FORMS[form]
    log = merged([recorded(name).lines for name in ("b10068/hybrid/save_restore", "b11549/hybrid/debug_window")], wrap)
    data = [f"{line}\n".encode() for line in log]
    pieces = [b"".join(data[at : at + size]) for at in range(0, len(data), size)]
    assert changed(analyse(log).report, analyse(b"", pieces=pieces).report) == []


def test_a_router_in_a_service(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    names = ("b11549/hybrid/lv4", "b11549/swa/deep_edit", "b11549/plain/append")
    logs = [recorded(name) for name in names]
    heads = ("router-1  | [51877] ", "router-1  | [  807] ", "embed-1   | ")
    report = analyse(merged([log.lines for log in logs], lambda i, n, line: heads[i] + line)).report
    assert [(run.server, run.port) for run in sorted(report.runs, key=lambda run: run.port or 0)] == [
        ("embed-1", None), ("router-1", 807), ("router-1", 51877),
    ]  # fmt: skip
    for log, port in zip(logs, (51877, 807, None), strict=True):
        (run,) = (run for run in report.runs if run.port == port)
        alone, own = log.report.turns, [turn for turn in report.turns if turn.run == run.run]
        assert [(t.task, t.outcome, t.cause, t.n_common, t.n_cached) for t in own] == [
            (t.task, t.outcome, t.cause, t.n_common, t.n_cached) for t in alone
        ]


OTHERS = {
    "docker compose": ("llama-1  | ", ["nginx-1  | 172.18.0.1 - GET /slot HTTP/1.1 200", "nginx-1  | srv a build: 12 (ab)", "db-1     | LOG:  slot 1 | ready"]),
    "journald": ("Dec 03 10:00:00 tuba llama-server[24102]: ", ["Dec 03 10:00:00 tuba systemd[1]: Started srv llama.service.", "Dec 03 10:00:00 tuba kernel: slot [1] ok"]),
    "journald json": ("", ['{"_PID":"1","MESSAGE":"Started srv llama.service"}']),
}  # fmt: skip


@pytest.mark.parametrize("form", OTHERS)
def test_another_program_is_no_server(
    form: str, recorded: Callable[[str], Any], analyse: Callable[..., Analysis], changed: Callable[..., Any]
) -> None:
    log = recorded("b11549/hybrid/debug_window")
    head, others = OTHERS[form]
    wrapped = [head + line if head else json.dumps({"_PID": "7", "MESSAGE": line}) for line in log.lines]
    mixed = list(others)
    for n, line in enumerate(wrapped):
        mixed += [line, *(others if n % 3 == 0 else [])]
    alone, report = analyse(wrapped).report, analyse(mixed).report
    assert [d for d in changed(alone, report, places=False) if ".unknown_slot_lines" not in d[0]] == []
    assert {run.server for run in report.runs} == {None}


def test_a_containers_line_is_not_the_daemons() -> None:
    """Both have the daemon's process number; whichever was met last."""
    writers = Writers()
    daemon, one, two = (
        json.dumps({"_PID": "812", **names, "MESSAGE": "srv  init: x"})
        for names in ({}, {"CONTAINER_NAME": "chat"}, {"CONTAINER_NAME": "title"})
    )
    writers.learn(daemon)
    found: list[str] = []
    for lines in ([one], [daemon, one, two], [daemon, daemon], [two, one], [one], [daemon]):
        owners = writers.of(pl.Series("line", lines))
        numbers = [owners] * len(lines) if isinstance(owners, int) else owners
        found += [writers.found[number].name for number in numbers]
    assert found == ["chat", "[812]", "chat", "title", "[812]", "[812]", "title", "chat", "chat", "[812]"]


@pytest.mark.parametrize("in_json", [False, True])
def test_a_server_started_anew_has_another_process(
    in_json: bool, recorded: Callable[[str], Any], analyse: Callable[..., Analysis], changed: Callable[..., Any]
) -> None:
    log = recorded("b10068/hybrid/save_restore")
    start = [n for n, line in enumerate(log.lines) if "initializing ..." in line or "build_info" in line]
    second = next(n for n in start if n > 200)
    # killed in the middle of its last turn
    for gap in (0, 25):
        kept = [(100 + (n >= second), line) for n, line in enumerate(log.lines) if not second - gap <= n < second]
        wrapped = [
            json.dumps({"_PID": str(pid), "_SYSTEMD_UNIT": "llama.service", "MESSAGE": line})
            if in_json
            else f"Dec 03 10:00:00 tuba llama-server[{pid}]: {line}"
            for pid, line in kept
        ]
        report = analyse(wrapped).report
        assert changed(analyse([line for _, line in kept]).report, report, places=False) == []
        assert len(report.runs) == 2
        assert {run.server for run in report.runs} == {None}


def test_two_servers_of_which_one_starts_anew_are_no_crash(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    """The other one's open turn is not ended by that."""
    one, other = recorded("b11549/hybrid/append").lines, recorded("b11549/hybrid/newconv_ck2").lines
    wrap = FORMS["journald"][0]
    lines = merged([one[:-30], other[:300]], wrap)
    lines += [f"Dec 03 10:00:00 tuba llama-server[999]: {line}" for line in other]
    assert "restart" not in [turn.ended for turn in analyse(lines).report.turns]


def test_many_short_lived_processes(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    """A server that crashes again and again: no process is counted as given up, and the one that works keeps its state."""
    log = recorded("b11549/hybrid/append")
    at = len(log.lines) - 60
    start = log.lines[: next(n for n, line in enumerate(log.lines) if " slot " in line)]
    crashes = [f"Dec 03 10:00:00 tuba llama-server[{1000 + n}]: {line}" for n in range(300) for line in start]
    own = [f"Dec 03 10:00:00 tuba llama-server[7]: {line}" for line in log.lines]
    report = analyse([*own[:at], *crashes, *own[at:]]).report
    assert report.warnings == []
    assert len(report.runs) == 301
    assert differences(of_server(log.report, None)["turns"], of_server(report, "llama-server[7]")["turns"]) == []


@pytest.mark.parametrize("head", ["INFO  | ", "stderr | ", "{n} | ", "[stdout] | ", "W | "])
def test_what_is_no_name(head: str, recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    """A level, a stream or a number in front of each line makes no server, whatever else stands there later."""
    lines = [head.format(n=n).replace("INFO ", "WARN " if n % 3 else "INFO ") + line for n, line in enumerate(recorded("b11549/hybrid/append").lines)]
    assert {run.server for run in analyse(lines).report.runs} <= {None}


def without_stamps(lines: Lines) -> Lines:
    return [re.sub(r"^\d+\.\d\d\.\d{3}\.\d{3} [IWED] ", "", line) for line in lines]


def test_where_nothing_tells_them_apart_the_tasks_do(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    """No wrapper and no clock: a slot that goes on with a task after it was given to another one, a number given twice."""
    logs = [without_stamps(recorded(name).lines[170:]) for name in LOGS[0]]
    (warning,) = analyse(merged(logs, lambda i, n, line: line)).report.warnings
    assert "a task comes again after it was over" in warning
    assert "Give each server a file of its own" in warning
    assert all(analyse(log).report.warnings == [] for log in logs)


def test_no_recorded_log_is_taken_for_several_servers(log_name: str, recorded: Callable[[str], Any]) -> None:
    report = recorded(log_name).report
    assert {run.server for run in report.runs} <= {None}
    assert not any("several servers" in words for words in report.warnings)


def test_a_big_log_of_tail_is_read_in_one(tmp_path: Path, recorded: Callable[[str], Any]) -> None:
    path = tmp_path / "server.log"
    path.write_text("\n".join(in_tail([recorded(name).lines for name in LOGS[0]])))
    with pytest.raises(Undivided):
        Part(Span(str(path), 0, None))


def test_listings_of_two_processes_are_not_mixed(analyse: Callable[..., Analysis]) -> None:
    """Where a listing's lines are read in blocks, a process that writes into it ends the block."""
    from ckptlog.events import Extractor
    from ckptlog.intake.reader import Feeder
    from ckptlog.intake.sources import Source
    from ckptlog.timeline.kinds import BLOCK_KINDS, EVIDENCE_KINDS, NEEDED_KINDS

    entry = "Dec 03 10:00:00 tuba llama[{pid}]: 0.01.000.000 I srv        update:    - prompt 0x7f206032dbf0: {n:7d} tokens, checkpoints:  5,     0.529 MiB\n"
    data = "".join(entry.format(pid=5001 + (n % 10 > 4), n=n % 100) for n in range(30_000)).encode()
    extractor, rows = Extractor(NEEDED_KINDS, EVIDENCE_KINDS, BLOCK_KINDS), Counter[int]()
    for chunk in Feeder(Source("server.log")).feed(data):
        for owner, events in extractor.windows.feed(extractor.read(chunk)):
            for event in events:
                numbers = [row[0] for row in event.f["rows"]] if "rows" in event.f else [event.f["n_tokens"]]
                assert {1 + (n % 10 > 4) for n in numbers} == {owner}
                rows[owner] += len(numbers)
    assert rows == {1: 15_000, 2: 15_000}
    assert any(one is not None and one.taken > 1000 for one in extractor.lanes._lanes.values())


def test_the_reports_name_the_servers(tmp_path: Path, recorded: Callable[[str], Any]) -> None:
    path = tmp_path / "server.log"
    wrap, names = FORMS["docker compose"]
    path.write_text("\n".join(merged([recorded(name).lines for name in LOGS[0]], wrap)))
    report = analyze(path).report
    text = "\n".join(line.plain for line in render_text(report, 100))
    for name in names:
        assert re.search(rf"llama-server, b.*, {name}$", text, re.MULTILINE)
        assert f"\n{name}, slot 0\n" in text
    assert [lane.name for lane in Book(report).lanes.values()] == [f"slot 0, {name}" for name in names]
    secret = msgspec.json.encode(redacted(report)).decode()
    assert '"server":"<server-1>"' in secret
    assert not any(name in secret for name in names)


def test_the_service_manager_tells_of_a_crash(recorded: Callable[[str], Any], analyse: Callable[..., Analysis]) -> None:
    """It writes under a name of its own, and is no server."""
    lines = recorded("b10068/hybrid/append").lines
    last = max(i for i, line in enumerate(lines) if "processing task" in line)
    journal = [f"Dec 03 10:00:00 tuba llama-server[24102]: {line}" for line in lines[: last + 3]]
    end = "Dec 03 10:00:01 tuba systemd[1]: llama.service: Main process exited, code=dumped, status=6/ABRT"
    turns = analyse([*journal, end]).report.turns
    assert (turns[-1].outcome, turns[-1].variant) == ("error", "crash")
    assert analyse(journal).report.turns[-1].outcome != "error"
    spoke_on = analyse([*journal[:-1], end, journal[-1]]).report.turns
    assert spoke_on[-1].outcome != "error"


@pytest.mark.parametrize("size", [500, 100_000])
def test_a_window_that_another_servers_lines_outlast(size: int) -> None:
    """Its other half never came: what was held back for it is given on, whoever writes meanwhile."""
    from ckptlog.events import Extractor
    from ckptlog.intake.reader import Feeder
    from ckptlog.intake.sources import Source
    from ckptlog.timeline.kinds import EVIDENCE_KINDS, NEEDED_KINDS

    lines = [
        "chat  | slot launch_slot_: id  0 | task 7 | processing task",
        "chat  | slot update_slots: id  0 | task 7 | old: ... and | then",
        "chat  | slot      release: id  0 | task 7 | stop processing: n_tokens = 512, truncated = 0",
        *["title | slot launch_slot_: id  0 | task 1 | processing task"] * 2100,
    ]
    extractor, feeder, kinds = Extractor(NEEDED_KINDS, EVIDENCE_KINDS), Feeder(Source("server.log")), []
    data = "".join(f"{line}\n" for line in lines).encode()
    for at in range(0, len(data), size):
        for chunk in feeder.feed(data[at : at + size]):
            kinds += [e.kind for owner, events in extractor.windows.feed(extractor.read(chunk)) if owner == 1 for e in events]
    assert kinds == ["processing_task", "mismatch_old", "release"]


def test_a_stamp_is_of_the_server_whose_window_it_is_in(analyse: Callable[..., Analysis]) -> None:
    """Behind another server's line a window's text is its own, however the log is cut."""
    lines = [
        *["title | slot launch_slot_: id  0 | task 1 | processing task"] * 4,
        "chat  | slot launch_slot_: id  0 | task 7 | processing task",
        "chat  | 12:30:01",
        "title | slot launch_slot_: id  0 | task 1 | processing task",
        "chat  | slot update_slots: id  0 | task 7 | old: ... and | then",
        "chat  | 12:30:02",
        "chat  | slot update_slots: id  0 | task 7 | new: ... and | now",
        "chat  | slot update_slots: id  0 | task 7 |    1    2",
        "chat  | slot update_slots: id  0 | task 7 |    1    3",
    ]
    data = [f"{line}\n".encode() for line in lines]
    for report in (analyse(lines).report, analyse(b"", pieces=data).report):
        (turn,) = (turn for turn in report.turns if turn.mismatch is not None)
        assert turn.mismatch.old == "then\n12:30:02"
