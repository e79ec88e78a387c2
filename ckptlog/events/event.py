"""One understood log record."""

from __future__ import annotations

from typing import Any


class Event:
    """A record the timeline cares about.

    ``kind`` and the names in ``f`` are those of the grammar; ``line`` is 1-based; ``t`` is
    microseconds since the logger started (null in logs without a time); ``port`` is the
    router child's; ``slot`` and ``task`` come from the head (task -1 = none attached).
    ``text`` is the raw line for kinds that can become evidence, else null.
    """

    __slots__ = ("build_max", "build_min", "f", "func", "kind", "line", "port", "slot", "t", "task", "text", "wording")

    def __init__(
        self,
        kind: str,
        line: int,
        t: int | None,
        port: int | None,
        slot: int | None,
        task: int | None,
        f: dict[str, Any],
        text: str | None,
        wording: str,
        build_min: int,
        build_max: int | None,
        func: str | None,
    ) -> None:
        self.kind = kind
        self.line = line
        self.t = t
        self.port = port
        self.slot = slot
        self.task = task
        self.f = f
        self.text = text
        self.wording = wording
        self.build_min = build_min
        self.build_max = build_max
        self.func = func

    def __repr__(self) -> str:
        return f"<{self.kind} line {self.line} slot {self.slot} task {self.task} {self.f}>"
