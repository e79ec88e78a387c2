"""Which lines of a chunk can matter, and the shape of each: its text with ``#`` for every number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from ckptlog.events.expressions import any_of
from ckptlog.events.numbers import PADDED_NUMBER
from ckptlog.grammar import Kind, MessageGrammar
from ckptlog.intake.loggers import MAIN_LOGGERS, TAG_LEVELS
from ckptlog.intake.reader import Chunk

#: a message of interest ends well before this; longer lines are free text at their tail
SHAPE_CHARS = 3000
#: heads that every line of the slots' and the server's own loggers has
LINE_HEADS = [f"{logger} " for logger in MAIN_LOGGERS]
#: without their space, however a line is wrapped: what is in no such line is no message of theirs
_LOGGERS = [*MAIN_LOGGERS]
#: what lines of the tagged form hold, plain (levels are padded to a width) or as JSON
TAG_HEADS = [*(f"{level}{space}[" for level in TAG_LEVELS for space in (" ", "  ")), '"function":"']
#: what stands in front of a message: the colon of a function's name, the bar of a slot's head, a tag's bracket, a key
_BEFORE_MESSAGE = (": ", "| ", "] ", '"msg":"')


class LineFilter:
    """Passes over whole chunks; each looks only at what the one before left.

    ``text_heads`` are the heads of needed messages that end in free text.
    """

    def __init__(self, grammar: MessageGrammar, needed: frozenset[str], text_heads: Sequence[str]) -> None:
        self.text_heads = list(text_heads)
        kinds = grammar.kinds.values()
        floods = [k for k in kinds if k.treatment == "text" and k.name not in needed]
        self.flood_heads = [head for k in floods for head in _fronts(k) or k.heads]
        #: of those that are also printed without a logger's head
        self.bare_floods = _heads(k for k in floods if "bare" in k.families)
        needed_kinds = [k for k in kinds if k.treatment != "ignored" and k.name in needed]
        self.literals = _heads(needed_kinds)
        #: those of messages that another logger prints
        self._others = any_of([*_heads(k for k in needed_kinds if {*k.families} - {*_LOGGERS}), *TAG_HEADS])
        #: what the other messages of those loggers begin with: a line that only holds such a word somewhere is none
        self.known = sorted(
            {*self.flood_heads, *(head for k in kinds if {*k.families} & {*_LOGGERS, "tagged"} for head in _fronts(k))}
        )
        self._special = [*self.flood_heads, *self.text_heads]

    def numbered(self, chunk: Chunk) -> pl.DataFrame:
        """All lines: no, line."""
        return pl.DataFrame([chunk.lines.rename("line")]).with_row_index("no", offset=chunk.first_line)

    def candidates(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The lines that may matter, in order: no, line, shape."""
        line = pl.col("line")
        ours = frame["line"].str.contains_any(_LOGGERS)
        others, frame = frame.filter(~ours), frame.filter(ours)
        others = others.filter(line.str.contains(self._others))
        hit = frame["line"].str.contains_any(self.literals)
        rest, frame = frame.filter(~hit), frame.filter(hit)
        # a line without letters behind its head (a row of ids) has no literal: it comes in as unknown ones do
        headed = line.str.contains_any([*LINE_HEADS, *TAG_HEADS])
        unknown = rest.filter(headed).filter(~line.str.contains_any(self.known))
        if others.height or unknown.height:
            frame = pl.concat([frame, others, unknown]).sort("no")
        special = self._has_free_text(frame)
        texts = pl.DataFrame()
        if special is not None and special.any():
            odd = frame.filter(special)
            frame = frame.filter(~special)
            texts = self._cut(odd)
        frame = frame.with_columns(line.str.slice(0, SHAPE_CHARS).alias("shape"))
        if texts.height:
            frame = pl.concat([frame, texts]).sort("no")
        return frame.with_columns(pl.col("shape").str.replace_all(PADDED_NUMBER, "#"))

    def _has_free_text(self, frame: pl.DataFrame) -> pl.Series | None:
        line = pl.col("line")
        if not self._special:
            return None
        bare = line.str.contains_any(self.bare_floods) & ~line.str.contains_any(LINE_HEADS)
        return frame.select(line.str.contains_any(self._special) | bare).to_series()

    def _cut(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Of lines with free text those that are needed; their shape ends with the head."""
        line = pl.col("line")
        if not self.text_heads:
            return frame.clear()
        frame = frame.filter(line.str.contains_any(self.text_heads))
        # bytes: `find` counts them
        ends = (line.str.find(head, literal=True) + len(head.encode()) for head in self.text_heads)
        begin = line.cast(pl.Binary).bin.slice(0, pl.min_horizontal(*ends))
        return frame.with_columns(begin.cast(pl.String, strict=False).alias("shape"))


def _fronts(kind: Kind) -> list[str]:
    """What lines of the kind begin with, and what stands before that; none if one of them begins otherwise, or with a
    plain word, which any message may begin with: such lines are for the grammar to tell."""
    found: set[str] = set()
    for wording in kind.wordings:
        for example in wording.examples:
            head = next((head for head in kind.heads if head in example), "")
            front = example[: example.index(head)]  # spaces, and the dash of a listing
            if not head or head.isalpha() or any(character.isalnum() for character in front):
                return []
            found |= {before + front + head for before in _BEFORE_MESSAGE}
    return sorted(found)


def _heads(kinds: Iterable[Kind]) -> list[str]:
    return sorted({head for kind in kinds for head in kind.heads})
