"""The server's messages: kinds, wordings and the builds that print them, all read from `grammars/messages/`.

`messages().parse(text, family)` gives a `Message` or raises `Refused`. Lark is imported by the first parse.
"""

from __future__ import annotations

from ckptlog.grammar.annotations import GrammarError
from ckptlog.grammar.kinds import Family, Field, Kind, Level, LevelRange, Message, Refused, Treatment, Wording
from ckptlog.grammar.messages import MessageGrammar, messages

__all__ = [
    "Family",
    "Field",
    "GrammarError",
    "Kind",
    "Level",
    "LevelRange",
    "Message",
    "MessageGrammar",
    "Refused",
    "Treatment",
    "Wording",
    "messages",
]
