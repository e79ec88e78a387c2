"""A short way for the commonest shapes: all lines of one, read by one anchored expression.

What a lane takes is what the long way (shapes.py, then the tokens) would have given, at a third of the cost;
a line that no lane matches goes the long way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from ckptlog.events.builders import NO_NUMBERS, RowBuilder, row_builder
from ckptlog.events.columns import microseconds, sound_number
from ckptlog.events.event import Event
from ckptlog.events.numbers import number_tokens
from ckptlog.events.plan import Plan

#: characters that may belong to a number token (a hex one, too) and so must not touch a number
_TOUCHY = re.compile(r"[0-9A-Fa-fxX_]")
_PLAIN = re.compile(r"[0-9]+(\.[0-9]+)*")
#: what Rust's expressions take for more than itself (they refuse some of what ``re.escape`` escapes)
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$#&~-])")
#: a longer line has free text in it
MOST_CHARS = 1000
PLACES = ("port", "slot", "task")


@dataclass(slots=True)
class Lane:
    """``pattern`` has one group for each name in ``groups``: ``stamp``, one of PLACES, or ``f0``, ``f1``... for the plan's numbers."""

    plan: Plan
    pattern: str
    groups: tuple[str, ...]
    build: RowBuilder
    #: neighbouring lines become one event with these fields, a tuple a line; null: an event a line
    block: tuple[str, ...] | None = None
    #: lines taken so far
    taken: int = 0

    def read(self, frame: pl.DataFrame) -> tuple[list[Event], int, pl.DataFrame]:
        """Of lines (no, line): the lane's events, of how many lines, and the lines that are not the lane's."""
        cut = frame["line"].str.extract_groups(self.pattern).struct.unnest()
        cut.columns = list(self.groups)
        fits = cut[self.groups[0]].is_not_null()
        n = fits.sum()
        if not n:
            return [], 0, frame
        rest = frame.clear()
        if n < frame.height:
            rest, frame, cut = frame.filter(~fits), frame.filter(fits), cut.filter(fits)
        fields = [name for name in self.groups if name.startswith("f")]
        cut = cut.with_columns(self._field(name) for name in fields)
        if fields and cut.select(pl.any_horizontal(pl.col(fields).has_nulls())).item():
            # a number beyond any sense: the long way tells that it is damaged
            sound = cut.select(pl.all_horizontal(pl.col(fields).is_not_null())).to_series()
            rest = pl.concat([rest, frame.filter(~sound)]).sort("no")
            frame, cut = frame.filter(sound), cut.filter(sound)
        rows = frame.hstack(cut)
        if not rows.height:
            return [], 0, rest
        if self.block is not None:
            return list(self._blocks(rows, self.block)), rows.height, rest
        rows = rows.select(
            "no", self._time(), *self._places(), *fields, *(["line"] if self.plan.keep_text else [])
        )
        return self.build(rows.iter_rows()), rows.height, rest

    def _field(self, name: str) -> pl.Expr:
        field = self.plan.numbers[int(name[1:])]
        number = sound_number(pl.col(name), is_float=field.is_float)
        return -number if field.negative else number

    def _time(self) -> pl.Expr:
        if "stamp" not in self.groups:
            return pl.lit(None, pl.Int64).alias("t")
        return microseconds(pl.col("stamp"), dotted=self.plan.dotted_time).alias("t")

    def _places(self) -> Iterator[pl.Expr]:
        """port, slot, task"""
        for name in PLACES:
            if name not in self.groups:
                yield pl.lit(None, pl.Int64).alias(name)
                continue
            number = sound_number(pl.col(name), is_float=False)
            yield -number if name == "task" and self.plan.heads.task_negative else number

    def _blocks(self, rows: pl.DataFrame, names: tuple[str, ...]) -> Iterator[Event]:
        """One event for each block of neighbouring lines, with a tuple of the named fields for each in ``rows``."""
        of = self.plan.wording
        columns = {self.plan.numbers[int(name[1:])].name: name for name in self.groups if name.startswith("f")}
        wanted = (pl.col(columns[name]) if name in columns else pl.lit(None) for name in names)
        fields = rows.select(expr.alias(name) for expr, name in zip(wanted, names, strict=True)).rows()
        places = [name for name in PLACES if name in self.groups]
        apart = pl.any_horizontal(
            pl.col("no").diff() != 1, *(pl.col(name) != pl.col(name).shift(1) for name in places)
        )
        heads = rows.with_row_index("at").filter(apart.fill_null(value=True))
        heads = heads.select("at", "no", self._time(), *self._places())
        ends = [*heads["at"].to_list()[1:], rows.height]
        for (at, no, t, port, slot, task), end in zip(heads.iter_rows(), ends, strict=True):
            yield Event(of, no, t, port, slot, task, {"rows": fields[at:end]}, None, of.kind)


def lane(plan: Plan, line: str, block: tuple[str, ...] | None = None) -> Lane | None:
    """The lane of a planned shape, made from an example; null if one expression can't tell for certain.

    ``block``: as in ``Lane``.
    """
    if plan.build is None or plan.slices or plan.open_ended or len(line) > MOST_CHARS:
        return None
    if block is not None and (plan.constants or plan.keep_text):
        return None
    names = {
        field.token: f"f{i}"
        for i, field in enumerate(plan.numbers)
        if field.name not in NO_NUMBERS and (block is None or field.name in block)
    }
    if len({field.token for field in plan.numbers}) < len(plan.numbers):
        return None
    for name, token in zip(("stamp", *PLACES), (plan.time_index, *plan.heads[:3]), strict=True):
        if token >= 0:
            if token in names:
                return None
            names[token] = name
    pattern, groups, at = "^", [], 0
    for token, match in enumerate(number_tokens.finditer(line)):
        between, text = line[at : match.start()], match.group()
        literal = between.rstrip(" ")
        spaced = literal != between
        if not _apart(literal, spaced=spaced, first=token == 0):
            return None
        if text.startswith("0x") and token not in names:
            number = "0x[0-9a-fA-F]+"
        elif _PLAIN.fullmatch(text):
            # one that is not read must not be beyond any sense, either
            number = ("[0-9]+" if token in names else "[0-9]{1,15}") + r"\.[0-9]+" * text.count(".")
        else:
            return None
        pattern += (
            _escaped(literal) + (" +" if spaced else "") + (f"({number})" if token in names else number)
        )
        if token in names:
            groups.append(names[token])
        at = match.end()
    tail = line[at:]
    if not groups or _TOUCHY.match(tail):
        return None
    # in the order of the groups, as the rows have them
    read = [plan.numbers[int(name[1:])].name for name in groups if name.startswith("f")]
    without = [field.name for field in plan.numbers if field.name in NO_NUMBERS]
    build = row_builder(
        plan.wording, read, without, plan.constants, with_text=plan.keep_text
    )
    return Lane(plan, f"{pattern}{_escaped(tail)}$", tuple(groups), build, block)


def _apart(literal: str, *, spaced: bool, first: bool) -> bool:
    """Is what stands before a number no part of a number token itself? ``first``: there is none before it."""
    if not literal:
        return first or spaced
    if not first and (_TOUCHY.match(literal) or literal == "."):
        return False
    return spaced or not _TOUCHY.match(literal[-1])


def _escaped(literal: str) -> str:
    return _SPECIAL.sub(r"\\\1", literal)
