"""What stands around the message on one physical line: wrapper, port, time, letter, head.

The forms are in ``grammars/envelope.lark``. The engine calls ``unwrap`` once a line *shape* (a line
with its numbers replaced), so Lark may take its time; what it finds holds for all lines of the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ckptlog.grammar.files import grammar_file
from ckptlog.grammar.kinds import Family
from ckptlog.grammar.parsers import compiled
from ckptlog.intake.json_lines import Json, Text, decode_object, plain_text
from ckptlog.intake.loggers import LETTERS, LOGGERS, Letter
from ckptlog.intake.tagged_json import as_tagged, is_tagged

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

Form = Literal["prefixed", "legacy", "jsonl", "tagged"]

#: with a head of its own, so that it is a server's line for certain
HEADED: frozenset[Family] = frozenset(LOGGERS)

#: a head stands near the start of a line; text of any length may follow, and Lark does not see it
HEAD_CHARS = 4096
#: as far from a line's end it is searched for what is not seen there
TAIL_CHARS = 400
#: JSON in JSON: a router's child inside docker's log file is two deep
MAX_DEPTH = 4


class Span(NamedTuple):
    """Where something stands in the raw line: [start, end), in characters."""

    start: int
    end: int


class Envelope(NamedTuple):
    """One line, taken apart.

    ``family`` is None for a line that holds no message (a fence, an elision, a stamp alone, JSON that
    is no log record). ``time`` spans ``M.SS.mmm.uuu``, or the microseconds of a JSON record. ``level``
    is the logger's letter. ``message`` has no newline, colour or space at its end; it stands at
    ``message_start`` in the raw line, or that is -1 where unescaping JSON moved its characters.
    ``slot`` and ``task`` come from the head (``-1`` in the line: none attached). A span is None
    where nothing stands, and where it has no place in the raw line (a byte array in JSON).
    """

    wrapper: str | None
    format: Form | None
    time: Span | None
    level: Letter | None
    port: Span | None
    family: Family | None
    func: str | None
    slot: Span | None
    task: Span | None
    message: str
    message_start: int


NOTHING = Envelope(None, None, None, None, None, None, None, None, None, "", -1)

# a tagged line names slot and task behind its text
_TAGGED_SLOT = re.compile(r"\b(?:id_slot|slot_id)=(-?\d+)")
_TAGGED_TASK = re.compile(r"\b(?:id_task|task_id)=(-?\d+)")
# of each kind of JSON record: where the text is, and the wrapper it is
_RECORDS = (
    ("MESSAGE", "journald-json"),
    ("log", "docker-json"),
    # Google's and Loki's exports, and the loggers of Node, Python, Rust and Go
    *((key, "json") for key in ("message", "msg", "@message", "textPayload", "line", "event", "text")),
)
#: behind a record in an array
_BEHIND = ", \t\r\n"


def unwrap(line: str) -> Envelope:
    """The envelope of a physical line, as it came from the reader."""
    return _unwrap(plain_text(line), 0)


def is_headed(line: str) -> bool:
    """Does the line have a head, with nothing before it that no rule knows?"""
    return _unwrap(plain_text(line), 0, search=False).family in HEADED


def heads_in(line: str) -> Iterator[int]:
    """Where something begins that looks like a message with its head: the server's own prefix, if there is one."""
    return (found.start() for found in _pattern("EMBEDDED").finditer(line[:HEAD_CHARS]))


def date_pattern() -> str:
    """An expression, for Python and Rust alike and without groups, for the dates that wrappers write."""
    return _pattern("DATE").pattern


def known_length(before: str) -> int:
    """How much of what stands before a head is a wrapper that a rule knows."""
    tree = _parse(f"{before}_:", "bare")
    ends = [
        token.end_pos or 0
        for node in (tree.children if tree is not None else ())
        if not isinstance(node, str) and node.data not in _INNER
        for token in node.scan_values(lambda _: True)
    ]
    return min(max(ends, default=0), len(before))


def continuation(line: str) -> Callable[[str], str]:
    """How to read the physical lines that go on with the record that begins on ``line``.

    A wrapper and a router's port stand before each of them, the server's own prefix only before the
    first. They are looked for in the form that the first line has: what follows is free text, and may
    imitate any other. A line without them is given back as it is.
    """
    return _continuation(plain_text(line), 0)


def _continuation(text: Text, depth: int) -> Callable[[str], str]:
    found = _inside(text) if depth < MAX_DEPTH else None
    if found is not None:
        key, inner = found
        read = _continuation(inner, depth + 1)

        def from_json(line: str) -> str:
            again = _inside(plain_text(line))
            return read(again[1].value) if again is not None and again[0] == key else line

        return from_json
    pattern = re.compile(_outside_pattern(text.value[:HEAD_CHARS]))
    return lambda line: pattern.sub("", line, count=1)


def _inside(text: Text) -> tuple[str, Text] | None:
    """The key and the text of a JSON record of another logger."""
    if "{" not in text.value or not text.value.rstrip(_BEHIND).endswith("}"):
        return None
    tree = _parse(text.value, "object")
    token = None if tree is None else _Parts(tree, text).token("OBJECT")
    if token is None or token.start_pos is None:
        return None
    record = decode_object(text, token.start_pos)
    if record is None:
        return None
    for key, _ in _RECORDS:
        message = record.text(key)
        if message is not None:
            return key, message.stripped()
    return None


#: wrappers that stand before a record's first line only
_ONCE = ("lm_studio", "powershell")


def _outside_pattern(line: str) -> str:
    """A pattern for the wrapper and the port that stand before ``line``, with any other numbers in them."""
    from lark import Tree

    tree = _parse(line, "headed")
    end = 0
    for node in tree.children if tree is not None else ():
        if isinstance(node, Tree) and node.data not in _INNER + _ONCE:
            end = max(end, *(token.end_pos or 0 for token in node.scan_values(lambda _: True)))
        elif isinstance(node, Tree) and node.data == "port":
            end = max(token.end_pos or 0 for token in node.scan_values(lambda _: True)) + len("] ")
    outside = line[:end]
    kept = outside.rstrip()
    numbers = r"\d+".join(re.escape(piece) for piece in re.split(r"\d+", kept.lstrip()))
    return rf"^\s*{numbers}\s{{0,{len(outside) - len(kept)}}}" if kept else "^"


def _unwrap(text: Text, depth: int, *, search: bool = True) -> Envelope:
    line = text.value
    if not line or line.isspace():
        return NOTHING
    if "{" in line and line.rstrip(_BEHIND).endswith("}"):
        tree = _parse(line, "object")
        if tree is not None:
            envelope = _object(tree, text, depth, search=search)
            if envelope is not None:
                return envelope
    tree = _parse(line[:HEAD_CHARS], "headed")
    if tree is not None:
        return _headed(tree, text)
    tree = _parse(line[:HEAD_CHARS], "tagged")
    if tree is not None:
        return _tagged(tree, text)
    tree = _parse(line, "nothing") if len(line) <= HEAD_CHARS else None
    if tree is not None:
        parts = _Parts(tree, text)
        return NOTHING._replace(wrapper=parts.wrapper, port=parts.span("PORT"))
    return (_embedded(text) if search else None) or _bare(text)


@cache
def _grammar() -> Lark:
    # terminals overlap by intention: priorities decide
    return compiled(
        grammar_file("envelope.lark"), ["headed", "bare", "object", "tagged", "nothing", "searched"]
    )


@cache
def _pattern(terminal: str) -> re.Pattern[str]:
    return re.compile(_grammar().get_terminal(terminal).pattern.to_regexp())


def _parse(line: str, start: str) -> Tree[Token] | None:
    from lark.exceptions import UnexpectedInput

    try:
        return _grammar().parse(line, start=start)
    except UnexpectedInput:
        return None


class _Parts:
    """The tokens of one parsed line, by name, with their places in the raw line."""

    def __init__(self, tree: Tree[Token], text: Text, offset: int = 0) -> None:
        self._text = text
        self._offset = offset
        self._tokens: dict[str, Token] = {}
        for token in tree.scan_values(lambda _: True):
            self._tokens.setdefault(token.type, token)
        names = [str(node.data) for node in tree.children if not isinstance(node, str)]
        names = [name.replace("_", "-") for name in names if name not in _INNER]
        # what a paste adds says less than what the log was captured with
        real = [name for name in names if name != "markdown-quote"]
        self.wrapper: str | None = next(iter(real or names), None)

    def text(self, name: str) -> str | None:
        token = self._tokens.get(name)
        return None if token is None else str(token)

    def token(self, name: str) -> Token | None:
        return self._tokens.get(name)

    def span(self, name: str) -> Span | None:
        token = self._tokens.get(name)
        if token is None or token.start_pos is None or token.end_pos is None:
            return None
        return self.place(token.start_pos, token.end_pos)

    def place(self, start: int, end: int) -> Span | None:
        raw = self._text.place(start + self._offset, end + self._offset)
        return None if raw is None else Span(*raw)

    def message(self, *, unquote: bool = False) -> tuple[str, int]:
        """The text of TEXT without what a terminal would not show at its end, and its raw start."""
        token = self._tokens.get("TEXT")
        start = token.start_pos if token is not None else None
        if start is None:
            end = len(self._text.value) - self._offset
            place = self.place(end, end)
            return "", -1 if place is None else place.start
        message = _bared(self._text.value[self._offset + start :])
        if unquote:
            message = message.rstrip("`").rstrip()
        place = self.place(start, start + len(message))
        return message, -1 if place is None else place.start


#: sub-rules that are no wrapper
_INNER = ("slot", "other", "port", "message")


@cache
def _unseen_tail() -> re.Pattern[str]:
    # atomic: the forms of an escape overlap, and a long run of them must not be tried in every way
    return re.compile(rf"(?>(?:\s|{_pattern('ESCAPE').pattern})+)$")


def _bared(message: str) -> str:
    """``message`` without spaces and colour codes at its end."""
    found = _unseen_tail().search(message[-TAIL_CHARS:].rstrip())
    if found is None:
        return message.rstrip()
    kept = max(len(message) - TAIL_CHARS, 0) + found.start()
    return message[:kept].rstrip()


def _headed(tree: Tree[Token], text: Text, offset: int = 0) -> Envelope:
    parts = _Parts(tree, text, offset)
    message, start = parts.message(unquote="`" in text.value[:HEAD_CHARS])
    family: Any = parts.text("FAMILY") or "slot"
    time, level = parts.span("TIME"), parts.text("LEVEL")
    return Envelope(
        wrapper=parts.wrapper,
        format="prefixed" if parts.text("TIME") or level else "legacy",
        time=time,
        level=LETTERS[level] if level else None,
        port=parts.span("PORT"),
        family=family,
        func=parts.text("FUNCTION"),
        slot=parts.span("SLOT"),
        task=parts.span("TASK"),
        message=message,
        message_start=start,
    )


def _tagged(tree: Tree[Token], text: Text) -> Envelope:
    parts = _Parts(tree, text)
    message, start = parts.message()
    token = parts.token("TEXT")
    at = token.start_pos if token is not None and token.start_pos is not None else 0

    def named(pattern: re.Pattern[str]) -> Span | None:
        found = pattern.search(message)
        return None if found is None else parts.place(at + found.start(1), at + found.end(1))

    level = parts.text("TAG_LEVEL")
    return NOTHING._replace(
        wrapper=parts.wrapper,
        format="tagged",
        level=LETTERS[level] if level else None,
        family="tagged",
        func=parts.text("FUNCTION"),
        slot=named(_TAGGED_SLOT),
        task=named(_TAGGED_TASK),
        message=message,
        message_start=start,
    )


def _bare(text: Text) -> Envelope:
    tree = _parse(text.value[:HEAD_CHARS], "bare")
    if tree is None:
        return NOTHING
    parts = _Parts(tree, text)
    message, start = parts.message()
    level = parts.text("LEVEL") or parts.text("LETTER")
    return NOTHING._replace(
        wrapper=parts.wrapper,
        format="prefixed" if parts.text("TIME") or level else None,
        time=parts.span("TIME"),
        level=LETTERS[level] if level else None,
        port=parts.span("PORT"),
        family="bare",
        message=message,
        message_start=start,
    )


def _embedded(text: Text) -> Envelope | None:
    """A record that begins in mid-line, if what stands before it may stand there."""
    head = text.value[:HEAD_CHARS]
    # what is quoted is no record
    start = next((at for at in heads_in(head) if head[max(at - 1, 0) : at] not in ('"', "'")), None)
    if start is None or _pattern("BEFORE").match(head[:start]) is None:
        return None
    tree = _parse(head[start:], "headed")
    if tree is None:
        return None
    record = _headed(tree, text, start)
    before = _parse(head[:start], "bare")
    if before is None:
        return record
    parts = _Parts(before, text)
    return record._replace(wrapper=record.wrapper or parts.wrapper, port=record.port or parts.span("PORT"))


def _object(tree: Tree[Token], text: Text, depth: int, *, search: bool) -> Envelope | None:
    """A line that is a JSON object; None if it is none after all (text in braces)."""
    outer = _Parts(tree, text)
    token = outer.token("OBJECT")
    assert token is not None
    assert token.start_pos is not None
    record = decode_object(text, token.start_pos)
    if record is None:
        return None
    nothing = NOTHING._replace(wrapper=outer.wrapper, port=outer.span("PORT"))
    if depth >= MAX_DEPTH:
        return nothing
    message = record.text("msg")
    if message is not None and record.value("type") == "log":
        inner = _unwrap(message.stripped(), depth + 1, search=search)
        return _logged(inner, record, nothing)
    if message is not None and is_tagged(record):
        return _tagged_json(record, nothing)
    for key, wrapper in _RECORDS:
        message = record.text(key)
        if message is not None:
            inner = _unwrap(message.stripped(), depth + 1, search=search)
            return inner._replace(wrapper=outer.wrapper or wrapper, port=inner.port or nothing.port)
    return nothing


def _tagged_json(record: Json, outer: Envelope) -> Envelope:
    """What other builds print as ``INFO [ func] text | key=value``."""

    def named(*keys: str) -> Span | None:
        place = next((at for key in keys if (at := record.place(key)) is not None), None)
        return None if place is None else Span(*place)

    return outer._replace(
        format="tagged",
        level=LETTERS.get(str(record.value("level"))),
        family="tagged",
        func=str(record.value("function")),
        slot=named("id_slot", "slot_id"),
        task=named("id_task", "task_id"),
        message=as_tagged(record),
    )


def _logged(inner: Envelope, record: Json, outer: Envelope) -> Envelope:
    """A record of ``--log-jsonl``; ``inner`` is its text, or again a record where a router wraps its child's."""
    wrapped = inner._replace(wrapper=outer.wrapper or inner.wrapper, port=inner.port or outer.port)
    if inner.format == "jsonl":
        return wrapped
    time = record.place("time")
    level = str(record.value("level")).upper()
    return wrapped._replace(
        format="jsonl",
        time=inner.time or (None if time is None else Span(*time)),
        level=inner.level or LETTERS.get(level),
    )
