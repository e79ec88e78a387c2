"""What a shape means: computed once from one example line, applied to all its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ckptlog.events.builders import Builder, Heads, NumberField, builder
from ckptlog.events.event import Wording
from ckptlog.events.free_text import LINE_END, WINDOW_HEADS, SliceField, json_message, with_slices
from ckptlog.events.numbers import number_tokens
from ckptlog.grammar import Message, MessageGrammar, Refused
from ckptlog.intake.unwrap import Envelope, Span, unwrap

#: counts: a negative one is damage
NEVER_NEGATIVE = frozenset(
    {"n_tokens", "n_prompt", "n_past", "n_cached_tokens", "n_checkpoints", "n_gen", "lcp", "lcs_len"}
)

#: rows of listings, which may be any text, behind more spaces than a message: the arguments that a router starts a child
#: with, the models that it finds (up to b11026 by name alone, then behind their source, of which "[m" looks like a colour), the features to be warned of
LISTED = re.compile(r"\bsrv +(?:load:   \S|(?:load_models|[^|]{0,80}operator ?\(\)):(?:     \S|   \[(?:m\S)?)|(?:main|llama_server):     \S)$")
#: the keys behind a tagged message; other programs print a level and brackets, too
_TAIL = re.compile(r"\| ?\w+=")

NO_HEADS = Heads()
NO_WORDING = Wording("", "", 0, None, None)


def wording_of(message: Message, envelope: Envelope) -> Wording:
    return Wording(message.kind, message.wording, message.build_min, message.build_max, envelope.func)


@dataclass(slots=True)
class Plan:
    """How lines of one shape become events.

    ``status``: ``event`` (give it to the timeline), ``ignored`` (a rule says so), ``drifted``
    (a known head, a body that Lark refuses), ``unknown`` (a slot, srv or tagged head and no rule's literal),
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
    #: the lines are a message only with the entities of HTML in them undone
    escaped: bool = False
    keep_text: bool = False
    build: Builder | None = None
    column: int | None = None
    expected: tuple[str, ...] = ()
    literal: str = ""


def html_text(line: str) -> str | None:
    """The line as it was before ``<``, ``>``, ``&`` and quotes in it were escaped for a web page; null if none are."""
    if "&" not in line:
        return None
    from html import unescape  # not at once: few logs need it

    text = unescape(line)
    return None if text == line else text


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
        if (envelope.func or "").startswith("print_timing"):
            wording = grammar.kinds["timing_head"].wordings[0]
            return Message("timing_head", wording.name, {}, wording.build_min, wording.build_max)
        # nor does it tell of a build: up to b6628 a slot that is reset prints an empty line too
        return Message("token_ids", "token_ids", {}, 0, None)
    return grammar.parse(envelope.message, envelope.family or "bare")


#: plans that are kept for lines of the same text but for their numbers
MOST_MADE = 5_000


class Planner:
    """Makes plans out of example lines (Lark runs here, and nowhere else at run time)."""

    def __init__(self, grammar: MessageGrammar, needed: frozenset[str], evidence: frozenset[str]) -> None:
        self.grammar = grammar
        self.needed = needed
        self.evidence = evidence
        #: literals of all messages, known by the grammar or ignored
        self.heads = {head for kind in grammar.kinds.values() for head in kind.heads}
        #: behind these heads stands free text, which is no part of a shape
        self.text_heads = [
            head
            for kind in grammar.kinds.values()
            if kind.treatment == "text" and kind.name in needed
            for head in kind.heads
        ]
        #: plans by the line with its numbers taken out: who mends a log's lines asks for the same ones before
        self._made: dict[str, Plan] = {}

    def plan(self, line: str) -> Plan:
        """The plan of the shape that ``line`` is an example of."""
        bare = number_tokens.sub("#", line)
        plan = self._made.get(bare)
        if plan is not None:
            return plan
        plan = self._plan(line)
        if plan.status in ("event", "ignored") and len(self._made) < MOST_MADE:
            self._made[bare] = plan  # (what is refused may be an odd example)
        if plan.status in ("drifted", "unknown", "noise") and (text := html_text(line)) is not None:
            other = self._plan(text)
            if other.status in ("event", "ignored"):
                other.escaped, other.by_line, other.build = True, True, None
                return other
        return plan

    def told(self, line: str) -> tuple[str, str]:
        """The status of a line ("text" for an event whose text may be any), and the kind of its message, if any."""
        plan = self.plan(line)
        if plan.message is None:
            return plan.status, ""
        kind = self.grammar.kinds[plan.message.kind]
        return "text" if plan.status == "event" and kind.treatment == "text" else plan.status, kind.name

    def _plan(self, line: str) -> Plan:
        envelope = unwrap(line)
        if envelope.family is None:
            return Plan("noise", envelope)
        try:
            message = parse_message(self.grammar, envelope)
        except Refused as refusal:
            if LISTED.search(line[: max(0, envelope.message_start) + 1]) is not None:
                return Plan("ignored", envelope)
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
            plan.build = (
                with_slices(build, plan.slices, in_json=plan.in_json, keep_text=plan.keep_text) if plan.slices else build
            )
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
        """Drifted if some rule's literal stands in the message, else unknown (or noise: another program's)."""
        if envelope.family == "tagged" and _TAIL.search(envelope.message) is None:
            return Plan("noise", envelope)
        if refusal.kind is not None:
            if envelope.family in ("slot", "srv", "cmn", "tagged"):
                return Plan(
                    "drifted",
                    envelope,
                    column=refusal.column,
                    expected=refusal.expected,
                    literal=refusal.kind,
                )
            return Plan("noise", envelope)
        if envelope.family in ("slot", "srv", "tagged"):
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
            address = name not in types and item.text.count(".") > 1  # such as 127.0.0.1: no number
            if len(touching) == 1 and a == start + (1 if sign else 0) and b == end and not address:
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
