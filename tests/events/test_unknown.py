"""A line of the server's own that nobody knows is counted, whatever words it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlog import analyze

KNOWN = (
    "slot launch_slot_: id  0 | task 1 | processing task, is_child = 0",
    "srv  process_chun: processing image...",
    "srv  process_chun: image processed in 412 ms",
    "srv  update_slots: decoding batch, n_tokens = 30",
    "que    start_loop: update slots",
    'INFO [            update_slots] all slots are idle | tid="1398" timestamp=1771800700',
    '{"tid":"1398","timestamp":1756831192,"level":"INFO","function":"log_server_request","line":3569,"msg":"request","status":200}',
    'VERB [           process_token] next token | tid="1399" timestamp=1751531868 id_slot=0 id_task=1 token_text=" a | b"',
)
STRANGE = (
    "slot update_slots: id  0 | task 1 | frobnicate while processing the thing",
    "slot update_slots: id  0 | task 1 | will terminate, then update slots",
    "srv  update_slots: weighed the request to death",
    '{"tid":"1398","timestamp":1756831192,"level":"WARN","function":"update_slots","line":30,"msg":"the flux is low","id_slot":0}',
    'WARN [            update_slots] the flux is low | tid="1398" timestamp=1771800700 id_slot=0 id_task=1',
)
DRIFTED = (
    "srv  process_chun: processing image",
    'INFO [                 release] slot released | tid="1398" timestamp=1771800700 id_slot=0 id_task=1 n_bygone=12',
)
#: other programs print brackets, too
FOREIGN = (
    '{"timestamp":"2026-01-01","level":"info","function":"slot machine","msg":"slot released"}',
    "INFO [alembic.runtime.migration] Context impl SQLiteImpl", "WARN [x] slot released",
)


def counts(tmp_path: Path, *lines: str) -> tuple[int, int]:
    log = tmp_path / "server.log"
    log.write_text("\n".join((*KNOWN, *lines)) + "\n", encoding="utf-8")
    source = analyze(log).report.sources[0]
    return source.unknown_slot_lines, source.drifted_lines


def test_known_lines_are_no_strangers(tmp_path: Path) -> None:
    assert counts(tmp_path) == (0, 0)


@pytest.mark.parametrize("line", STRANGE)
def test_a_known_word_makes_no_known_line(tmp_path: Path, line: str) -> None:
    assert sum(counts(tmp_path, line)) == 1


@pytest.mark.parametrize("line", DRIFTED)
def test_a_known_beginning_makes_no_known_line(tmp_path: Path, line: str) -> None:
    assert sum(counts(tmp_path, line)) == 1


@pytest.mark.parametrize("line", FOREIGN)
def test_another_program_s_brackets(tmp_path: Path, line: str) -> None:
    assert counts(tmp_path, line) == (0, 0)
