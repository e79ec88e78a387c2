"""A second server that only renders templates and tokenizes; its log is of no interest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.live.environments import Release
from tests.live.server import ServerProcess


class Tokenizer:
    """The model's tokenizer and template, as the server's own release applies them (or this environment's)."""

    def __init__(self, model: Path, release: Release, flags: dict[str, Any]) -> None:
        log = model.with_name(f"tokenizer-{model.stem}-{release.build}.log")
        log.unlink(missing_ok=True)
        template = {name: value for name, value in flags.items() if name == "chat-template"}
        def start(python: str) -> ServerProcess:
            flags = {"ctx-size": 256, "parallel": 1, "verbosity": 1, **template}
            return ServerProcess(model.name, flags, folder=model.parent, log=log, python=python)

        self._server = start(release.python)
        if self._server.bridged:
            self._server.stop()
            self._server = start(sys.executable)

    def render(self, messages: list[dict[str, str]], *, think: bool) -> str:
        """The chat as the template writes it, ready for the answer."""
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": think}}
        prompt: str = self._server.client.post("/apply-template", body).body["prompt"]
        return prompt

    def ids(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids; ``special`` adds BOS as the server does at the start of a prompt."""
        body = {"content": text, "add_special": special, "parse_special": True}
        tokens: list[int] = self._server.client.post("/tokenize", body).body["tokens"]
        return tokens

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
