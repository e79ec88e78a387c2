"""The names of the server's loggers and the words for levels, wherever a line's head is looked for without its grammar.

The forms themselves are in ``grammars/envelope.lark``; a test holds these words against its terminals.
"""

from __future__ import annotations

from typing import Literal

from ckptlog.grammar.kinds import Family

Letter = Literal["E", "W", "I", "D"]

#: a line's head begins with one of these
LOGGERS: tuple[Family, ...] = ("slot", "srv", "que", "res", "cmn", "spec")
#: the two that tell of turns: every log has lines of theirs
MAIN_LOGGERS = ("slot", "srv")
#: levels as the tagged form writes them (builds of 2024, and forks that kept it)
TAG_LEVELS = ("INFO", "WARN", "ERR", "ERROR", "DEBG", "DEBUG", "VERB")
#: the logger's letter for a level, as any form of the server's log spells it
LETTERS: dict[str, Letter] = {
    "I": "I", "INFO": "I", "W": "W", "WARN": "W", "WARNING": "W", "E": "E", "ERR": "E", "ERROR": "E",
    "D": "D", "DEBG": "D", "DEBUG": "D", "VERB": "D",
}  # fmt: skip
#: words for levels in the logs of other programs, in lower case
LEVEL_WORDS = (
    "trace", "debug", "debg", "dbg", "verbose", "verb", "info", "inf", "notice", "warn", "warning", "wrn",
    "error", "err", "critical", "crit", "fatal",
)  # fmt: skip
