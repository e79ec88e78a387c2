"""Envelopes: every wrapper around every form gives the same message, with its place in the line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog.intake.unwrap import Envelope, unwrap

RELEASE = "stop processing: n_tokens = 31, truncated = 0"
SLOT = f"slot      release: id  1 | task 42 | {RELEASE}"
IDLE = "srv  update_slots: all slots are idle"


def texts(line: str, envelope: Envelope) -> dict[str, Any]:
    """What the spans of an envelope cut out of the raw line, and the rest as it is."""
    found: dict[str, Any] = {}
    for name in ("time", "port", "slot", "task"):
        span = getattr(envelope, name)
        found[name] = None if span is None else line[span.start : span.end]
    for name in ("wrapper", "format", "level", "family", "func", "message"):
        found[name] = getattr(envelope, name)
    if envelope.message_start >= 0:
        assert line[envelope.message_start :][: len(envelope.message)] == envelope.message
    return found


def look(line: str, *names: str) -> Any:
    found = texts(line, unwrap(line))
    return tuple(found[name] for name in names) if names else found


HEADS = {
    SLOT: ("slot", "release", "1", "42", RELEASE),
    "slot   operator(): id  0 | task -1 |  - checking sim = 0.769 (143/186) > 0.100": (
        "slot", "operator()", "0", "-1", "- checking sim = 0.769 (143/186) > 0.100",
    ),
    "slot  operator (): id 100 | task 7 | new prompt, n_ctx_slot = 512": (
        "slot", "operator ()", "100", "7", "new prompt, n_ctx_slot = 512",
    ),
    "slot release: id 1 | task 42 | stop processing": ("slot", "release", "1", "42", "stop processing"),
    "slot print_timing: id  0 | task 533 |": ("slot", "print_timing", "0", "533", ""),
    "slot print_timing: id  0 | task 533 | \t ": ("slot", "print_timing", "0", "533", ""),
    IDLE: ("srv", "update_slots", None, None, "all slots are idle"),
    "srv        update:    - prompt 000001A7F0C3A000:     412 tokens, checkpoints:  0": (
        "srv", "update", None, None, "- prompt 000001A7F0C3A000:     412 tokens, checkpoints:  0",
    ),
    "que    start_loop: processing task, id = 65": ("que", "start_loop", None, None, "processing task, id = 65"),
    "cmn  common_param: common_params_print_info: verbosity = 3": (
        "cmn", "common_param", None, None, "common_params_print_info: verbosity = 3",
    ),
    "prompt eval time =     611.04 ms /   250 tokens": (
        "bare", None, None, None, "prompt eval time =     611.04 ms /   250 tokens",
    ),
    "llama_model_loader: - kv   2:      general.name str = tiny": (
        "bare", None, None, None, "llama_model_loader: - kv   2:      general.name str = tiny",
    ),
}  # fmt: skip

PREFIXES = {
    "": (None, None),
    "0.25.071.000 I ": ("0.25.071.000", "I"),
    "1440.00.000.000 W ": ("1440.00.000.000", "W"),
    "E ": (None, "E"),
    "\x1b[34m0.25.091.255\x1b[0m \x1b[35mW ": ("0.25.091.255", "W"),
    "\x1b[0m\x1b[34m0.25.091.255\x1b[0m \x1b[32mI \x1b[0m": ("0.25.091.255", "I"),
    "[34m3.38.854.761 [35mW ": ("3.38.854.761", "W"),
    "#033[34m3.38.854.761 #033[35mW ": ("3.38.854.761", "W"),
    "\x1b[0m": (None, None),
}

WRAPPERS = {
    "": None,
    "llama-1  | ": "docker-compose",
    "0|llama-server  | ": "docker-compose",
    "2025-02-15T20:11:16.628562945Z ": "docker",
    "llama-1  | 2025-02-15T20:11:16.628562945Z ": "docker-compose",
    "Dec 03 09:41:21 tuba llama-server[24102]: ": "journald",
    "May  3 01:44:00.123456 host llama.service[1]: ": "journald",
    "2024-05-23T01:44:00+0200 host llama-server[7]: ": "journald",
    "2024-05-23T01:44:00.123456+02:00 host llama-server[7]: ": "journald",
    "Thu 2024-05-23 01:44:00 CEST host llama-server[7]: ": "journald",
    "[ 1234.567890] host llama-server[7]: ": "journald",
    "May 23 01:44:00  llama:[77]: ": "journald",
    "<30>Dec  3 09:41:21 tuba llama-server[24102]: ": "syslog",
    "<34>1 2026-10-11T22:14:15.003Z host llama-server 77 - - ": "syslog",
    '<34>1 2026-10-11T22:14:15.003Z host llama-server 77 ID47 [a@1 x="y"] \ufeff': "syslog",
    "2024-01-01T00:00:00.000000000Z stderr F ": "kubernetes",
    "[pod/llama-0/server] ": "kubernetes",
    "2026-06-07 14:09:49 [DEBUG] ": "lm-studio",
    "llama-server.exe : ": "powershell",
    "C:\\Program Files\\llama\\llama-server.exe : ": "powershell",
    "> ": "markdown-quote",
    "> > ": "markdown-quote",
    "> llama-1  | ": "docker-compose",
    "2026-06-07 14:09:49 ": "timestamps",
    "\ufeff": None,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_wrapper_around_every_form(wrapper: str, prefix: str) -> None:
    time, level = PREFIXES[prefix]
    for port in ("", "[51877] ", "[  807] "):
        for head, (family, func, slot, task, message) in HEADS.items():
            if prefix == "E " and head.startswith("prompt eval"):
                continue  # a letter alone, before text that no function's name begins, could be a word
            line = wrapper + port + prefix + head
            assert look(line, "wrapper", "port", "time", "level", "family", "func", "slot", "task", "message") == (
                WRAPPERS[wrapper], port.strip(" []") or None, time, level, family, func, slot, task, message,
            ), line  # fmt: skip
            form = "prefixed" if time or level else None if family == "bare" else "legacy"
            assert look(line, "format") == (form,), line


@pytest.mark.parametrize("end", ["", "   ", " " * 120, "\x1b[0m", " \x1b[0m ", "[0m", "\t"])
@pytest.mark.parametrize("start", ["", "0.25.071.000 W "])
def test_what_is_not_seen_at_the_end_is_no_message(start: str, end: str) -> None:
    assert look(start + SLOT + end, "message", "slot") == (RELEASE, "1")


@pytest.mark.parametrize(
    "line",
    [
        "", " ", "\x1b[0m", "```", "```text", "(...)", "...", "[...]", "…", "............", "[snip]",
        "Dec 03 09:41:29 tuba llama-server[24102]: [100B blob data]",
        "[51877] [48B blob data]",
        "2026-06-07 14:09:49  [INFO]",
        "At C:\\llm\\start.ps1:14 char:1",
        "+ & C:\\llm\\llama-server.exe @args 2>&1 | Tee-Object server.log",
        "+ ~~~~~~~~~~~~~~~",
        "    + CategoryInfo          : NotSpecified: (0.03.900.037 I srv  update_slots: all sl:String) [], X",
        "    + FullyQualifiedErrorId : NativeCommandError",
        '{"type":"fit_memory_breakdown","data":{"unit":"MiB","rows":[]}}',
        '{"messages": [{"role": "system"}]}',
    ],
)  # fmt: skip
def test_lines_without_a_message(line: str) -> None:
    assert unwrap(line).family is None


def test_lm_studio_indent() -> None:
    assert look(f" 11.40.246.037 I {SLOT}", "wrapper", "message") == ("lm-studio", RELEASE)
    assert look(f" {SLOT}", "wrapper", "message") == (None, RELEASE)


def test_list_items_and_code() -> None:
    for line in (f"- {SLOT}", f"* `0.00.001.000 I {SLOT}`", f"`{SLOT}`", f"> - {SLOT}  "):
        assert look(line, "message", "slot", "task") == (RELEASE, "1", "42"), line


@pytest.mark.parametrize(
    "before",
    [
        "No parser definition detected, assuming pure content parser.",
        "........................",
        "[2026-11-30][worker 3] ",
        "2026-06-07 14:09:49,123 - INFO - ",
        "load_tensors: ........0.12.000.001 I ",
        "unknown wrapper 14:09:49 [51877] 0.12.000.001 W ",
    ],
)
def test_a_record_in_mid_line(before: str) -> None:
    assert look(before + SLOT, "family", "slot", "task", "message") == ("slot", "1", "42", RELEASE)
    assert look(before + IDLE, "family", "func") == ("srv", "update_slots")
    if "0.12.000.001" in before:
        assert look(before + SLOT, "time", "format") == ("0.12.000.001", "prefixed")


@pytest.mark.parametrize(
    "line",
    [
        f'he said "{SLOT}"',
        f"the text {SLOT}",
        f"({SLOT})",
        "slot machine: id card | task force | none",
        "slot update_slots: id  0 | tas",
        "srv is down: help",
        "I think that srv  x is fine",
    ],
)
def test_prose_is_no_record(line: str) -> None:
    assert look(line, "family", "message") == ("bare", line)


def test_free_text_behind_a_head_is_the_message() -> None:
    text = 'request:  {"messages": [{"content": "slot release: id 0 | task 0 | stop processing"}]}'
    assert look(f"srv  log_server_r: {text}", "family", "message") == ("srv", text)


def record(message: str, **more: Any) -> str:
    return json.dumps(
        {"type": "log", "time": 27445306, "level": "warn", "msg": message, **more}, separators=(",", ":")
    )


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("port", ["", "[51877] "])
def test_jsonl_in_every_wrapper(wrapper: str, port: str) -> None:
    for head, (family, func, slot, task, message) in HEADS.items():
        line = wrapper + port + record(head + "\n")
        assert look(line, "wrapper", "port", "format", "time", "level", "family", "func", "slot", "task", "message") == (
            WRAPPERS[wrapper], port.strip(" []") or None, "jsonl", "27445306", "W", family, func, slot, task, message,
        ), line  # fmt: skip
        assert unwrap(line).message_start > 0


def test_jsonl_of_a_router_in_jsonl() -> None:
    child = record(SLOT + "\n")
    line = json.dumps({"type": "log", "time": 5, "level": "none", "msg": f"[ 8077] {child}\n"})
    assert look(line) == {
        "wrapper": None, "format": "jsonl", "time": "27445306", "level": "W", "port": "8077", "family": "slot",
        "func": "release", "slot": "1", "task": "42", "message": RELEASE,
    }  # fmt: skip


def test_jsonl_escapes() -> None:
    line = record('slot   operator(): id  0 | task 3 | old: ... "a"\n\tb | c\n')
    envelope = unwrap(line)
    assert envelope.message == 'old: ... "a"\n\tb | c'
    assert envelope.message_start == -1
    assert look(line, "slot", "task", "time") == ("0", "3", "27445306")
    line = record("naïve \ud83d\ude00 text: x\n").replace("27445306", "0")
    assert look(line, "family", "message", "time") == ("bare", "naïve 😀 text: x", "0")


def test_records_of_other_loggers() -> None:
    journal = {"_PID": "7", "MESSAGE": f"0.25.071.000 I {SLOT}", "PRIORITY": "6"}
    assert look(json.dumps(journal), "wrapper", "format", "time", "level", "slot", "message") == (
        "journald-json", "prefixed", "0.25.071.000", "I", "1", RELEASE,
    )  # fmt: skip
    docker = {"log": f"{SLOT}\n", "stream": "stderr", "time": "2024-01-01T00:00:00Z"}
    assert look(json.dumps(docker), "wrapper", "format", "task", "message") == (
        "docker-json", "legacy", "42", RELEASE,
    )  # fmt: skip
    coloured = list(f"\x1b[34m0.25.071.000\x1b[0m \x1b[32mI \x1b[0m{SLOT}".encode())
    envelope = unwrap(json.dumps({"MESSAGE": coloured}))
    assert (envelope.wrapper, envelope.family, envelope.message, envelope.slot) == (
        "journald-json", "slot", RELEASE, None,
    )  # fmt: skip
    assert unwrap(json.dumps({"MESSAGE": [1, 2, 999]})).family is None


def test_tagged() -> None:
    line = 'INFO [   launch_slot_with_task] slot is processing task | tid="139870" timestamp=1771800702 id_slot=1 id_task=14   '
    assert look(line, "format", "level", "family", "func", "slot", "task") == (
        "tagged", "I", "tagged", "launch_slot_with_task", "1", "14",
    )  # fmt: skip
    assert look(line, "message") == (
        'slot is processing task | tid="139870" timestamp=1771800702 id_slot=1 id_task=14',
    )


NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@given(st.sampled_from(sorted(HEADS)), st.sampled_from(sorted(WRAPPERS)), st.data())
@settings(max_examples=200, deadline=None)
def test_numbers_change_nothing(head: str, wrapper: str, data: st.DataObject) -> None:
    """What holds for one line of a shape holds for all."""
    line = f"{wrapper}[51877] 0.25.071.000 I {head}"
    other = NUMBER.sub(lambda _: str(data.draw(st.integers(0, 10**7))), head)
    changed = f"{wrapper}[{data.draw(st.integers(1, 99999))}] 12.00.000.001 I {other}"
    one, two = unwrap(line), unwrap(changed)
    names = ("wrapper", "format", "level", "family", "func")
    assert [getattr(one, name) for name in names] == [getattr(two, name) for name in names]
    assert (one.slot is None, one.task is None) == (two.slot is None, two.task is None)


@given(st.text(max_size=300))
@settings(max_examples=500, deadline=None)
def test_any_text_gives_an_envelope(text: str) -> None:
    line = text.replace("\n", " ")
    texts(line, unwrap(line))


@given(
    st.lists(
        st.sampled_from([*HEADS, *PREFIXES, *WRAPPERS, "\x1b", "{", "}", '"', "[", "m", " ", "\\u00", "é"]),
        max_size=6,
    )
)
@settings(max_examples=500, deadline=None)
def test_any_heap_of_forms_gives_an_envelope(parts: list[str]) -> None:
    line = "".join(parts)
    texts(line, unwrap(line))


@pytest.mark.parametrize(
    "piece", ["a", " ", "\x1b[0m", "[", "{", "}", "> ", ".", "| ", "slot release: id 1 | task ", "`", "\\", '{"a":', "x.exe", "1"]
)  # fmt: skip
def test_a_megabyte_takes_no_time(piece: str) -> None:
    import time

    for line in (piece * (1_000_000 // len(piece)), "{" + piece * (1_000_000 // len(piece)) + "}"):
        start = time.process_time()
        unwrap(line)
        assert time.process_time() - start < 2
