"""What a program that no rule knows puts around each line: a form, learned from one line that has a head.

A log collector, a desktop app or a person who numbers lines writes the same around all of a server's lines, but for
numbers, dates and levels. What stands before a head shows that form; with it the lines without a head can be read, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ckptlog.intake.loggers import LEVEL_WORDS
from ckptlog.intake.unwrap import HEAD_CHARS, heads_in, is_headed, known_length

#: what may differ from line to line; the padding of a number, too
_CHANGING = re.compile(
    r"(?P<number> *\d+(?:[.,:]\d+)*)"
    r"|(?P<word>\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun|AM|PM)(?![a-z])"
    r"|(?<=\d)[AP]M\b|\b(?:stdout|stderr)\b)"
    rf"|(?P<level>(?i:\b(?:{'|'.join(LEVEL_WORDS)})\b))"
    r"|(?P<space>\s+)"
)
_DIGITS = r"\d+(?:[.,:]\d+)*"
_SPACE = r"\s+"
_WORD = r"[A-Za-z]+"
#: at the line's end, of every line
_SUFFIX = re.compile(r"(?P<sign>\$|<br ?/?>|\|)\s*$")
_SUFFIXES = {"$": r"\$", "<": "<br ?/?>", "|": r" ?\|"}
#: for each kind of quote what stands in it, up to its end: JSON, Python (which takes double ones for a text with single
#: ones in it), a field of a CSV table (which may do without)
_QUOTED = {
    '"': r'(?P<inner>(?:[^"\\]|\\.)*).*',
    "'": r"""(?:'(?P<inner>(?:[^'\\]|\\.)*)'.*|"(?P<other>(?:[^"\\]|\\.)*)".*)""",
    ",": r'(?:"(?P<other>(?:[^"]|"")*)".*|(?P<inner>[^"].*|))',
}
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "r": "", "t": "\t", "0": "\0", "b": "\b", "f": "\f"}
NBSP = "\u00a0"


class Surround(NamedTuple):
    """The form, as expressions that Python and Rust read alike.

    ``known`` is for a wrapper that a rule knows, which stays; ``before`` and ``suffix`` for what goes; ``quote`` is one of
    ``_QUOTED`` if the line stands in quotes. ``hard``: its spaces are non-breaking ones.
    """

    known: str
    before: str
    quote: str = ""
    suffix: str = ""
    hard: bool = False

    @property
    def pattern(self) -> str:
        """An expression for a whole line."""
        inner = _QUOTED.get(self.quote) or (
            rf"(?P<inner>.*?)(?:{self.suffix}\s*)?" if self.suffix else "(?P<inner>.*)"
        )
        return rf"(?s)^(?P<known>{self.known}){self.before}{inner}$"

    @property
    def is_nothing(self) -> bool:
        """Is the line as the server printed it, or in a wrapper that a rule knows?"""
        return not (self.before or self.quote or self.suffix or self.hard)

    @property
    def order(self) -> tuple[bool, int]:
        """Which goes first where a line has several: a longer one may be made of a text that someone chose."""
        return not self.quote, len(self.before)

    def is_in(self, other: Surround) -> bool:
        """Is it a shorter one?"""
        return not self.quote and len(self.known + self.before) < len(other.known + other.before)

    def bare(self, lines: pl.Series) -> pl.Series:
        """The lines, which all have the form, without it."""
        other = "${other}" if self.quote in ("'", ",") else ""
        found = lines.str.replace(self.pattern, f"${{known}}${{inner}}{other}")
        if not self.quote:
            return found
        mark = '""' if self.quote == "," else "\\"
        return pl.Series(
            lines.name,
            [self._unescaped(line) if mark in line else line for line in found.to_list()],
            dtype=pl.String,
        )

    def _unescaped(self, line: str) -> str:
        if self.quote == ",":
            return line.replace('""', '"')
        # (two escapes may be the halves of one character, or one half alone)
        halves = _ESCAPED.sub(_character, line).rstrip("\n").encode("utf-16", "surrogatepass")
        text = halves.decode("utf-16", "replace")
        if not self.before.endswith("b"):
            return text
        try:  # Python's bytes
            return text.encode("latin-1").decode("utf-8", "replace")
        except UnicodeEncodeError:
            return text


_NOTHING = Surround("", "")
#: what stands around a message is no longer
MOST_CHARS = 256


def surround_of(line: str) -> Surround | None:
    """The form of what stands around a line with a head; null if it has none, or one that is not to be trusted.

    A line that is as the server printed it gives a form that changes nothing (``is_nothing``).
    """
    head = line[:HEAD_CHARS]
    hard = NBSP in head
    if hard:
        head = head.replace(NBSP, " ")
    start = next(heads_in(head), None)
    if start is None:
        return None
    sign = _SUFFIX.search(line[-16:])
    if sign is None and not hard and is_headed(line):
        return _NOTHING
    before = head[:start]
    if len(before) > MOST_CHARS:
        return None
    opened = _opened(before)
    for kept in dict.fromkeys((opened or start, start)):
        if opened and kept == start and '\\"' in before:
            continue  # a quote within the quote
        found = _around(before[:kept], sign["sign"][0] if sign is not None else "", hard=hard)
        for form in found:
            (bare,) = form.bare(pl.Series("line", [head if hard else line]))
            if is_headed(bare):
                return form
    return None


def _around(before: str, sign: str, *, hard: bool) -> Iterator[Surround]:
    """The forms that it may be: a wrapper that a rule knows, if one stands first, is better kept."""
    quote = _quote(before)
    # a server's line may end with a bar
    suffix = "" if quote or (sign == "|" and not before.lstrip().startswith("|")) else _SUFFIXES.get(sign, "")
    at = known_length(before)
    if quote != '"' and before.endswith(('"', "'")):
        before = before[:-1]  # stands in what is quoted
    for cut in (at, 0) if at else (0,):
        yield Surround(form_of(before[:cut]), form_of(before[cut:], last=True), quote, suffix, hard)


def _quote(before: str) -> str:
    """The quote that the line stands in, if it stands in one."""
    if before.endswith((',"', ",")):
        return ","
    if before.endswith(("'", 'b"')):
        return "'"
    return '"' if _opened(before) else ""


def _opened(before: str) -> int:
    """Where the text begins whose quote is not closed; 0 if there is none."""
    quotes = [found.end() for found in re.finditer(r'(?<!\\)"', before)]
    return quotes[-1] if len(quotes) % 2 else 0


def form_of(before: str, *, last: bool = False) -> str:
    """An expression for it, with any other numbers, dates and levels; ``last``: less space may stand at its end."""
    kept = before.rstrip() if last else before
    pieces: list[str] = []
    at = 0
    for match in _CHANGING.finditer(kept):
        pieces.append(re.escape(kept[at : match.start()]))
        # what stands right behind another piece must be told from it, or long texts could be cut in very many ways
        before_it = pieces[-2] if len(pieces) > 1 and not pieces[-1] else ""
        at = match.end()
        if match.lastgroup == "number":
            space = "" if before_it == _SPACE else " +" if before_it.endswith(_DIGITS) else " *"
            pieces.append(space + _DIGITS)
        else:
            pieces.append(_SPACE if match.lastgroup == "space" else _WORD)
    pieces.append(re.escape(kept[at:]))
    if len(kept) < len(before):
        pieces.append(rf"\s{{0,{len(before) - len(kept)}}}")
    return "".join(pieces)


def _character(match: re.Match[str]) -> str:
    byte, code, letter = match.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    return chr(int(byte or code, 16))
