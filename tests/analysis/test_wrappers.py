"""The same log however it was captured: each wrapper, encoding and way of pasting gives the same report."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Lines = list[str]
Wrap = Callable[[Lines], Lines]

#: windows over several lines, old timing blocks and mid-line records, two servers, JSONL, colours, errors
LOGS = [
    "b11549/hybrid/debug_window",
    "b8672/plain/lv4",
    "b10068/hybrid/save_restore",
    "b11549/plain/json_log",
    "b11549/hybrid/fmt_colors",
    "b11549/plain/kv_full",
]


def each(form: Callable[[int, str], str]) -> Wrap:
    return lambda lines: [form(i, line) for i, line in enumerate(lines)]


def clock(i: int) -> str:
    return f"{i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}"


WRAPPERS: dict[str, Wrap] = {
    "docker compose": each(lambda i, line: f"llama-1  | {line}"),
    "pm2": each(lambda i, line: f"0|llama-server  | {line}"),
    "docker logs -t": each(lambda i, line: f"2026-02-15T{clock(i)}.{i:09d}Z {line}"),
    "docker compose -t": each(lambda i, line: f"llama-1  | 2026-02-15T{clock(i)}.{i:09d}Z {line}"),
    "docker's own file": each(
        lambda i, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-02-15T00:00:00.{i:09d}Z"})
    ),
    "journald short": each(lambda i, line: f"Dec 03 {clock(i)} tuba llama-server[24102]: {line}"),
    "journald short-iso": each(lambda i, line: f"2026-05-23T{clock(i)}+0200 tuba llama-server[7]: {line}"),
    "journald short-full": each(lambda i, line: f"Thu 2026-05-23 {clock(i)} CEST tuba llama-server[7]: {line}"),
    "journald short-monotonic": each(lambda i, line: f"[{i:5d}.567890] tuba llama-server[7]: {line}"),
    "journald json": each(lambda i, line: json.dumps({"_PID": "7", "MESSAGE": line, "PRIORITY": "6"})),
    "journald json, unescaped": each(
        lambda i, line: json.dumps(
            {"__REALTIME_TIMESTAMP": str(10**15 + i), "MESSAGE": line}, separators=(",", ":"), ensure_ascii=False
        )
    ),
    "syslog": each(lambda i, line: f"<30>Dec  3 {clock(i)} tuba llama-server[24102]: {line}"),
    "syslog, RFC 5424": each(lambda i, line: f"<34>1 2026-10-11T{clock(i)}.003Z tuba llama-server 77 - - {line}"),
    "kubernetes": each(lambda i, line: f"2026-01-01T{clock(i)}.{i:09d}Z stderr F {line}"),
    "kubectl logs --prefix": each(lambda i, line: f"[pod/llama-0/server] {line}"),
    "router": each(lambda i, line: f"[51877] {line}"),
    "router under docker compose": each(lambda i, line: f"router-1  | [ 8080] {line}"),
    "router under journald": each(lambda i, line: f"Dec 03 {clock(i)} tuba llama-server[24102]: [51877] {line}"),
    "dates in front": each(lambda i, line: f"2026-06-07 {clock(i)} {line}"),
    "quoted in Markdown": each(lambda i, line: f"> {line}"),
    "pasted between fences": lambda lines: ["Here is my log:", "", "```", *lines, "```", "", "Thanks!"],
    "quoted between fences": lambda lines: ["> ```text", *(f"> {line}" for line in lines), "> ```"],
}


@pytest.mark.parametrize("name", LOGS)
def test_every_wrapper(
    name: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    log = recorded(name)
    found = {}
    for wrapper, wrap in WRAPPERS.items():
        report = analyse(wrap(log.lines)).report
        wrong = [d for d in changed(log.report, report, places=False) if not d[0].endswith(".port")]
        if "router" in wrapper:
            assert {run.port for run in report.runs} <= {51877, 8080}
            assert all(run.port for run in report.runs)
        if wrong:
            found[wrapper] = wrong[:3]
    assert found == {}


def stamp(i: int) -> str:
    return f"2026-05-16 {clock(i)}.{i % 1000:03d}"


def python_bytes(_: int, line: str) -> str:
    return repr((line + "\n").encode())


def csv(i: int, line: str) -> str:
    quoted = '"' + line.replace('"', '""') + '"'
    needed = "," in line or '"' in line
    return f"{1789090509137 + i},{quoted if needed else line}"


def mixed_levels(i: int, line: str) -> str:
    return f"[{stamp(i)}] [{('info', 'warn', 'error')[i % 3]}]{' ' * (i % 3 == 0)} [llama] {line}"


#: forms of programs that no rule knows: they are learned from the log's own lines
LEARNED: dict[str, Wrap] = {
    "Docker Desktop": each(lambda i, line: f"{stamp(i)} | {line}"),
    "Docker Desktop, with containers": each(lambda i, line: f"llama-cpp-1  | {stamp(i)} | {line}"),
    "podman-compose": each(lambda _, line: f"[llm]        | {line}"),
    "podman logs --names": each(lambda _, line: f"3f2a9c81be07 {line}"),
    "docker swarm": each(lambda _, line: f"llama_server.1.x7k2m9q0@node1    | {line}"),
    "stern": each(lambda _, line: f"llama-7d9f-abcde server {line}"),
    "kail": each(lambda _, line: f"default/llama-0[server]: {line}"),
    "journald short-unix": each(lambda i, line: f"1789090509.{i:06d} tuba llama-server[7]: {line}"),
    "journald export": lambda lines: [
        x for i, line in enumerate(lines) for x in (f"__CURSOR=s=1;i={i:x}", "_PID=2101", f"MESSAGE={line}", "")
    ],
    "a program under journald": each(lambda i, line: f"Dec 03 {clock(i)} tuba swap[24102]: [llama-server] {line}"),
    "foreman": each(lambda i, line: f"{clock(i)} llama.1   | {line}"),
    "a clock and a bar": each(lambda i, line: f"{clock(i)} | {line}"),
    "a tag": each(lambda _, line: f"[MOE] {line}"),
    "Lemonade": each(lambda i, line: f"{stamp(i)} [Info] (Process) {line}"),
    "Jan": each(lambda i, line: f"[2026-02-20][{clock(i)}][tauri_plugin_llamacpp::commands][INFO] [llamacpp] {line}"),
    "Electron, with levels": each(mixed_levels),
    "Python's logging": each(lambda i, line: f"{stamp(i).replace('.', ',')} - llama - INFO - {line}"),
    "loguru": each(lambda i, line: f"{stamp(i)} | INFO     | llama_server:_drain:123 - {line}"),
    "LocalAI": each(lambda i, line: f"10:{i // 60 % 60:02d}PM DBG GRPC(qwen3-127.0.0.1:37391): stderr {line}"),
    "LocalAI's fields": each(
        lambda i, line: f'May 16 {clock(i)} DEBUG GRPC stderr id="qwen3" line={json.dumps(line)} caller={{caller.L=153 }}'
    ),
    "logfmt": each(lambda i, line: f'time={stamp(i)} level=INFO source=runner.go:212 msg={json.dumps(line)}'),
    "fluentd": each(
        lambda i, line: f"2026-05-16T{clock(i)}+00:00\tdocker.llama\t" + json.dumps({"source": "stderr", "log": line})
    ),
    "fluent-bit": each(lambda i, line: f"[{i}] kube.llama: [[1789090509.{i:09d}, {{}}], {json.dumps({'log': line})}]"),
    "JSON, msg": each(lambda i, line: json.dumps({"level": 30, "time": i, "id": f"{i * 7919:x}", "msg": line})),
    "JSON, @message": each(lambda i, line: json.dumps({"@timestamp": stamp(i), "@message": line})),
    "JSON, event": each(lambda i, line: json.dumps({"event": line, "level": "info", "timestamp": stamp(i)})),
    "JSON, an array of records": each(lambda i, line: json.dumps({"insertId": f"{i * 7919:x}", "textPayload": line}) + ","),
    "JSON, an array of strings": lambda lines: ["[", *(f"  {json.dumps(line)}," for line in lines), "]"],
    "JSON around a program's line": each(lambda i, line: json.dumps({"log": f"{stamp(i)} [Info] (Process) {line}\n"})),
    "Python's bytes": each(python_bytes),
    "CSV": lambda lines: ["timestamp,message", *each(csv)(lines)],
    "numbered": each(lambda i, line: f"{i + 439}: {line}"),
    "grep -Hn": each(lambda i, line: f"server.log:{i + 1}:{line}"),
    "less -N": each(lambda i, line: f"{i + 1:7d} {line}"),
    "cat -n": each(lambda i, line: f"{i + 1:6d}\t{line}"),
    "cat -A": each(lambda _, line: f"{line}$"),
    "a diff": each(lambda _, line: f"+{line}"),
    "a table": each(lambda _, line: f"| {line} |"),
    "HTML, line ends": each(lambda _, line: f"{line}<br>"),
    "non-breaking spaces": each(lambda _, line: line.replace("  ", "\u00a0 ")),
    "GitHub Actions": each(lambda i, line: f"serve\tRun llama-server\t2026-05-16T{clock(i)}.{i:07d}Z {line}"),
    "stamps on lines of their own": lambda lines: [
        x for i, line in enumerate(lines) for x in (f"{stamp(i)} DEBG 'llama-server' stderr output:", line)
    ],
}


@pytest.mark.parametrize("name", ["b11549/hybrid/debug_window", "b8672/plain/lv4"])
def test_every_wrapper_that_is_learned(
    name: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    log = recorded(name)
    found = {}
    for wrapper, wrap in LEARNED.items():
        lines = [line.replace("\r", "") for line in log.lines]
        wrong = changed(analyse(lines).report, analyse(wrap(lines)).report, places=False)
        if wrapper == "journald export":
            # its other fields stand between the lines of a window
            wrong = [d for d in wrong if ".mismatch" not in d[0]]
        if wrong:
            found[wrapper] = wrong[:3]
    assert found == {}


@pytest.mark.parametrize("wrapper", ["Lemonade", "JSON, an array of strings", "CSV", "a table", "non-breaking spaces"])
def test_learned_however_it_is_cut(
    wrapper: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """Start-up lines come before the first head: they are kept back until the form is known."""
    lines = LEARNED[wrapper](recorded("b8672/plain/lv4").lines)
    data = "".join(f"{line}\n" for line in lines).encode()
    whole = analyse(data).report
    assert len(whole.turns) == len(recorded("b8672/plain/lv4").report.turns)
    pieces = data.splitlines(keepends=True)
    assert changed(whole, analyse(b"", pieces=pieces).report) == []
    assert changed(whole, analyse(b"", pieces=[b"".join(pieces[:77]), b"".join(pieces[77:])]).report) == []


def test_two_forms_in_one_log(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """A second form is learned, too: of the lines before the one that proves it, those with a head are read."""
    log = recorded("b11549/hybrid/lv4")
    lines = [f"{i}: {line}" if i < 250 else f"[MOE] {line}" for i, line in enumerate(log.lines)]
    report = analyse(lines).report
    assert changed(log.report, report, places=False) == []
    assert changed(report, analyse(b"", pieces=[f"{line}\n".encode() for line in lines]).report) == []


def test_a_copy_that_begins_in_the_middle_of_a_line(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    lines = recorded("b8672/plain/lv4").lines
    start = next(i for i, line in enumerate(lines) if line.startswith("slot"))
    wrapped = LEARNED["Jan"](lines[start:])
    wrapped[0] = lines[start]
    assert changed(analyse(lines[start:]).report, analyse(wrapped).report, places=False) == []


def test_a_prefix_made_up_in_a_prompt_takes_nothing_off(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """A text that holds heads behind the beginnings of real lines, in a log of a known form and in one that is learned."""
    log = recorded("b8672/plain/lv4")
    fakes = [
        f"{before} slot launch_slot_: id  0 | task {i} | processing task"
        for before in ("prompt eval time =", "       eval time =", "main", "llama_context")
        for i in range(5)
    ]
    for wrap in (each(lambda _, line: line), LEARNED["podman-compose"], LEARNED["numbered"]):
        lines = wrap([line for part in (log.lines[:60], fakes, log.lines[60:]) for line in part])
        assert changed(log.report, analyse(lines).report, places=False) == []


def test_escaped_for_a_web_page(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    for name in ("b11549/hybrid/debug_window", "b8672/plain/lv4"):
        log = recorded(name)
        report = analyse([html.escape(line).replace("&#x27;", "&#39;") for line in log.lines]).report
        assert [d for d in changed(log.report, report, places=False) if not d[0].endswith(".model")] == []


STAMPED = re.compile(r"(\d+\.\d\d\.\d{3}\.\d{3}) ([IWED]) (.*)", re.DOTALL)
COLOURS = {"I": "32", "W": "35", "E": "31", "D": "33"}


def coloured(lines: Lines, escape: str = "\x1b") -> Lines:
    """As the logger colours its lines (b11401 and later: the reset stands at the end of the line)."""
    found = []
    for line in lines:
        match = STAMPED.fullmatch(line)
        if match is None:
            found.append(line)
            continue
        time, letter, text = match.groups()
        head = f"{escape}[34m{time}{escape}[0m {escape}[{COLOURS[letter]}m{letter} "
        found.append(head + (f"{escape}[0m{text}" if letter == "I" else f"{text}{escape}[0m"))
    return found


def coloured_reset_on_next_line(lines: Lines) -> Lines:
    """As up to b11393: the code that ends a warning's colour stands in front of the next line."""
    found, reset = [], ""
    for line, colour in zip(lines, coloured(lines), strict=True):
        found.append(reset + colour.removesuffix("\x1b[0m"))
        reset = "\x1b[0m" if colour != line and colour.endswith("\x1b[0m") else ""
    return found


def escape_byte_lost(lines: Lines) -> Lines:
    """Copied from a terminal into an issue: the escape bytes and the inner resets are gone."""
    return [
        line if match is None else f"[34m{match[1]} [{COLOURS[match[2]]}m{match[2]} {match[3]}"
        for line in lines
        for match in [STAMPED.fullmatch(line)]
    ]


PAINTED: dict[str, Wrap] = {
    "colours": coloured,
    "colours, reset on the next line": coloured_reset_on_next_line,
    "colours, escape byte lost": escape_byte_lost,
    "colours as rsyslog spells them": lambda lines: coloured(lines, "#033"),
    "colours as cat -v spells them": lambda lines: coloured(lines, "^["),
    "colours as a program quotes them": lambda lines: coloured(lines, "\\x1b"),
    "colours as JSON quotes them": lambda lines: coloured(lines, "\\u001b"),
    "colours in octal": lambda lines: coloured(lines, "\\033"),
    "colours as a font shows them": lambda lines: coloured(lines, "\u241b"),
    "colours as less shows them": lambda lines: coloured(lines, "ESC"),
    "colours behind an unknown stamp": lambda lines: [f"[MOE] {line}" for line in coloured(lines)],
    "colours under docker compose": lambda lines: [f"llama-1  | {line}" for line in coloured(lines)],
}


@pytest.mark.parametrize("painted", PAINTED)
def test_colours(
    painted: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    for name in ("b11549/hybrid/lv4", "b11549/swa/lv3", "b10068/hybrid/reject"):
        log = recorded(name)
        assert changed(log.report, analyse(PAINTED[painted](log.lines)).report, places=False) == [], name


CODED: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16, little endian": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16, big endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "UTF-16 with CRLF": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip in two members": lambda text: gzip.compress(text.encode()[:9999]) + gzip.compress(text.encode()[9999:]),
    "gzip of UTF-16": lambda text: gzip.compress(text.encode("utf-16")),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
}


@pytest.mark.parametrize("coded", CODED)
def test_encodings(
    coded: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    for name in ("b11549/hybrid/lv4", "b8672/swa/lv4"):
        log = recorded(name)
        assert changed(log.report, analyse(CODED[coded](log.text)).report) == [], name


def test_zstd(recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]) -> None:
    zstd = pytest.importorskip("backports.zstd")
    log = recorded("b11549/hybrid/lv4")
    assert changed(log.report, analyse(zstd.compress(log.data)).report) == []


@pytest.mark.parametrize("name", ["b11549/hybrid/lv4", "b8672/swa/lv4", "b11549/plain/kv_full"])
def test_spaces_collapsed_by_a_web_page(
    name: str, recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """Only the token text may change: it had spaces of its own."""
    log = recorded(name)
    report = analyse([re.sub(r" +", " ", line).strip() for line in log.lines]).report
    assert [d for d in changed(log.report, report, places=False) if ".mismatch" not in d[0]] == []


def test_lines_padded_to_the_terminals_width(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    log = recorded("b11549/swa/lv4")
    report = analyse([line.ljust(-(-len(line) // 120) * 120) for line in log.lines]).report
    assert [d for d in changed(log.report, report, places=False) if ".mismatch" not in d[0]] == []


def test_prose_between_the_lines(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], changed: Callable[..., Any]
) -> None:
    """An issue's text: headings, elisions, questions, other programs' output."""
    prose = ["", "### What happened?", "(...)", "I think that slot 0 is broken, see the task below.", "...",
             "```", "slot", "srv", "$ llama-server -m model.gguf -c 4096", "time=2026-01-01 level=info msg=hello",
             "task 7 was fine | id 3"]  # fmt: skip
    log = recorded("b11549/hybrid/slots2")
    lines = [x for i, line in enumerate(log.lines) for x in ([prose[i % len(prose)], line] if i > 150 else [line])]
    assert changed(log.report, analyse(lines).report, places=False) == []


def test_a_router_and_two_children_interleaved(
    recorded: Callable[[str], Any], analyse: Callable[..., Any]
) -> None:
    """Each child is a run of its own, with the turns that it has alone."""
    one, two = recorded("b11549/hybrid/lv4"), recorded("b11549/swa/deep_edit")
    mixed = []
    for i in range(max(len(one.lines), len(two.lines))):
        mixed += [f"[51877] {one.lines[i]}"] if i < len(one.lines) else []
        mixed += [f"[  807] {two.lines[i]}"] if i < len(two.lines) else []
        if i % 50 == 0:
            mixed.append("0.25.071.000 I srv  proxy_reques: proxying POST request to model x on port 51877")
    report = analyse(mixed).report
    for port, alone in ((51877, one.report), (807, two.report)):
        (run,) = (run for run in report.runs if run.port == port)
        turns = [turn for turn in report.turns if turn.run == run.run]
        assert [
            (t.slot, t.task, t.outcome, t.cause, t.n_prompt, t.n_common, t.n_cached, t.n_processed, t.checkpoints)
            for t in turns
        ] == [
            (t.slot, t.task, t.outcome, t.cause, t.n_prompt, t.n_common, t.n_cached, t.n_processed, t.checkpoints)
            for t in alone.turns
        ]
        assert (run.memory, run.n_slots, run.build_min, run.build_max) == (
            alone.runs[0].memory, alone.runs[0].n_slots, alone.runs[0].build_min, alone.runs[0].build_max,
        )  # fmt: skip
