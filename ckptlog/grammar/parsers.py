"""Lark's parser for one grammar file, with a start rule a kind; compiled when a message first needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ckptlog.grammar.kinds import Field, Kind, Message, Refused

if TYPE_CHECKING:
    from lark import Lark, Tree
    from lark.common import LexerConf
    from lark.exceptions import UnexpectedInput
    from lark.lexer import ContextualLexer, Token

# what a reader of a drift report should see in place of a terminal's name
_TERMINAL_WORDS = {
    "$END": "the end of the line",
    "<END-OF-FILE>": "the end of the line",
    "INT": "an integer",
    "FLOAT": "a number",
    "POINTER": "a pointer",
    "FUNC": "a function's name",
    "NAME": "a name",
    "NONSPACE": "a word",
    "IN_QUOTES": "text in quotes",
    "REST": "text",
}


def compiled(path: Path, start: list[str]) -> Lark:
    """Lark's LALR parser for a grammar file; its tables are kept in the user's cache folder."""
    from lark import Lark

    tables = _cache_file(path)
    return Lark(
        path.read_text(encoding="utf-8"),
        parser="lalr",
        start=start,
        source_path=str(path),
        import_paths=[str(path.parent)],
        maybe_placeholders=False,
        cache=str(tables) if tables else False,
        _plugins={"ContextualLexer": _lexer_class()},
    )


class FileParser:
    """The compiled grammar of one file; `parse` takes a kind of that file. `lark` is Lark's own object."""

    def __init__(self, path: Path, kinds: Iterable[Kind]) -> None:
        self.lark: Lark = compiled(path, [kind.name for kind in kinds])

    def parse(self, kind: Kind, text: str) -> Message:
        """The message that `text` is by the rule of `kind`; raises `Refused`."""
        from lark.exceptions import UnexpectedInput

        try:
            tree = self.lark.parse(text, start=kind.name)
        except UnexpectedInput as error:
            raise self._refused(kind, text, error) from None
        fields: dict[str, Field] = {}
        _collect(tree, text, fields)
        wording = kind.wording(str(tree.data))
        return Message(kind.name, wording.name, fields, wording.build_min, wording.build_max)

    @cached_property
    def numbers(self) -> dict[str, str]:
        """Field -> INT or FLOAT, for the fields whose rule is just such a number (and not a list of them)."""
        found: dict[str, str] = {}
        others: set[str] = set()
        for rule in self.lark.rules:
            name = str(rule.origin.name)
            if len(rule.expansion) == 1 and rule.expansion[0].name in ("INT", "FLOAT"):
                found[name] = rule.expansion[0].name
            else:
                others.add(name)
        return {name: terminal for name, terminal in found.items() if name not in others}

    def _refused(self, kind: Kind, text: str, error: UnexpectedInput) -> Refused:
        from lark.exceptions import UnexpectedCharacters, UnexpectedToken

        column: int = len(text)
        names: Iterable[str] = ()
        if isinstance(error, UnexpectedCharacters):
            column, names = error.pos_in_stream or 0, error.allowed or ()
        elif isinstance(error, UnexpectedToken):
            if error.token.type != "$END" and error.token.start_pos is not None:
                column = error.token.start_pos
            names = error.accepts or error.expected
        return Refused(column, tuple(sorted({self._words(name) for name in names} - {""})), kind.name)

    def _words(self, terminal: str) -> str:
        if terminal in _TERMINAL_WORDS:
            return _TERMINAL_WORDS[terminal]
        if terminal == "WS":
            return ""
        pattern = self.lark.get_terminal(terminal).pattern
        return f"'{pattern.value}'" if pattern.type == "str" else "text"


@cache
def _lexer_class() -> type[ContextualLexer]:
    """Lark's contextual lexer without its check for terminals that collide.

    Where `interegular` happens to be installed the check runs for minutes on these grammars, whatever the
    options; the tests hold every rule against every example instead.
    """
    from lark.lexer import ContextualLexer

    class UncheckedLexer(ContextualLexer):
        def __init__(
            self, conf: LexerConf, states: dict[int, Collection[str]], always_accept: Collection[str] = ()
        ) -> None:
            conf.skip_validation = True
            super().__init__(conf, states, always_accept)

    return UncheckedLexer


def _cache_file(path: Path) -> Path | None:
    """Where Lark keeps the compiled tables of `path` (it checks them against the grammar's text): building
    them takes tenths of a second, loading them milliseconds. None if the folder can't be made."""
    import platformdirs

    folder = platformdirs.user_cache_path("ckptlog") / "grammars"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / f"{path.stem}.tables"


def _collect(tree: Tree[Token], text: str, fields: dict[str, Field]) -> None:
    """Fills `fields` with every named sub-rule of `tree`, outer before inner."""
    from lark import Tree

    for child in tree.children:
        if isinstance(child, Tree):
            span = _span(child)
            if span is not None:
                fields[str(child.data)] = Field(text[span[0] : span[1]], *span)
            _collect(child, text, fields)


def _span(tree: Tree[Token]) -> tuple[int, int] | None:
    tokens = list(tree.scan_values(lambda _: True))
    if not tokens:
        return None
    start, end = tokens[0].start_pos, tokens[-1].end_pos
    return None if start is None or end is None else (start, end)
