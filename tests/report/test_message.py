"""A quoted line shows its message, without what a wrapper, a terminal or a JSON record puts around it."""

from __future__ import annotations

import json

import pytest

from ckptlog.records import Evidence
from ckptlog.report.text_findings import message_of, quoted

MESSAGE = "request (300 tokens) exceeds the available context size (256 tokens), try increasing it"
BARE = f"srv    send_error: task id = 4, error: {MESSAGE}"
STAMPED = f"0.25.091.200 E {BARE}"
WHOLE = f"task id = 4, error: {MESSAGE}"


def jsonl(text: str) -> str:
    return json.dumps({"type": "log", "time": 25091200, "level": "error", "msg": text + "\n"})


@pytest.mark.parametrize(
    "line",
    [
        BARE,
        STAMPED,
        STAMPED + "   ",
        f"\x1b[34m0.25.091.200\x1b[0m \x1b[31mE {BARE}\x1b[0m",
        f"[34m0.25.091.200[0m [31mE {BARE}[0m",
        f"^[[34m0.25.091.200^[[0m ^[[31mE {BARE}^[[0m",
        jsonl(BARE),
        "llm-1  | " + jsonl(BARE),
        json.dumps({"log": STAMPED + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"}),
        json.dumps({"log": jsonl(BARE) + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"}),
        f"Jan 02 03:04:05 box llama-server[77]: {STAMPED}",
        f"[42027] {STAMPED}",
    ],
)
def test_only_the_message_is_quoted(line: str) -> None:
    assert message_of(line) == WHOLE
    assert quoted(Evidence(0, 1, line, ""), 300) == WHOLE


def test_a_mismatch_in_a_json_record_is_shown_around_its_bar() -> None:
    line = jsonl(f"slot get_availabl: id  0 | task -1 | old: ... {'A' * 400} | here they part")
    assert "| here they part" in quoted(Evidence(0, 1, line, ""), 60)


def test_colours_within_a_message_stay_visible_and_harmless() -> None:
    assert message_of("\x1b[0m") == "\x1b[0m", "a line without a message is quoted as it is"
    assert quoted(Evidence(0, 1, "srv  a: red \x1b[31mtext\x1b[0m", ""), 80) == r"red \e[31mtext"
