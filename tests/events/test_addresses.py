"""Lines whose numbers are none: an address in mid-line, and rows of listings, which may be any text."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog


@pytest.mark.parametrize(
    "line",
    [
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8080, http threads: 15",
        "main: HTTP server is listening, hostname: localhost, port: 8080, http threads: 15",
        "0.21.532.943 I srv          load:   /usr/bin/llama-server",
        "0.21.532.943 I srv          load:   --cache-reuse",
        "0.21.532.944 I srv          load:   256",
        "srv          load:   request: quill",
        "0.00.022.362 I srv    operator():     tiny-hybrid",
        "0.00.022.362 I srv   load_models:     gemma-3:Q4",
        "0.00.022.362 I srv    operator():   [    preset] gemma-3:Q4 (aliases: g3)",
        "0.00.042.883 I srv    operator():   [models_dir] gemma-3",
        "0.00.022.651 W srv  llama_server:     router mode",
    ],
)
def test_it_is_understood(tmp_path: Path, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"main: loading model\n{line}\n{line}\n")
    source = ckptlog.analyze(log).report.sources[0]
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)


def test_another_message_of_that_function_is_unknown(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("srv          load:  --cache-reuse\nsrv          load: 256\nsrv    operator(): quill\nsrv    operator():   quill\n")
    assert ckptlog.analyze(log).report.sources[0].unknown_slot_lines == 4
