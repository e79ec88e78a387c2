"""Lines that a terminal or a mail program wrapped at a width are put together again, and of lines that were cut off
at one the last number is not believed.

A line is joined with those behind it only where the grammar refuses it and reads the whole; what stands on the line
before stays a line of its own number, and those that were joined to it are left empty. The widest lines tell the width.
Every decision is bound to a line and to what stands before it, so that the lines are the same however the log is cut
into chunks. The first line that is wider than any terminal ends the search: what is written to a file has one soon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import polars as pl

from ckptlog.events.numbers import number_tokens
from ckptlog.intake.loggers import LOGGERS
from ckptlog.intake.reader import Chunk

#: no terminal, and no cut for reading, is wider
MOST_WIDTH = 300
#: no narrower one leaves a message's head whole
LEAST_WIDTH = 40
#: lines that are looked at for a first one that is wrapped or cut
MOST_LINES = 20_000
#: lines that one message may go on over
MOST_PIECES = 8
#: different lines that the grammar does not read and that end at one width show that this is where lines are cut
PROOFS = 2
#: ways to put pieces together that are kept: with the space at which the line was broken, or without it
_MOST_WAYS = 12
#: distinct shapes of which it is remembered whether the grammar reads them
_MOST_KNOWN = 50_000
#: distinct shapes that the grammar is asked about (some tenths of a millisecond each) for nothing, and for each line that
#: is mended: where there are more, text that someone chose is in them, and the log is taken for one that is not wrapped
MOST_ASKED = 5_000
ASKED_EACH = 50

#: joins tried in vain (each of which may cost milliseconds) after which a log is taken for one that is not wrapped
MOST_VAIN = 100

_LOGGER = rf"\b(?:{'|'.join(LOGGERS)}) +[^\s:]*:"
#: as the server's loggers begin a line, or a message without a head (builds without a prefix)
_BEGIN = rf"{_LOGGER}|\beval time =|\btid=\""
#: as any logger begins one
_HEAD = rf"{_LOGGER}|^ *\d+\.\d\d\.\d{{3}}\.\d{{3}} |\btid=\""
#: ends with a number of which digits may be missing; the last one of a release is 0 or 1
_OPEN_NUMBER = re.compile(r"(?<![.\d])\d[\d.]*$")
_WHOLE_NUMBER = re.compile(r"truncated = [01]$")
_DIGIT = re.compile(r"\s*\d")
_OF_NUMBER = frozenset("0123456789.")

#: what the grammar makes of a line: its status ("text" for an event whose text may be any), and its message's kind
Told = tuple[str, str]


class Rejoiner:
    """For one source. ``told`` asks the grammar; ``n_joined`` counts the messages that were put together."""

    def __init__(self, told: Callable[[str], Told]) -> None:
        self._told = told
        self._known: dict[str, Told] = {}
        self.n_joined = 0
        #: lines of which the last number was taken
        self.n_cut = 0
        self._vain = 0
        #: shapes known when the last place was done (a place at a chunk's end is looked at twice)
        self._asked = 0
        self._open = True
        self._held: Chunk | None = None
        #: the line up to which widths are known; the widest, and the shapes of lines as wide that the grammar does not read
        self._seen = 0
        self._width = 0
        self._shapes: set[str] = set()

    @property
    def words(self) -> list[str]:
        """What a reader of the report must know of it, in sentences."""
        if self.n_joined:
            many = self.n_joined > 1
            what = f"{self.n_joined:,} messages were" if many else "one message was"
            return [f"{what} wrapped on several lines (at up to {self._width} characters) and put together again"]
        if self.n_cut:
            what = "the last numbers of some are" if self.n_cut > 1 else "the last number of one is"
            return [f"lines were cut off at {self._width} characters: {what} not used, for digits may be missing"]
        return []

    def through(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """All of them, to the last."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.finish()

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """The chunks that can be read by now."""
        if self._held is not None:
            chunk, self._held = _joined(self._held, chunk), None
        return self._mended(chunk, more=True) if self._open else [chunk]

    def finish(self) -> list[Chunk]:
        """No more lines: what was held back because it may go on."""
        if self._held is None:
            return []
        chunk, self._held = self._held, None
        return self._mended(chunk, more=False)

    def _mended(self, chunk: Chunk, *, more: bool) -> list[Chunk]:
        lines = chunk.lines
        widths = _raw(chunk).str.len_chars()
        wide = (widths > MOST_WIDTH).arg_max() if len(widths) and widths.max() > MOST_WIDTH else None  # type: ignore[operator]
        room = len(lines) if wide is None else wide
        if not self.n_joined and not self.n_cut:
            room = min(room, max(0, MOST_LINES - chunk.first_line + 1))
        looked = _Looked(lines.head(room), widths.head(room), self._width)
        told: dict[int, str] = {}
        hold = self._walk(looked, chunk.first_line, told, may_go_on=more and room == len(lines))
        if room < len(lines) or self._in_vain:
            self._open = False
        if told:
            at = sorted(told)  # (scatter changes the series itself)
            chunk = chunk._replace(lines=lines.clone().scatter(at, [told[i] for i in at]), raw=_raw(chunk))
        if hold is None:
            return [chunk]
        self._held = _part(chunk, hold, len(lines))
        return [_part(chunk, 0, hold)] if hold else []

    def _walk(self, looked: _Looked, first_line: int, told: dict[int, str], *, may_go_on: bool) -> int | None:
        """What lines become, by their place; and from where on they wait for the lines behind them."""
        done = 0
        for at in looked.places:
            if at < done:
                continue
            if self._in_vain:
                break
            line, width = looked.lines[at], looked.widths[at]
            found = self._join(looked, at, may_go_on=may_go_on)
            if found is None:
                return at
            self._measure(line, width, first_line + at)
            text, n = found
            if n > 1:
                for i in range(at + 1, at + n):
                    self._measure(looked.lines[i], looked.widths[i], first_line + i)
                    told[i] = ""
                told[at] = text
                self.n_joined += 1
                done = at + n
            elif self._is_cut(line, width):
                told[at] = _OPEN_NUMBER.sub("", line)
                self.n_cut += 1
            self._asked = len(self._known)
        return None

    @property
    def _in_vain(self) -> bool:
        mended = self.n_joined + self.n_cut
        return self._vain > max(MOST_VAIN, self.n_joined) or self._asked >= max(MOST_ASKED, ASKED_EACH * mended)

    def _measure(self, line: str, width: int, number: int) -> None:
        if number <= self._seen:
            return
        self._seen = number
        if width > self._width:
            self._width = width
            self._shapes.clear()
        if width == self._width >= LEAST_WIDTH and len(self._shapes) < PROOFS and not self._reads(line):
            self._shapes.add(_shape(line))

    def _is_cut(self, line: str, width: int) -> bool:
        """Do other lines end at this width in the midst of a message, and none behind it?"""
        at_width = width == self._width and len(self._shapes) >= PROOFS
        return at_width and not self.n_joined and self._ends_open(line)

    def _ends_open(self, line: str) -> bool:
        """Does a message end with a number that may have more digits?"""
        if _OPEN_NUMBER.search(line) is None or _WHOLE_NUMBER.search(line) is not None:
            return False
        status, kind = self._ask(line)
        # (where any text may stand, digits are no number of the server's)
        return status == "event" and kind != "token_ids" and not self._reads(f"{line}x")

    def _join(self, looked: _Looked, at: int, *, may_go_on: bool) -> tuple[str, int] | None:
        """The message that begins on a line, and how many lines it takes; null if the next chunk must tell."""
        line = looked.lines[at]
        if not looked.may_begin(at):
            return line, 1
        best: tuple[str, int] | None = None
        if self._reads(line):
            if not (looked.widths[at] >= max(self._width, LEAST_WIDTH) and self._ends_open(line)):
                return line, 1
            best = line, 1  # its number may go on
        ways = [line]
        for n in range(1, MOST_PIECES):
            if at + n >= len(looked.lines):
                return None if may_go_on else best or (line, 1)
            piece = looked.lines[at + n]
            if not piece.strip() or looked.headed[at + n]:
                break
            if best is not None and _DIGIT.match(piece) is None:
                break
            ways = list(dict.fromkeys(way for before in ways for way in _ways(before, piece)))[:_MOST_WAYS]
            read = next((way for way in ways if self._reads(way)), None)
            if read is not None:
                best = read, n + 1
                if looked.widths[at + n] < self._width or _OPEN_NUMBER.search(read) is None:
                    break
            elif best is not None:
                break
        self._vain += best is None and len(ways) > 1
        return best or (line, 1)

    def _reads(self, line: str) -> bool:
        """Does the grammar read it (a slot's head alone is a row without ids, or what a wrapped line begins with)?"""
        status, kind = self._ask(line)
        return status in ("event", "text", "ignored") and not (kind == "token_ids" and line.rstrip().endswith("|"))

    def _ask(self, line: str) -> Told:
        shape = _shape(line)
        told = self._known.get(shape)
        if told is None:
            told = self._told(line)
            if len(self._known) < _MOST_KNOWN:
                self._known[shape] = told
        return told


class _Looked:
    """Lines, and which of them must be looked at: those that may go on on the next line, and those at the width."""

    def __init__(self, lines: pl.Series, widths: pl.Series, width: int) -> None:
        headed = lines.str.contains(_HEAD)
        begins = lines.str.contains(_BEGIN)
        goes_on = (~headed.shift(-1, fill_value=False)) & begins
        widest = widths >= widths.cum_max().clip(lower_bound=width)
        self.places: list[int] = (goes_on | widest).arg_true().to_list()
        self.lines, self.widths = lines, widths
        self.headed = headed
        self._begins = begins

    def may_begin(self, at: int) -> bool:
        return bool(self._begins[at])


def _shape(line: str) -> str:
    """Padding stays: where a number was broken, a space tells it from two."""
    return number_tokens.sub("#", line)


def _ways(before: str, piece: str) -> Iterator[str]:
    """How two pieces may belong together: as they are, without the wrapper's indent, or with the space of the break."""
    bare = piece.lstrip()
    if before[-1:] in _OF_NUMBER and bare[0] in _OF_NUMBER:
        yield before + bare  # no two numbers stand side by side
        return
    yield before + piece
    yield before + bare
    yield f"{before.rstrip()} {bare}"


def _raw(chunk: Chunk) -> pl.Series:
    return chunk.lines if chunk.raw is None else chunk.raw


def _part(chunk: Chunk, start: int, end: int) -> Chunk:
    raw = None if chunk.raw is None else chunk.raw.slice(start, end - start)
    before = int(_raw(chunk).head(start).str.len_bytes().sum()) + start
    return Chunk(chunk.lines.slice(start, end - start), chunk.first_line + start, chunk.offset + before, raw)


def _joined(one: Chunk, two: Chunk) -> Chunk:
    lines = pl.concat([one.lines, two.lines.rename(one.lines.name)])
    raw = None if one.raw is None and two.raw is None else pl.concat([_raw(one), _raw(two).rename(_raw(one).name)])
    return Chunk(lines, one.first_line, one.offset, raw)
