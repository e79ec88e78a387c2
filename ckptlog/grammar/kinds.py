"""What the grammar knows of a message before any line is parsed: its kind, wordings, builds, levels, heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

Treatment = Literal["parsed", "ignored", "text"]
"""`parsed`: its fields are read. `ignored`: known, and no use here. `text`: known by its head, the rest is
free text without a shape (token windows, JSON bodies, sampler parameters)."""

Family = Literal["slot", "srv", "que", "res", "cmn", "spec", "bare", "tagged"]
"""What stands in front of the message: `slot func: id N | task M | `, `srv  func: ` and so on; `bare` is a
line without such a head, `tagged` the text of an `INFO [ func] text | tid=...` line with its key=value tail."""

Level = Literal["E", "W", "I", "T", "D", "lib-E", "lib-W", "lib-I", "lib-D", "out"]
"""Error, warning, info, trace, debug; `lib-` for libllama's own logger; `out`: printed to stdout, always."""

TREATMENTS: tuple[str, ...] = get_args(Treatment)
FAMILIES: tuple[str, ...] = get_args(Family)
LEVELS: tuple[str, ...] = get_args(Level)


class LevelRange(NamedTuple):
    """The builds that print a wording at a level; `build_max` None: the newest build known still does.

    The edges are as wide as the evidence allows (the build after the last one seen without it, the build
    before the first one seen without it again), so neighbouring ranges may overlap.
    """

    level: Level
    build_min: int
    build_max: int | None

    def holds(self, build: int) -> bool:
        """Whether `build` may print at this level."""
        return self.build_min <= build and (self.build_max is None or build <= self.build_max)


@dataclass(frozen=True, slots=True)
class Wording:
    """One way in which a kind of message is worded."""

    name: str
    levels: tuple[LevelRange, ...]
    examples: tuple[str, ...]
    fork: bool = False
    """Printed by a fork, or in the tagged form: its builds are not llama.cpp's, so it brackets none."""

    @property
    def build_min(self) -> int:
        """The first build that may print it (0: older than any build opened)."""
        return min(level.build_min for level in self.levels)

    @property
    def build_max(self) -> int | None:
        """The last build that may print it; None if the newest known build does."""
        maxima = [level.build_max for level in self.levels]
        return None if None in maxima else max(m for m in maxima if m is not None)

    def levels_at(self, build: int) -> tuple[Level, ...]:
        """The levels at which `build` may print it: none, one, or two where the change is only bracketed."""
        return tuple(dict.fromkeys(level.level for level in self.levels if level.holds(build)))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of message: a rule of the grammar with its wordings."""

    name: str
    treatment: Treatment
    families: tuple[Family, ...]
    heads: tuple[str, ...]
    """Literals: every message of the kind contains one. Empty only for messages without any letter."""
    wordings: tuple[Wording, ...]
    file: str
    """The grammar file's stem, e.g. `checkpoints`."""

    def wording(self, name: str) -> Wording:
        """The wording of that name; KeyError if the kind has none such."""
        for wording in self.wordings:
            if wording.name == name:
                return wording
        raise KeyError(f"{self.name} has no wording {name!r}")


class Field(NamedTuple):
    """A value in a message: its text and where it stands in the text that was parsed."""

    text: str
    start: int
    end: int


class Message(NamedTuple):
    """A parsed message. `fields` are in the order of the text; an optional one that is absent has no key."""

    kind: str
    wording: str
    fields: dict[str, Field]
    build_min: int
    build_max: int | None


class Refused(Exception):
    """No rule accepts the text.

    `column`: 0-based offset of the first character that fits no rule; `expected`: what could have stood
    there, in words; `kind`: the rule that got furthest, None if the text has no known head.
    """

    def __init__(self, column: int, expected: tuple[str, ...], kind: str | None) -> None:
        self.column = column
        self.expected = expected
        self.kind = kind
        if kind is None:
            said = "no known message begins or contains this"
        else:
            said = f"not a known form of {kind}: at column {column + 1} expected {' or '.join(expected)}"
        super().__init__(said)
