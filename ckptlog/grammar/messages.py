"""The grammar of all messages: finds the rules that may fit a text by their literal heads and lets Lark decide."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

from ckptlog.grammar.annotations import GrammarError, read_kinds
from ckptlog.grammar.files import message_files
from ckptlog.grammar.kinds import FAMILIES, Kind, Message, Refused
from ckptlog.grammar.parsers import FileParser


class MessageGrammar:
    """All kinds of messages, and a parser for each grammar file, compiled on first use."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        """`paths`: the grammar files; raises `GrammarError` if two kinds have one name."""
        self._paths = {path.stem: path for path in paths}
        self._parsers: dict[str, FileParser] = {}
        self.kinds: dict[str, Kind] = {}
        for path in paths:
            for kind in read_kinds(path):
                if kind.name in self.kinds:
                    raise GrammarError(
                        f"{path.name}: kind {kind.name!r} stands in {self.kinds[kind.name].file} too"
                    )
                self.kinds[kind.name] = kind

    def parse(self, text: str, family: str = "slot") -> Message:
        """The message that `text` is; raises `Refused`, whose `kind` is None if no head is known.

        `text` is what stands after `slot func: id N | task M | ` or `srv  func: `, for the families `bare`
        and `tagged` the whole line, without the line end. Spans of the fields are offsets into `text`.
        """
        furthest: Refused | None = None
        for kind in self.candidates(text, family):
            try:
                return self.parser(kind).parse(kind, text)
            except Refused as refused:
                if furthest is None or refused.column > furthest.column:
                    furthest = refused
        raise furthest or Refused(0, (), None)

    def candidates(self, text: str, family: str) -> list[Kind]:
        """The kinds of `family` that have a head in `text`, the longest head first; then, for a text without
        any letter, the kinds that have no head."""
        found = [
            (max(map(len, present)), kind)
            for kind, heads in self._by_family[family]
            if (present := [head for head in heads if head in text])
        ]
        kinds = [kind for _, kind in sorted(found, key=lambda pair: -pair[0])]
        if not any(character.isalpha() for character in text):
            kinds += [kind for kind, heads in self._by_family[family] if not heads]
        return kinds

    def heads_of(self, kind: str) -> tuple[str, ...]:
        """The literals of which every message of `kind` contains one; KeyError for an unknown kind."""
        return self.kinds[kind].heads

    def parser(self, kind: Kind) -> FileParser:
        """The parser of the file in which `kind` stands."""
        if kind.file not in self._parsers:
            of_file = [other for other in self.kinds.values() if other.file == kind.file]
            self._parsers[kind.file] = FileParser(self._paths[kind.file], of_file)
        return self._parsers[kind.file]

    @cached_property
    def _by_family(self) -> dict[str, list[tuple[Kind, tuple[str, ...]]]]:
        return {
            family: [(kind, kind.heads) for kind in self.kinds.values() if family in kind.families]
            for family in FAMILIES
        }


@cache
def messages() -> MessageGrammar:
    """The grammar of llama-server's messages, read once a process."""
    return MessageGrammar(message_files())
