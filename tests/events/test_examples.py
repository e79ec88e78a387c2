"""Every example of the grammar that the timeline reads becomes an event, on the fast way and on the long one."""

from __future__ import annotations

import pytest

from ckptlog.events.by_line import event_by_line
from ckptlog.events.plan import Planner
from ckptlog.grammar import Kind, messages
from ckptlog.timeline.kinds import EVIDENCE_KINDS, NEEDED_KINDS

HEADS = {"slot": "0.00.000.001 I slot        update: id  0 | task 7 | ", "srv": "0.00.000.001 I srv        update: "}
KINDS = [kind for kind in messages().kinds.values() if kind.name in NEEDED_KINDS and set(kind.families) & set(HEADS)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_examples_are_read(kind: Kind) -> None:
    planner = Planner(messages(), NEEDED_KINDS, EVIDENCE_KINDS)
    for wording in kind.wordings:
        for example in wording.examples:
            if not example or wording.fork:
                continue
            for family in kind.families:
                if family in HEADS:
                    line = HEADS[family] + example
                    assert planner.plan(line).status == "event", line
                    event = event_by_line(planner, 1, line)
                    assert event is not None, line
                    assert event.kind == kind.name
