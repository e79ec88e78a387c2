"""Chunks as the reader gives them, out again without what an unknown program has put around their lines.

What it is shows in the lines that have a head. Until a few of them agree, lines are kept back: those before the first
head are wrapped, too. A log of a known form is told by its first head, and passes untouched from then on. Every
decision is bound to a line, not to a chunk, so that the lines are the same however the log is cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import polars as pl

from ckptlog.intake.loggers import MAIN_LOGGERS
from ckptlog.intake.reader import Chunk
from ckptlog.intake.surround import NBSP, Surround, surround_of

#: heads that must agree on a form: a text that someone chose may imitate one or two
PROOFS = 3
#: at the end of a short paste fewer must do
LEAST_PROOFS = 2
#: times as many for a form that goes on where another one ends: what follows there may be such a text
MUCH_MORE = 10
#: lines and bytes that are kept back for a head; a server prints its first one much earlier
MOST_LINES = 20_000
MOST_BYTES = 32 << 20
#: lines that are looked at, each of which may cost milliseconds, until the form is known, and for other ones then
MOST_LOOKS = 300
#: forms of one log; where there are more that a few lines have, they are no forms
MOST_FORMS = 16
MOST_VOTED = 64
#: lines looked at in one go
_STEP = 500
#: of a log that has none of the main loggers' lines, lines that stand as the server printed them
_OWN = re.compile(r'(?s)^(?:\w+ +\[ *\w+\] .*\btid="|prompt eval time = .*second\)$)')


class Learner:
    """For one source. ``forms``: what was learned, in the order in which they are tried."""

    def __init__(self) -> None:
        self.forms: list[Surround] = []
        self._open = True
        self._held: list[Chunk] = []
        self._bytes = 0
        self._votes: Counter[Surround] = Counter()
        self._plain = 0
        self._looks = 0

    def through(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """All of them, to the last."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.finish()

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """The chunks that can be read by now."""
        if not self._open:
            return [self._bared(chunk)] if self.forms else [chunk]
        decided = self._look(chunk)
        self._held.append(chunk)
        if decided is None:
            return []
        self._open = False
        held, self._held = self._held, []
        if not self.forms:
            return held
        # up to the line that decided all lines are read alike; other forms are looked for behind it
        return [*(_bare(chunk, self._taken_off(chunk.lines)) for chunk in held[:-1]), self._bared(chunk, decided)]

    def finish(self) -> list[Chunk]:
        """No more lines: what is still kept back."""
        if self._open and self._votes:
            self._open = False
            form, proofs = self._votes.most_common(1)[0]
            if proofs >= LEAST_PROOFS and proofs > self._plain:
                self.forms = [form]
        held, self._held = self._held, []
        return [_bare(chunk, self._taken_off(chunk.lines)) for chunk in held] if self.forms else held

    def _look(self, chunk: Chunk) -> int | None:
        """How many of the chunk's lines it took to decide; null if they were not enough."""
        for start in range(0, len(chunk.lines), _STEP):
            step = chunk.lines.slice(start, _STEP)
            number = chunk.first_line + start
            room = self._room(step, number)
            for at, line in _with_heads(step.head(room)):
                if self._decides(line, number + at):
                    return start + at + 1
            if room < len(step):
                return start + room
        return None

    def _room(self, step: pl.Series, number: int) -> int:
        """How many of these lines may still be kept back, of which the first has that number."""
        room = min(len(step), max(0, MOST_LINES + 1 - number))
        size = int(step.str.len_bytes().sum())
        if self._bytes + size > MOST_BYTES:
            sizes = step.str.len_bytes().cum_sum() + self._bytes
            room = min(room, int((sizes <= MOST_BYTES).sum()))
        self._bytes += size
        return room

    def _decides(self, line: str, number: int) -> bool:
        """Is the log's form certain, now that this line was seen, or not to be told?"""
        self._looks += 1
        if self._looks > MOST_LOOKS or len(self._votes) > MOST_VOTED:
            return True
        form = surround_of(line)
        if form is not None and not form.is_nothing:
            if not self._proves(form, line) or self._votes[form] <= self._plain:
                return False
            self._learn(form)
            return True
        if form is None and _OWN.match(line) is None:
            return False
        # what was copied may begin in the middle of its first line
        self._plain += number > 1
        # where no two spaces stand in a row, non-breaking ones would not show
        sure = self._plain >= PROOFS or (form is not None and "  " in line)
        return sure and self._plain > max(self._votes.values(), default=0)

    def _proves(self, form: Surround, line: str) -> bool:
        """Have enough lines the form, with this one? A shorter one that the line has, too, comes first."""
        self._votes[form] += 1
        shorter = max(
            (votes for other, votes in self._votes.items() if other.is_in(form) and re.match(other.pattern, line)),
            default=0,
        )
        return self._votes[form] >= max(PROOFS, MUCH_MORE * shorter)

    def _learn(self, form: Surround) -> None:
        self._looks = 0
        self.forms = sorted([*self.forms, form], key=lambda form: form.order)
        del self._votes[form]

    def _bared(self, chunk: Chunk, start: int = 0) -> Chunk:
        """The chunk without its surroundings; from the ``start``-th line on other forms are looked for."""
        lines = chunk.lines
        pieces: list[pl.Series] = []
        done = 0
        for at, line in self._strangers(lines.slice(start)):
            if self._is_enough():
                break
            if any(re.match(form.pattern, line) for form in self.forms):
                continue
            self._looks += 1
            form = surround_of(line)
            if form is None or form.is_nothing:
                continue
            if self._proves(form, line):
                pieces.append(self._taken_off(lines.slice(done, start + at - done)))
                done = start + at
                self._learn(form)
        pieces.append(self._taken_off(lines.slice(done)))
        return _bare(chunk, pl.concat(pieces))

    def _is_enough(self) -> bool:
        return self._looks >= MOST_LOOKS or len(self.forms) >= MOST_FORMS or len(self._votes) > MOST_VOTED

    def _strangers(self, lines: pl.Series) -> Iterator[tuple[int, str]]:
        """The lines with a head that have none of the forms, and their places."""
        if self._is_enough():
            return
        # a line whose spaces are hard ones is looked at as it will be read
        strange = ~_has_any(self._softened(lines), self.forms)
        places = strange.arg_true()
        for at, line in _with_heads(lines.filter(strange)):
            yield places[at], line

    def _softened(self, lines: pl.Series) -> pl.Series:
        if any(form.hard for form in self.forms):
            return lines.str.replace_all(NBSP, " ", literal=True)
        return lines

    def _taken_off(self, lines: pl.Series) -> pl.Series:
        """The lines without the forms learned so far, each without the first that it has."""
        lines = self._softened(lines)
        if len(self.forms) == 1 and not self.forms[0].quote:
            return self.forms[0].bare(lines)
        left = pl.Series([True]).new_from_index(0, len(lines))
        for form in self.forms:
            has = left & lines.str.contains(form.pattern)
            if has.any():
                bare = form.bare(lines.filter(has))
                lines = lines.clone().scatter(has.arg_true(), bare)  # (it would change the raw lines)
                left &= ~has
        return lines


def _bare(chunk: Chunk, lines: pl.Series) -> Chunk:
    return chunk._replace(lines=lines, raw=chunk.lines)


def _with_heads(lines: pl.Series) -> list[tuple[int, str]]:
    """The lines that may show the form, and their places."""
    found = lines.str.contains_any([*MAIN_LOGGERS]) | lines.str.contains(_OWN.pattern)
    return list(zip(found.arg_true().to_list(), lines.filter(found).to_list(), strict=True))


def _has_any(lines: pl.Series, forms: Iterable[Surround]) -> pl.Series:
    found = pl.Series([False]).new_from_index(0, len(lines))
    for form in forms:
        found |= lines.str.contains(form.pattern)
    return found
