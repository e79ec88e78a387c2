"""One understood log record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(slots=True, eq=False)
class Wording:
    """Which message it is: one object for all events of a shape (compared by identity, which is fast).

    The builds bound those that print it so; ``build_max`` null: the newest known does.
    """

    kind: str
    wording: str
    build_min: int
    build_max: int | None
    func: str | None


class Event(msgspec.Struct, gc=False):
    """A record the timeline cares about.

    ``kind`` and the names in ``f`` are those of the grammar; ``line`` is 1-based; ``t`` is
    microseconds since the logger started (null in logs without a time); ``port`` is the
    router child's; ``slot`` and ``task`` come from the head (task -1 = none attached).
    ``text`` is the raw line for kinds that can become evidence, else null. Messages that come
    in blocks (a listing) are one event a block: ``f["rows"]`` has a tuple of fields a line.
    """

    of: Wording
    line: int
    t: int | None
    port: int | None
    slot: int | None
    task: int | None
    f: dict[str, Any]
    text: str | None
    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind} line {self.line} slot {self.slot} task {self.task} {self.f}>"
