"""Every shape met in a source, with its plan; counts the lines that give no event."""

from __future__ import annotations

from ckptlog.events.plan import Plan, Planner
from ckptlog.events.tally import Drift, Tally

#: distinct shapes remembered; more than this means that free text got into shapes
MAX_SHAPES = 200_000


class ShapeBook:
    """Plans by number; ``index`` has the number of each shape's plan."""

    def __init__(self, planner: Planner, tally: Tally) -> None:
        self.planner = planner
        self.tally = tally
        self.plans: list[Plan] = []
        self.index: dict[str, int] = {}

    def number(self, shape: str, line: str, last: str) -> int:
        """Which plan a shape has; it is made from ``line`` and ``last``, the first and the last example met
        now: one odd line condemns no shape."""
        number = self.index.get(shape)
        if number is not None:
            return number
        plan = self.planner.plan(line)
        if plan.status in ("drifted", "unknown") and last != line:
            other = self.planner.plan(last)
            plan = other if other.status == "event" else plan
        number = len(self.plans)
        if len(self.index) < MAX_SHAPES:
            self.index[shape] = number
        self.plans.append(plan)
        return number

    def count(self, number: int, shape: str, line: str, no: int, count: int) -> bool:
        """So many more lines of a shape, from ``line`` (the ``no``-th) on; do they give events?"""
        plan = self.plans[number]
        self.count_form(plan, count)
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
