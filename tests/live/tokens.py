"""A second server that only renders templates and tokenizes; its log is of no interest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.live.environments import Release
from tests.live.server import ServerProcess


class Tokenizer:
    """The model's tokenizer and template, as the server's own release applies them."""

    def __init__(self, model: Path, release: Release, flags: dict[str, Any]) -> None:
        log = model.with_name(f"tokenizer-{model.stem}-{release.build}.log")
        log.unlink(missing_ok=True)
        template = {name: value for name, value in flags.items() if name == "chat-template"}
        self._server = ServerProcess(
            model.name,
            {"ctx-size": 256, "parallel": 1, "verbosity": 1, **template},
            folder=model.parent,
            log=log,
            python=release.python,
        )

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
