"""Reads the `//@` comments of a grammar file: the facts about a rule that Lark's own syntax has no place for.

    //@ kind NAME TREATMENT FAMILY...
    //@ head LITERAL                      (to the end of the line, in double quotes if it ends in a space;
                                           one or more, none for a row of numbers)
    //@ wording NAME LEVEL MIN..MAX ...   (a range a level; an open end: `9830..`; `fork` before the first
                                           level: not llama.cpp's build numbers)
    //@ example TEXT                      (to the end of the line; one or more a wording)

They are read without Lark: which literals are known, and which builds print what at which level, must be
there before the first line is parsed, and a grammar that no line needs is never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ckptlog.errors import CkptlogError
from ckptlog.grammar.kinds import (
    FAMILIES,
    LEVELS,
    TREATMENTS,
    Family,
    Kind,
    Level,
    LevelRange,
    Treatment,
    Wording,
)

_RANGE = re.compile(r"(\d+)\.\.(\d*)")


class GrammarError(CkptlogError):
    """A grammar file that contradicts itself; the message names file, line and reason."""


@dataclass
class _DraftWording:
    name: str
    levels: tuple[LevelRange, ...]
    fork: bool
    line: int
    examples: list[str] = field(default_factory=list)


@dataclass
class _DraftKind:
    name: str
    treatment: Treatment
    families: tuple[Family, ...]
    line: int
    heads: list[str] = field(default_factory=list)
    wordings: list[_DraftWording] = field(default_factory=list)


def read_kinds(path: Path) -> tuple[Kind, ...]:
    """The kinds that a grammar file describes; empty for a file that only holds shared terminals."""
    drafts: list[_DraftKind] = []
    for number, word, rest in _annotations(path):
        if word == "kind":
            drafts.append(_kind(path, number, rest))
        elif not drafts:
            raise _error(path, number, f"{word!r} before the first kind")
        elif word == "head":
            drafts[-1].heads.append(_head(path, number, rest))
        elif word == "wording":
            drafts[-1].wordings.append(_wording(path, number, rest))
        elif word == "example":
            if not drafts[-1].wordings:
                raise _error(path, number, "an example before the first wording")
            drafts[-1].wordings[-1].examples.append(rest)
        else:
            raise _error(path, number, f"unknown annotation {word!r} (known: kind, head, wording, example)")
    return tuple(_finished(path, draft) for draft in drafts)


def _annotations(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("//@"):
            word, _, rest = line.removeprefix("//@").lstrip().partition(" ")
            yield number, word, rest


def _kind(path: Path, number: int, rest: str) -> _DraftKind:
    name, *words = rest.split() or [""]
    treatment, *families = words or [""]
    if treatment not in TREATMENTS:
        raise _error(path, number, f"kind {name!r} needs a treatment: {', '.join(TREATMENTS)}")
    unknown = [family for family in families if family not in FAMILIES]
    if unknown or not families:
        raise _error(path, number, f"kind {name!r} needs families out of: {', '.join(FAMILIES)}")
    return _DraftKind(name, cast(Treatment, treatment), tuple(cast(Family, f) for f in families), number)


def _head(path: Path, number: int, rest: str) -> str:
    literal = rest[1:-1] if len(rest) > 2 and rest[0] == rest[-1] == '"' else rest
    if not literal.strip():
        raise _error(path, number, "an empty head")
    return literal


def _wording(path: Path, number: int, rest: str) -> _DraftWording:
    name, *words = rest.split() or [""]
    fork = words[:1] == ["fork"]
    words = words[fork:]
    levels = []
    for level, span in zip(words[::2], words[1::2], strict=False):
        match = _RANGE.fullmatch(span)
        if level not in LEVELS or match is None:
            raise _error(path, number, f"wording {name!r}: {level} {span} is not a level and its builds")
        levels.append(LevelRange(cast(Level, level), int(match[1]), int(match[2]) if match[2] else None))
    if not levels or len(words) % 2:
        raise _error(path, number, f"wording {name!r} needs pairs of a level and its builds: W 6751..8155")
    return _DraftWording(name, tuple(levels), fork, number)


def _finished(path: Path, draft: _DraftKind) -> Kind:
    if not draft.wordings:
        raise _error(path, draft.line, f"kind {draft.name!r} has no wording")
    for wording in draft.wordings:
        if not wording.examples:
            raise _error(path, wording.line, f"wording {wording.name!r} of {draft.name} has no example")
    names = [wording.name for wording in draft.wordings]
    if len(set(names)) < len(names):
        raise _error(path, draft.line, f"kind {draft.name!r} has two wordings of one name")
    return Kind(
        name=draft.name,
        treatment=draft.treatment,
        families=draft.families,
        heads=tuple(draft.heads),
        wordings=tuple(Wording(w.name, w.levels, tuple(w.examples), w.fork) for w in draft.wordings),
        file=path.stem,
    )


def _error(path: Path, number: int, reason: str) -> GrammarError:
    return GrammarError(f"{path.name}:{number}: {reason}")
