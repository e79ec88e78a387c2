"""Everything that has a name in a report, with the text that explains it (``ckptlog explain``, docs)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Literal

from ckptlog.verdict.causes import CAUSES, TOLD_ONLY
from ckptlog.verdict.glossary import FIXES, OUTCOMES, VARIANTS, WORDS
from ckptlog.verdict.triggers import TRIGGERS

Kind = Literal["outcome", "variant", "cause", "trigger", "fix", "word"]


@dataclass(frozen=True)
class Entry:
    """One name: its kind, a title, the text (paragraphs), and a worked example ("" if there is none)."""

    name: str
    kind: Kind
    title: str
    text: str
    example: str


def _split(name: str, kind: Kind, doc: str) -> Entry:
    title, _, rest = inspect.cleandoc(doc).partition("\n")
    body, _, example = rest.strip().partition("\nExample: ")
    if not example and body.startswith("Example: "):
        body, example = "", body.removeprefix("Example: ")
    return Entry(name, kind, title.strip(), body.strip(), example.strip())


def entries() -> list[Entry]:
    """All entries: outcomes, variants, causes (in the order in which they are tried), triggers, fixes,
    other words."""
    found: list[Entry] = []
    found += [_split(name, "outcome", doc) for name, doc in OUTCOMES.items()]
    found += [_split(name, "variant", doc) for name, doc in VARIANTS.items()]
    seen: set[str] = set()
    for rule in (*CAUSES, *TOLD_ONLY):
        if rule.name not in seen:
            seen.add(rule.name)
            found.append(_split(rule.name, "cause", rule.doc()))
    found += [_split(name, "trigger", doc) for name, doc in TRIGGERS.items()]
    found += [_split(name, "fix", doc) for name, doc in FIXES.items()]
    found += [_split(name, "word", doc) for name, doc in WORDS.items()]
    return found
