"""What a shape means: computed once from one example line, applied to all its lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ckptlog.events.builders import Builder, Heads, NumberField, builder
from ckptlog.events.event import Event, Wording
from ckptlog.events.numbers import BEYOND, number_tokens, stamp_us, value
from ckptlog.grammar import Message, MessageGrammar, Refused
from ckptlog.intake.unwrap import Envelope, Span, unwrap


class SliceField(NamedTuple):
    """A field of free text up to the line's end: it begins ``delta`` characters behind the ``before``-th
    number token (behind the line's beginning if ``before`` is 0), or after the spaces that follow there:
    padding is no part of a shape."""

    name: str
    before: int
    delta: int
    padded: bool


#: counts: a negative one is damage
NEVER_NEGATIVE = frozenset(
    {"n_tokens", "n_prompt", "n_past", "n_cached_tokens", "n_checkpoints", "n_gen", "lcp", "lcs_len"}
)

#: behind these and one space stands the text of a window
WINDOW_HEADS = {"mismatch_old": "old: ...", "mismatch_new": "new: ..."}

#: what may stand behind a message: spaces, and the code that switches a colour off
LINE_END = re.compile(r"(?:\s|\x1b?\[[0-9;]*m)*$")

NO_HEADS = Heads()
NO_WORDING = Wording("", "", 0, None, None)


def wording_of(message: Message, envelope: Envelope) -> Wording:
    return Wording(message.kind, message.wording, message.build_min, message.build_max, envelope.func)


@dataclass(slots=True)
class Plan:
    """How lines of one shape become events.

    ``status``: ``event`` (give it to the timeline), ``ignored`` (a rule says so), ``drifted``
    (a known head, a body that Lark refuses), ``unknown`` (a slot/srv head and no rule's literal),
    ``noise`` (no server line at all).
    """

    status: str
    envelope: Envelope | None = None
    message: Message | None = None
    wording: Wording = NO_WORDING
    numbers: tuple[NumberField, ...] = ()
    slices: tuple[SliceField, ...] = ()
    #: slices are cut from a JSON record's unescaped ``msg``, not from the line
    in_json: bool = False
    constants: dict[str, Any] = field(default_factory=dict)
    time_index: int = -1
    heads: Heads = NO_HEADS
    dotted_time: bool = False
    #: number tokens that a line of this shape has; at least so many if free text follows (``open_ended``)
    n_tokens: int = 0
    open_ended: bool = False
    #: fields can't be read by number position: parse each line of this shape by itself
    by_line: bool = False
    keep_text: bool = False
    build: Builder | None = None
    column: int | None = None
    expected: tuple[str, ...] = ()
    literal: str = ""


def token_index(spans: list[tuple[int, int]], span: Span | None) -> int:
    if span is None:
        return -1
    for i, (start, end) in enumerate(spans):
        if start <= span.start and span.end <= end:
            return i
    return -1


def head_tokens(line: str, envelope: Envelope, spans: list[tuple[int, int]]) -> Heads:
    """Which of the line's number tokens are its port, slot and task."""
    slot = task = -1
    negative = False
    if envelope.slot is not None and line[envelope.slot.start] != "-":
        slot = token_index(spans, envelope.slot)
    if envelope.task is not None:
        task = token_index(spans, envelope.task)
        negative = line[envelope.task.start : envelope.task.end].startswith("-")
        if task < 0 and negative:
            task = token_index(spans, Span(envelope.task.start + 1, envelope.task.end))
    return Heads(token_index(spans, envelope.port), slot, task, negative)


def parse_message(grammar: MessageGrammar, envelope: Envelope) -> Message:
    """Lark's reading of the message in an envelope; raises Refused."""
    if not envelope.message and envelope.family == "slot":
        # two kinds have no text at all: the head of an old timing block, and an empty row of token ids
        kind = grammar.kinds[
            "timing_head" if (envelope.func or "").startswith("print_timing") else "token_ids"
        ]
        wording = kind.wordings[0]
        return Message(kind.name, wording.name, {}, wording.build_min, wording.build_max)
    return grammar.parse(envelope.message, envelope.family or "bare")


class Planner:
    """Makes plans out of example lines (Lark runs here, and nowhere else at run time)."""

    def __init__(self, grammar: MessageGrammar, needed: frozenset[str], evidence: frozenset[str]) -> None:
        self.grammar = grammar
        self.needed = needed
        self.evidence = evidence
        #: behind these heads stands free text, which is no part of a shape
        self.text_heads = [
            head
            for kind in grammar.kinds.values()
            if kind.treatment == "text" and kind.name in needed
            for head in kind.heads
        ]

    def plan(self, line: str) -> Plan:
        """The plan of the shape that ``line`` is an example of."""
        envelope = unwrap(line)
        if envelope.family is None:
            return Plan("noise", envelope)
        try:
            message = parse_message(self.grammar, envelope)
        except Refused as refusal:
            return self._refused(envelope, refusal)
        kind = self.grammar.kinds[message.kind]
        if kind.treatment == "ignored" or message.kind not in self.needed:
            return Plan("ignored", envelope, message)
        plan = Plan(
            "event", envelope, message, wording_of(message, envelope), keep_text=message.kind in self.evidence
        )
        spans = [match.span() for match in number_tokens.finditer(line)]
        plan.time_index = token_index(spans, envelope.time)
        if envelope.time is not None:
            plan.dotted_time = "." in line[envelope.time.start : envelope.time.end]
        plan.heads = head_tokens(line, envelope, spans)
        if kind.treatment == "text":
            window = message.kind in WINDOW_HEADS
            plan.keep_text = plan.keep_text or window
            plan.by_line = not self._slice_fields(plan, line, ["text"] if window else list(message.fields))
        else:
            self._place_fields(plan, line, spans)
        plan.open_ended = any(head in line for head in self.text_heads)
        read = (
            plan.time_index,
            plan.heads.port,
            plan.heads.slot,
            plan.heads.task,
            *(f.token for f in plan.numbers),
        )
        plan.n_tokens = max(read) + 1 if plan.open_ended else len(spans)
        if not plan.by_line:
            with_text = plan.keep_text or bool(plan.slices)
            build = builder(plan.wording, plan.heads, plan.numbers, plan.constants, with_text=with_text)
            plan.build = with_slices(plan, build) if plan.slices else build
        return plan

    def types(self, message: Message) -> dict[str, str]:
        """INT or FLOAT for the fields of a message that are numbers by the grammar."""
        return self.grammar.parser(self.grammar.kinds[message.kind]).numbers

    def _slice_fields(self, plan: Plan, line: str, names: list[str]) -> bool:
        """Find where the free text of these fields begins; false if it doesn't run to the line's end."""
        assert plan.envelope is not None
        assert plan.message is not None
        envelope = plan.envelope
        base = line
        offset = envelope.message_start
        if offset < 0 or LINE_END.fullmatch(line, offset + len(envelope.message)) is None:
            unescaped = json_message(line)
            if unescaped is None:
                return False
            base = unescaped.rstrip()
            offset = len(base) - len(envelope.message)
            if offset < 0 or base[offset:] != envelope.message:
                return False
            plan.in_json = True
        ends = [match.end() for match in number_tokens.finditer(base)]
        found: list[SliceField] = []
        for name in names:
            head = WINDOW_HEADS.get(plan.message.kind)
            if head is not None:
                # a window's own leading spaces count, which the grammar passes over; it may be empty, too
                start, end = base.index(head, offset) + len(head) + 1, len(base)
            else:
                item = plan.message.fields[name]
                start, end = len(base[: item.start + offset].rstrip(" ")), item.end + offset
            if LINE_END.fullmatch(base, end) is None:
                return False
            inside = [e for e in ends if e <= start]
            found.append(SliceField(name, len(inside), start - (inside[-1] if inside else 0), head is None))
        plan.slices = tuple(found)
        return True

    def _refused(self, envelope: Envelope, refusal: Refused) -> Plan:
        """Drifted if some rule's literal stands in the message, else unknown (or noise)."""
        if refusal.kind is not None:
            if envelope.family in ("slot", "srv", "cmn"):
                return Plan(
                    "drifted",
                    envelope,
                    column=refusal.column,
                    expected=refusal.expected,
                    literal=refusal.kind,
                )
            return Plan("noise", envelope)
        if envelope.family in ("slot", "srv"):
            return Plan("unknown", envelope, column=refusal.column, expected=refusal.expected)
        return Plan("noise", envelope)

    def _place_fields(self, plan: Plan, line: str, spans: list[tuple[int, int]]) -> None:
        """Find, for each field of the message, which number token of the raw line it is."""
        assert plan.envelope is not None
        assert plan.message is not None
        envelope, message = plan.envelope, plan.message
        offset = envelope.message_start
        first = 0
        if offset < 0:
            # JSON unescaping moved things: the message's numbers are a run of the line's numbers
            inside = number_tokens.findall(envelope.message)
            outside = [line[a:b] for a, b in spans]
            low = max(plan.time_index, plan.heads.port, plan.heads.slot, plan.heads.task) + 1
            for first in range(low, len(outside) - len(inside) + 1):
                if outside[first : first + len(inside)] == inside:
                    break
            else:
                plan.by_line = True
                return
            spans = [match.span() for match in number_tokens.finditer(envelope.message)]
            offset = 0
        types = self.types(message)
        numbers: list[NumberField] = []
        texts: list[str] = []
        for name, item in message.fields.items():
            start, end = item.start + offset, item.end + offset
            touching = [i for i, (a, b) in enumerate(spans) if a < end and b > start]
            if not touching:
                # of the numbers only nan and inf have no digits, and those say nothing
                plan.constants[name] = None if name in types else item.text
                continue
            a, b = spans[touching[0]]
            sign = item.text[:1] == "-"
            if sign and name in NEVER_NEGATIVE:
                plan.status, plan.column, plan.literal = "drifted", item.start, message.kind
                plan.expected = ("a number that is not negative",)
                return
            if len(touching) == 1 and a == start + (1 if sign else 0) and b == end:
                is_float = types.get(name) == "FLOAT" if name in types else "." in item.text
                numbers.append(NumberField(name, touching[0] + first, sign, is_float))
            elif name in types:
                plan.by_line = True
                return
            else:
                texts.append(name)
        if texts and not self._slice_fields(plan, line, texts):
            plan.by_line = True
            return
        plan.numbers = tuple(numbers)


def json_message(line: str) -> str | None:
    """The ``msg`` of a JSONL record, unescaped; null when the line is no such record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    message = record.get("msg") if isinstance(record, dict) else None
    return message if isinstance(message, str) else None


def cut_slices(plan: Plan, line: str) -> dict[str, str]:
    """The free texts of one line of a shape; a line that ends before one has it empty."""
    base = (json_message(line) or "") if plan.in_json else line
    base = base[: LINE_END.search(base).start()]  # type: ignore[union-attr]
    ends = [0]
    most = max(piece.before for piece in plan.slices)
    for match in number_tokens.finditer(base):
        if len(ends) > most:
            break
        ends.append(match.end())
    found: dict[str, str] = {}
    for name, before, delta, padded in plan.slices:
        text = base[ends[before] + delta :] if before < len(ends) else ""
        found[name] = text.lstrip(" ") if padded else text
    return found


def with_slices(plan: Plan, build: Builder) -> Builder:
    """A shape's function that also cuts the free texts."""

    def build_with_slices(
        no: int,
        t: int | None,
        at: int,
        ints: Sequence[int | None],
        floats: Sequence[float | None],
        text: str | None,
    ) -> Event | None:
        event = build(no, t, at, ints, floats, text)
        if event is not None:
            assert text is not None
            event.f.update(cut_slices(plan, text))
            if not plan.keep_text:
                event.text = None
        return event

    return build_with_slices


def event_by_line(plan: Plan, planner: Planner, line_no: int, line: str) -> Event | None:
    """One event of a shape with free text in it: unwrapped and parsed by itself."""
    envelope = unwrap(line)
    if envelope.family is None:
        return None
    try:
        message = parse_message(planner.grammar, envelope)
    except Refused:
        return None

    def number(span: Span | None, convert: Callable[[str], int | None]) -> int | None:
        return None if span is None else convert(line[span.start : span.end])

    def whole(text: str) -> int | None:
        try:
            return int(text)
        except ValueError:
            return None

    def stamp(text: str) -> int | None:
        return stamp_us(text) if "." in text else whole(text)

    types = planner.types(message)
    fields: dict[str, Any] = {}
    for name, item in message.fields.items():
        if name in types:
            try:
                fields[name] = typed_number(item.text, types[name])
            except ValueError:
                return None
        else:
            fields[name] = number_or_text(item.text)
    slot = number(envelope.slot, whole)
    head = WINDOW_HEADS.get(message.kind)
    if head is not None:
        # the window's own leading spaces count, which the grammar passes over
        fields["text"] = envelope.message.partition(head)[2][1:]
    return Event(
        wording_of(message, envelope), line_no, number(envelope.time, stamp), number(envelope.port, whole),
        None if slot is None or slot < 0 else slot, number(envelope.task, whole), fields, line, message.kind,
    )  # fmt: skip


def typed_number(text: str, terminal: str) -> int | float | None:
    """The value of an INT or FLOAT; null for nan and inf; ValueError beyond any sense."""
    if terminal == "INT":
        number: int | float = int(text)
    elif text.lstrip("+-")[:1].isdigit():
        number = float(text)
    else:
        return None
    if abs(number) > BEYOND:
        raise ValueError(text)
    return number


def number_or_text(text: str) -> Any:
    sign = text.startswith("-")
    body = text[1:] if sign else text
    if number_tokens.fullmatch(body) and "x" not in body:
        number = value(body, sign)
        if number is not None:
            return number
    return text
