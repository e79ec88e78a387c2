"""Every shape met in a source, with its plan; counts the lines that give no event."""

from __future__ import annotations

import re

from ckptlog.events.plan import Plan, Planner
from ckptlog.events.tally import Drift, Tally
from ckptlog.intake.loggers import MAIN_LOGGERS

#: distinct shapes remembered; more than this means that free text got into shapes
MAX_SHAPES = 200_000
#: distinct shapes that the grammar is asked about and refuses (a fifth of a millisecond each); of a real log a few
#: dozen. After that a line without any message's literal is told by its head alone
MAX_REFUSED = 5_000
#: as the slots' and the server's loggers begin a line
_HEAD = re.compile(rf"\b(?:{'|'.join(MAIN_LOGGERS)}) +[^\s:]*: ")
#: letters behind the last bar of a line
_WORDS = re.compile(r"[A-Za-z][^|]*$")


class ShapeBook:
    """Plans by number; ``index`` has the number of each shape's plan."""

    def __init__(self, planner: Planner, tally: Tally) -> None:
        self.planner = planner
        self.tally = tally
        self.plans: list[Plan] = []
        self.index: dict[str, int] = {}
        #: the first line that is a message only with the entities of HTML undone
        self.escaped_from: int | None = None
        self._refused = 0
        #: plans for shapes that are not remembered, by status
        self._nameless: dict[str, int] = {}

    def number(self, shape: str, line: str, last: str) -> int:
        """Which plan a shape has; it is made from ``line`` and ``last``, the first and the last example met
        now: one odd line condemns no shape."""
        number = self.index.get(shape)
        if number is not None:
            return number
        if self._refused >= MAX_REFUSED and self._has_no_literal(line):
            return self._without_plan("noise" if _HEAD.search(line) is None else "unknown")
        plan = self.planner.plan(line)
        if plan.status in ("drifted", "unknown") and last != line:
            other = self.planner.plan(last)
            plan = other if other.status == "event" else plan
        self._refused += plan.status != "event"
        if len(self.index) >= MAX_SHAPES and plan.status != "event":
            return self._without_plan(plan.status)
        number = len(self.plans)
        if len(self.index) < MAX_SHAPES:
            self.index[shape] = number
        self.plans.append(plan)
        return number

    def _has_no_literal(self, line: str) -> bool:
        """Would the grammar refuse it for certain? (A row of token ids has no literal, and no letter.)"""
        return _WORDS.search(line) is not None and not any(head in line for head in self.planner.heads)

    def _without_plan(self, status: str) -> int:
        """One plan for all shapes of a flood that give no event."""
        number = self._nameless.get(status)
        if number is None:
            number = self._nameless[status] = len(self.plans)
            self.plans.append(Plan(status))
        return number

    def count(self, number: int, shape: str, line: str, no: int, count: int) -> bool:
        """So many more lines of a shape, from ``line`` (the ``no``-th) on; do they give events?"""
        plan = self.plans[number]
        self.count_form(plan, count)
        if plan.escaped and self.escaped_from is None:
            self.escaped_from = no
        if plan.status in ("drifted", "unknown"):
            self.count_drift(shape, plan, line, no, count)
        return plan.status == "event"

    def count_form(self, plan: Plan, count: int) -> None:
        if plan.envelope is not None and plan.status != "noise":
            self.tally.count_form(plan.envelope.wrapper or "", plan.envelope.format or "", count)

    def count_damaged(self, plan: Plan, line: str, no: int) -> None:
        """A line of a known shape whose numbers can't be read."""
        self.count_drift(f"damaged {plan.wording.kind}", plan, line, no, 1, status="drifted")

    def count_drift(self, shape: str, plan: Plan, line: str, no: int, count: int, status: str = "") -> None:
        message = plan.envelope.message if plan.envelope is not None else line
        example = Drift(status or plan.status, no, line, message, plan.column, plan.expected, plan.literal)
        self.tally.count_drift(shape, example, count)
