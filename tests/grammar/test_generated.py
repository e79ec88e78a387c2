"""Lines generated from the grammar itself: every expansion of every rule, filled in, is parsed to its wording,
holds one of its kind's heads, and gives back the values that were filled in."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from lark.grammar import Terminal

from ckptlog.grammar import Kind, messages

VALUES = {
    "INT": ["7", "-1", "0", "3815163520"],
    "FLOAT": ["0.500", "-1.000", "1e-05", "nan", "inf", "12"],
    "POINTER": ["0x55d1c0ffee00", "000001D2C0FFEE00", "(nil)"],
    "FUNC": ["main", "llama_kv_cache_iswa", "operator()"],
    "NAME": ["f16", "02463ab2"],
    "NONSPACE": ["gemma-3:270m", "/v1/chat/completions"],
    "IN_QUOTES": ["models/gemma 3.gguf"],
    "STEP": ["next token |"],
    "ADDRESS": ["http://127.0.0.1:8080"],
    "METHOD": ["POST"],
    "BODY": ['{"prompt": "POST it"}'],
    "PLACE": ["/src/ggml/src/ggml-cuda/ggml-cuda.cu:104:", "GGML_ASSERT: D:\\a\\ggml.c:12851:"],
    "DEVICE": ["CUDA error: out of memory", "vk::Queue::submit: ErrorDeviceLost"],
    "TERMINATE": ["terminate called without an active exception"],
    "BACKTRACE": ["/app/libggml-base.so(ggml_print_backtrace+0x21f)[0x72e0b99cd82f]"],
    "SIGNAL": ["Aborted", "Abort trap: 6", "Killed"],
    "SIGNAL_OF_ZSH": ["abort", "bus error"],
    "BY_SHELL": ["zsh:", "[1]+", "[1]    48211", "+ 48211", "1", "./serve.sh: line 69: 736575", "bash: line 1:"],
    "FISH": ["fish: Job 1, '"],
    "DEBUGGER": ["Program received signal SIGSEGV, Segmentation fault."],
    "COMMAND": ["./llama-server -m gemma.gguf"],
    "UNIT": ["llama.service"],
    "SERVICE": ["Failed with result 'core-dump'."],
    "CONTAINER": ["llama-1"],
    "EXITED": ["exited with code 139"],
    "EXIT_CODE": ["-1073740791", "0xC0000005"],
    "BEFORE_IT": ["operator():", "^Csrv    operator(): operator():"],
    "CTRL_C": ["^C"],
    "BREAKDOWN": ["llama_memory_breakdown_print:"],
    "TO_SHIFT": ['| tid="139870" timestamp=1771800702'],
    **{
        f"TO_{key.upper()}": [f'| tid="139870" timestamp=1771800702 {key}=', f"| {key}="]
        for key in ("p0", "n_ctx", "t_last", "n_past", "n_slots", "n_ctx_slot")
    },
    "TO_N_KEEP": ["n_keep=", "n_erase=7 n_keep="],
    "TO_N_PROMPT": ["n_prompt_tokens=", "n_left=7 n_prompt_tokens="],
    "TO_TRUNCATED": ["truncated=", "n_system_tokens=0 truncated="],
    "GIN_TIME": ["2026/08/14 - 20:48:47"],
    "OLLAMAS_PATH": ['"/api/chat"', '"/api/generate"'],
    "REST": ["\x1b[31m[bold]it's | free, text = 1)", "x"],
}
GLUED_BEFORE = {",", ")", "]", ":", "/", ".", "..."}
GLUED_AFTER = {"(", "[", "/"}
QUOTES = {"'", '"'}


Piece = tuple[str, tuple[str, ...]]
"""A token's text and the fields it belongs to, outermost first."""


class Derivation(NamedTuple):
    """A line, and the fields that a parse of it must give back."""

    text: str
    fields: dict[str, str]


class Generator:
    """Derives lines from the rules of the file in which a kind stands, as Lark compiled them."""

    def __init__(self, kind: Kind) -> None:
        self.lark = messages().parser(kind).lark
        self.rules: dict[str, list[Any]] = defaultdict(list)
        for rule in self.lark.rules:
            self.rules[rule.origin.name].append(rule)
        self.random = random.Random(kind.name)

    def line(self, expansion: list[Any]) -> Derivation:
        pieces: list[Piece] = []
        self._walk(expansion, (), pieces, depth=0)
        text = before = ""
        fields: dict[str, str] = {}
        for piece, owners in pieces:
            opened = before in QUOTES and text.count(before) % 2 == 1
            closing = piece in QUOTES and text.count(piece) % 2 == 1
            glued = not text or before in GLUED_AFTER or piece in GLUED_BEFORE or opened or closing
            gap = "" if glued else " "
            text += gap + piece
            before = piece
            for owner in owners:
                fields[owner] = fields[owner] + gap + piece if owner in fields else piece
        return Derivation(text, fields)

    def _walk(self, expansion: list[Any], owners: tuple[str, ...], pieces: list[Piece], depth: int) -> None:
        for symbol in expansion:
            if isinstance(symbol, Terminal):
                pieces.append((self._value(symbol.name), owners))
            else:
                # what Lark makes of `+` and `*` recurses: stop after a few rounds
                choices = self.rules[symbol.name]
                rule = (
                    min(choices, key=lambda r: len(r.expansion)) if depth > 3 else self.random.choice(choices)
                )
                inner = owners if symbol.name.startswith("_") else (*owners, symbol.name)
                self._walk(rule.expansion, inner, pieces, depth + 1)

    def _value(self, terminal: str) -> str:
        pattern = self.lark.get_terminal(terminal).pattern
        if pattern.type == "str":  # a literal; Lark names "method" METHOD, too
            return str(pattern.value)
        return self.random.choice(VALUES.get(terminal, ["gemma"]))


@pytest.mark.parametrize("kind", messages().kinds.values(), ids=lambda kind: kind.name)
def test_generated_lines(kind: Kind) -> None:
    generator = Generator(kind)
    seen = set()
    for rule in generator.rules[kind.name]:
        wording = str(rule.alias or kind.name)
        seen.add(wording)
        for _ in range(8):
            text, fields = generator.line(rule.expansion)
            message = messages().parser(kind).parse(kind, text)
            assert message.wording == wording, text
            assert {name: field.text for name, field in message.fields.items()} == fields, text
            assert all(text[field.start : field.end] == field.text for field in message.fields.values())
            assert any(head in text for head in kind.heads) or not kind.heads, text
    assert seen == {wording.name for wording in kind.wordings}
