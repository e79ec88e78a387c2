"""What a rule is: a small class whose docstring is what ``ckptlog explain NAME`` prints."""

from __future__ import annotations

import inspect
from typing import ClassVar

import msgspec

from ckptlog.records import Basis, Fix
from ckptlog.verdict.case import Case


class Finding(msgspec.Struct):
    """A rule's answer for one turn."""

    cause: str
    explanation: str
    confidence: Basis
    fixes: list[Fix] = []
    not_fixes: list[Fix] = []
    missing: list[str] = []


class CauseRule:
    """A reason why the server could not resume. ``find`` answers null when it does not apply.

    Subclasses carry the text for people in their docstring: a title line, then paragraphs under
    the headings "What happened", "How to see it", "What to do", "Example".
    """

    name: ClassVar[str]
    #: goes by where llama.cpp makes checkpoints, or how it looks for them: a fork may do it otherwise
    by_policy: ClassVar[bool] = False

    def find(self, case: Case) -> Finding | None:
        raise NotImplementedError

    @classmethod
    def doc(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "")
