"""The long way for lines whose fields can't be found by the place of their numbers: unwrapped and parsed by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptlog.events.event import Event
from ckptlog.events.free_text import WINDOW_HEADS
from ckptlog.events.numbers import BEYOND, number_tokens, stamp_us, value
from ckptlog.events.plan import Planner, html_text, parse_message, wording_of
from ckptlog.grammar import Refused
from ckptlog.intake.unwrap import Span, unwrap


def event_by_line(planner: Planner, line_no: int, line: str) -> Event | None:
    """The event of one line; null if it is no message, or holds a number beyond any sense."""
    envelope = unwrap(line)
    if envelope.family is None:
        return None
    try:
        message = parse_message(planner.grammar, envelope)
    except Refused:
        text = html_text(line)
        return None if text is None else event_by_line(planner, line_no, text)

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
