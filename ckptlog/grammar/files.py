"""Where the grammar files are: `grammars/` of a source checkout, or the copy that the wheel carries."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ckptlog.errors import CkptlogError

_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE / "_data" / "grammars", _PACKAGE.parent / "grammars")


class GrammarFilesMissing(CkptlogError):
    """The installation has lost its grammar files."""


@cache
def grammar_folder() -> Path:
    """The folder with the Lark files; raises `GrammarFilesMissing` if there is none."""
    for place in _PLACES:
        if place.is_dir():
            return place
    raise GrammarFilesMissing("the grammar files are not installed with ckptlog; install it again")


def grammar_file(name: str) -> Path:
    """The path of one grammar by its name below `grammars/`, e.g. `filter.lark`."""
    return grammar_folder() / name


def message_files() -> tuple[Path, ...]:
    """The grammars of the server's messages, one a concern, in the order of their names."""
    return tuple(sorted((grammar_folder() / "messages").glob("*.lark")))
