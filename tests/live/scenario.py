"""What a scenario is: the server's flags, and a conversation as a list of steps.

Scenarios live in ``scenarios/*.toml``; a step is an inline table whose ``do`` names one of the
classes below. ``docs/adding-a-build.md`` shows how to add one.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

FOLDER = Path(__file__).parent / "scenarios"
#: scenarios that a random run found, as JSON
FOUND = FOLDER / "found"

Flag = int | float | bool | str
Value = str | int | bool | None


class Step(
    msgspec.Struct, frozen=True, tag_field="do", tag=str.lower, forbid_unknown_fields=True, kw_only=True
):
    """One thing the client does. ``label`` goes into the truth file as what the step means."""

    label: str = ""


class Send(Step, frozen=True):
    """Send a chat as it stands and add the reply to it."""

    chat: str = "a"
    #: answer budget; ``full`` keeps the model from ending before it is used up
    max_tokens: int = 24
    full: bool = False
    #: render the template on the client and use ``/completion``
    raw: bool = False
    #: request fields: id_slot, n_keep, n_discard, n, cache_prompt
    slot: int | None = None
    keep: int | None = None
    discard: int | None = None
    choices: int | None = None
    cache_prompt: bool | None = None
    #: ask the template for a reply that starts with reasoning
    think: bool = False
    #: hang up: while the prompt is processed (after ``after`` seconds) or after three chunks of the answer
    drop: Literal["prompt", "generation"] | None = None
    after: float = 0.02
    #: what the server is expected to do, as fields of the truth record
    expect: dict[str, Value] = {}
    #: what ckptlog is expected to say of it, as fields of its turn
    verdict: dict[str, Value] = {}


class Say(Send, frozen=True):
    """Add a user message and send; ``turns`` times."""

    turns: int = 1
    #: size of the message in words, or its exact text, or the exact size of the whole prompt in tokens
    words: int = 25
    text: str | None = None
    prompt_tokens: int | None = None


class Repeat(Send, frozen=True):
    """Send exactly the last prompt of the chat again; the chat stays as it is."""


class Edit(Step, frozen=True):
    """Change a user message (1 is the first, -1 the last) from its ``at``-th word on; the rest stays."""

    chat: str = "a"
    turn: int = 1
    at: int = 0


class Rewrite(Step, frozen=True):
    """Put a new line (a clock, say) in front of the system prompt, replacing the one put there before."""

    chat: str = "a"
    line: str = "The time is now."


class Strip(Step, frozen=True):
    """Drop the reasoning from all replies in the history, as most chat clients do."""

    chat: str = "a"


class Undo(Step, frozen=True):
    """Drop the last message: a reply, or a question that got none; ``question``: a reply and its question."""

    chat: str = "a"
    question: bool = False


class Compact(Step, frozen=True):
    """Replace the history behind the system prompt by a summary of ``words`` words; keep the last turn."""

    chat: str = "a"
    words: int = 40


class Fork(Step, frozen=True):
    """Start chat ``to`` with the first ``turns`` turns of ``chat``."""

    to: str
    chat: str = "a"
    turns: int = 1


class Embed(Step, frozen=True):
    """Ask for the embedding of ``tokens`` tokens."""

    tokens: int
    expect: dict[str, Value] = {}
    verdict: dict[str, Value] = {}


class Slot(Step, frozen=True):
    """Save, restore or erase a slot."""

    action: Literal["save", "restore", "erase"]
    slot: int = 0
    file: str = "slot.bin"
    expect: dict[str, Value] = {}


class Restart(Step, frozen=True):
    """Stop the server and start it again, its log appended to the same file."""


class Pause(Step, frozen=True):
    """Do nothing for ``seconds``."""

    seconds: float


class Together(Step, frozen=True):
    """Several clients at once, each with its own list of steps."""

    lanes: list[list[AnyStep]]


AnyStep = (
    Send
    | Say
    | Repeat
    | Edit
    | Rewrite
    | Strip
    | Undo
    | Compact
    | Fork
    | Embed
    | Slot
    | Restart
    | Pause
    | Together
)


class ChatStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a chat begins: a system prompt of ``system`` words, or an agent's with ``tools`` tool schemas.

    Chats with the same three values share the system prompt, byte for byte.
    """

    system: int = 120
    tools: int = 0
    seed: int = 1


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That a scenario's log is a bundled sample: what it shows and what ckptlog should say of it."""

    shows: str
    outcome: str
    variant: str | None = None
    cause: str | None = None


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One conversation (or several at once) with one server."""

    name: str
    doc: str
    models: list[str]
    steps: list[AnyStep]
    #: llama-server's long options without the dashes; laid over ``DEFAULT_FLAGS``
    flags: dict[str, Flag] = {}
    #: flags with several values each: one scenario for every combination
    vary: dict[str, list[Flag]] = {}
    chats: dict[str, ChatStart] = {}
    env: dict[str, str] = {}
    #: the logger's switches: jsonl, colors, prefix, timestamps
    logger: dict[str, bool] = {}
    sample: Sample | None = None
    #: the xllamacpp release that shows it, where it is not the newest
    release: str | None = None
    #: kept out of the stored fixtures and the CI run (a sample with realistic lengths, say)
    large: bool = False

    def variants(self) -> Iterator[Scenario]:
        """The scenario for each combination of ``vary``, the values added to its name."""
        keys = list(self.vary)
        for values in itertools.product(*self.vary.values()):
            chosen = dict(zip(keys, values, strict=True))
            suffix = "".join(f"-{_short(k)}{v}" for k, v in chosen.items())
            yield msgspec.structs.replace(
                self, name=self.name + suffix, flags={**self.flags, **chosen}, vary={}
            )


#: Small contexts and batches, so that a scenario takes a second or two; everything shown.
DEFAULT_FLAGS: dict[str, Flag] = {
    "ctx-size": 4096,
    "parallel": 1,
    "batch-size": 256,
    "ubatch-size": 64,
    "verbosity": 4,
    "cache-ram": 0,
    "checkpoint-min-step": 0,
}
DEFAULT_ENV = {"LLAMA_SERVER_SLOTS_DEBUG": "1", "LLAMA_SERVER_SLOTS_N_DIFF": "8"}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    scenario: list[Scenario]


def load(folder: Path = FOLDER) -> dict[str, Scenario]:
    """All scenarios by name, variants spelled out; ValueError for a bad file or a name used twice."""
    found = {s.name: s for s in (from_json(p.read_bytes()) for p in sorted(folder.glob("found/*.json")))}
    for path in sorted(folder.glob("*.toml")):
        try:
            listed = msgspec.convert(tomllib.loads(path.read_text()), _File).scenario
        except (msgspec.ValidationError, tomllib.TOMLDecodeError) as e:
            raise ValueError(f"{path.name}: {e}") from e
        for scenario in itertools.chain.from_iterable(s.variants() for s in listed):
            if scenario.name in found:
                raise ValueError(f"{path.name}: scenario {scenario.name!r} is defined twice")
            found[scenario.name] = scenario
    return found


def rename(scenario: Scenario, name: str) -> Scenario:
    return msgspec.structs.replace(scenario, name=name)


def to_json(scenario: Scenario) -> bytes:
    """A scenario as JSON, to store one that a random run found; the steps keep their ``do``."""
    return msgspec.json.format(msgspec.json.encode(scenario), indent=1)


def from_json(data: bytes) -> Scenario:
    return msgspec.json.decode(data, type=Scenario)


def _short(flag: str) -> str:
    return {"ctx-checkpoints": "max", "checkpoint-min-step": "step", "verbosity": "lv"}.get(flag, flag)


def settings(scenario: Scenario) -> tuple[dict[str, Any], dict[str, str]]:
    """The flags and the environment that the scenario's server runs with."""
    return {**DEFAULT_FLAGS, **scenario.flags}, {**DEFAULT_ENV, **scenario.env}
