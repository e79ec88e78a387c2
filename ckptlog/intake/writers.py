"""Which of several servers that write into one file a line is of: what its wrapper calls it.

A service of docker compose, a pod's container, a process of the journal, an app of pm2, a file of ``tail -f``. The first
line that gives an event shows which of these forms the log has; a log without any costs nothing more. Of one that has,
each line is compared with how the lines of the server seen last begin, and only the others are taken apart.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import cache, partial, reduce
from operator import and_

import polars as pl

from ckptlog.intake.loggers import LEVEL_WORDS, LOGGERS
from ckptlog.intake.unwrap import date_pattern
from ckptlog.intake.writer import Writer

#: the number of a writer that is not told
NOBODY = 0
#: names in one file; where there are more, they are none of servers
MOST_NAMES = 4096

#: times that stand where a date may, with a name behind them
_CLOCK = r"\d+:\d+:\d+(?:[.,]\d+)?|\d+\.\d+"
_COLOUR = r"(?:(?:\x1b|\^\[|#033)\[[0-9;]*m)*"
_BEGIN = rf"^{_COLOUR}(?:<\d+>)?"
_NAME = r"(?:\d+\|)?[\w.@/-]*[A-Za-z][\w.@/-]*|\[[\w.@/-]*[A-Za-z][\w.@/-]*\]"
_HOST = r"[^\s\[\]:|]+"
_SERVICE = rf"({_NAME}) +\|(?:\s|$)"
_PROGRAM = rf"((?:{_HOST} +)?[^\s\[\]|]+\[\d+\]|{_HOST} +{_HOST}):"


@cache
def _forms() -> tuple[re.Pattern[str], ...]:
    """Each with two groups: the name, and the name of what a program with that name wraps in turn."""
    date = rf"(?:{date_pattern()}|{_CLOCK}) +"
    journald = f"{_BEGIN}{date}{_PROGRAM}"
    forms = (
        # docker compose, docker service, podman-compose, pm2, foreman
        rf"{_BEGIN}(?:{date})?{_SERVICE}()",
        # kubectl logs --prefix
        rf"{_BEGIN}(?:{date})?\[pod/([^\]\s]+)\](?:\s|$)()",
        # RFC 5424
        r"^<\d+>1 \S+ (\S+ \S+ \S+) \S+ ()",
        # journalctl, /var/log/syslog; before that, docker compose as a unit of systemd
        rf"{journald}(?: +{_SERVICE}|\s|$)",
        rf"{journald}(?:\s|$)()",
        # kail
        rf"{_BEGIN}([\w./-]+\[[\w.-]+\]):(?:\s|$)()",
    )
    return tuple(map(re.compile, forms))


#: what stands where a name could, and is none
_NO_NAME = re.compile(
    rf"(?:std)?(?:out|err)|[a-z]|{'|'.join(LEVEL_WORDS)}",
    re.IGNORECASE,
)
_LOGGERS = re.compile(rf"(?:{'|'.join(LOGGERS)}|[IWED])\s")
_PROCESS = re.compile(r"\[\d+\]| \d+$")
_TAIL = re.compile(r"^==> (.+) <==$")
_ROTATED = re.compile(r"\.\d+$")


class Form(ABC):
    """How the writer is written on each line, or above several."""

    @abstractmethod
    def keys(self, lines: pl.Series) -> pl.Series:
        """What tells the writers of lines apart; null: that of the line before."""

    @abstractmethod
    def writer(self, key: str, line: str) -> Writer:
        """What a key stands for, met first on this line."""

    @abstractmethod
    def alike(self, lines: pl.Series, example: str) -> pl.Series:
        """Of which lines it is seen at once that they have the example's writer."""


class Prefixed(Form):
    """A name in front of each line."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._host: str | None = None

    def keys(self, lines: pl.Series) -> pl.Series:
        found = lines.str.extract_groups(self._pattern.pattern).struct.unnest()
        outer, inner = found.columns
        name = pl.col(outer)
        inside = pl.col(inner).fill_null("")
        return found.select(pl.when(inside == "").then(name).otherwise(name + ": " + inside)).to_series()

    def writer(self, key: str, line: str) -> Writer:
        host, space, name = key.partition(" ")
        if not space:
            return Writer(key, _PROCESS.sub("", key))
        self._host = host if self._host is None else self._host
        name = name.strip() if host == self._host else key
        return Writer(name, _PROCESS.sub("", key))

    def alike(self, lines: pl.Series, example: str) -> pl.Series:
        match = self._pattern.match(example)
        if match is None:
            return lines.is_null()
        literal = example[match.start(1) : match.end()].encode()
        at = len(example[: match.start(1)].encode())
        return lines.cast(pl.Binary).bin.slice(at, len(literal)) == pl.Series([literal], dtype=pl.Binary)


class Recorded(Form):
    """Fields of a JSON record: the pod and container, else the process, else the unit.

    A quotation mark within a text is escaped, so none of these is part of a message.
    """

    FIELDS = (
        r'"(?:[\w.]*\.)?pod_name"\s*:\s*"([^"]+)"',
        r'"(?:CONTAINER_NAME|(?:[\w.]*\.)?container_name)"\s*:\s*"/?([^"]+)"',
        r'"_PID"\s*:\s*"?(\d+)["\s,}]',
        r'"_SYSTEMD_UNIT"\s*:\s*"([^"]+)"',
    )
    #: what the first two have in them
    _WORDS = ("pod_name", "CONTAINER_NAME", "container_name")
    _PROGRAM = re.compile(r'"(?:_SYSTEMD_UNIT|SYSLOG_IDENTIFIER|_COMM)"\s*:\s*"([^"]+?)(?:\.service)?"')

    @classmethod
    def is_form_of(cls, line: str) -> bool:
        return line.lstrip()[:1] == "{" and any(re.search(field, line) for field in cls.FIELDS)

    def keys(self, lines: pl.Series) -> pl.Series:
        pod, container, pid, unit = (lines.str.extract(field).alias(name) for field, name in zip(self.FIELDS, "abcd", strict=True))
        frame = pl.DataFrame([pod, container, pid, unit])
        named = pl.concat_str("a", "b", separator="/", ignore_nulls=True)
        process = "[" + pl.col("c") + "]"
        return frame.select(pl.when(named != "").then(named).otherwise(pl.coalesce(process, "d"))).to_series()

    def writer(self, key: str, line: str) -> Writer:
        if not key.startswith("["):
            return Writer(key.removesuffix(".service"), key)
        found = self._PROGRAM.search(line)
        program = found[1] if found is not None else ""
        return Writer(program + key, program)

    def alike(self, lines: pl.Series, example: str) -> pl.Series:
        matches = [re.search(field, example) for field in self.FIELDS]
        pod, container, pid, unit = (match[0] if match is not None else None for match in matches)
        literals = [text for text in (pod, container) if text] or [text for text in (pid, unit) if text][:1]
        # a container's lines may have the process number of the daemon that passes them on
        more = [word for word, text in zip(self._WORDS, (pod, container, container), strict=True) if not text]
        has = partial(lines.str.contains, literal=True)
        return reduce(and_, [*map(has, literals), *(~has(word) for word in more)])


class Headed(Form):
    """``tail -f`` of several files: a head wherever another file goes on."""

    def keys(self, lines: pl.Series) -> pl.Series:
        return lines.str.extract(_TAIL.pattern).str.replace(_ROTATED.pattern, "")

    def writer(self, key: str, line: str) -> Writer:
        return Writer(key, key)

    def alike(self, lines: pl.Series, example: str) -> pl.Series:
        return lines.is_null()


class Writers:
    """The writers met in one source, by number; ``NOBODY`` is what nothing is told of."""

    def __init__(self) -> None:
        self.found: list[Writer | None] = [None]
        #: the form is known, or that there is none
        self.known = False
        self._form: Form | None = None
        self._numbers: dict[str, int] = {}
        self._last = NOBODY
        #: a line, and the number of its writer
        self._example: tuple[str, int] | None = None

    @property
    def named(self) -> bool:
        """Does this log name who writes?"""
        return self._form is not None

    def begin(self, lines: pl.Series) -> None:
        """The source's first lines: a head of ``tail -f`` stands above them or nowhere."""
        first = next((line for line in lines.head(20) if line.strip()), "")
        if _TAIL.match(first):
            self._form, self.known = Headed(), True

    def learn(self, line: str) -> None:
        """The first line that gives an event."""
        self.known = True
        self._form = _form_of(line)
        if self._form is not None:
            self._example = line, self._numbered(pl.Series([line]))[0]

    def of(self, lines: pl.Series) -> int | pl.Series:
        """The number of each line's writer; or the one that all have."""
        form = self._form
        if form is None or not len(lines):
            return self._last
        if self._example is not None:
            line, number = self._example
            other = ~form.alike(lines, line)
            if not other.any():
                self._last = number
                return number
            unlike = lines.filter(other)
            rest = self._numbered(unlike)
            owners = pl.repeat(number, len(lines), dtype=pl.UInt32, eager=True).scatter(other.arg_true(), rest)
        else:
            unlike = lines
            owners = rest = self._numbered(lines)
        heads = rest if isinstance(form, Headed) else None
        owners = owners.fill_null(strategy="forward").fill_null(self._last)
        self._last = owners[-1]
        if heads is not None:
            owners = _without_heads(owners, heads.is_not_null(), lines)
        elif 2 * len(rest) >= len(lines) and rest[-1] is not None:
            self._example = unlike[-1], rest[-1]
        return self._last if owners.n_unique() == 1 and owners[0] == self._last else owners

    def _numbered(self, lines: pl.Series) -> pl.Series:
        assert self._form is not None
        keys = self._form.keys(lines)
        for at in keys.arg_unique().sort():
            key = keys[at]
            if key is not None and key not in self._numbers and len(self.found) <= MOST_NAMES:
                self._numbers[key] = len(self.found)
                self.found.append(self._form.writer(key, lines[at]))
        numbers = keys.replace_strict(self._numbers, default=None, return_dtype=pl.UInt32)
        if len(self.found) <= MOST_NAMES:
            return numbers
        return numbers.zip_with(numbers.is_not_null() | keys.is_null(), pl.repeat(NOBODY, len(keys), dtype=pl.UInt32, eager=True))


def _form_of(line: str) -> Form | None:
    if Recorded.is_form_of(line):
        return Recorded()
    for form in _forms():
        match = form.match(line)
        if match is not None and match[2] is not None and _is_named(match):
            return Prefixed(form)
    return None


def _is_named(match: re.Match[str]) -> bool:
    """Is what a form finds on a line of the server a name, and no level, stream, or part of the message?"""
    words = [word for group in match.groups() for word in re.split(r"[\s\[\]]+", group or "") if word]
    return _LOGGERS.match(match[1]) is None and not any(map(_NO_NAME.fullmatch, words))


def _without_heads(owners: pl.Series, heads: pl.Series, lines: pl.Series) -> pl.Series:
    """The heads, and the empty line that ``tail`` puts in front of each, are nobody's."""
    blank = (lines == "") & heads.shift(-1, fill_value=False)
    nobody = pl.repeat(NOBODY, len(lines), dtype=pl.UInt32, eager=True)
    return nobody.zip_with(heads | blank, owners)
