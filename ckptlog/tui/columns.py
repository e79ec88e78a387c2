"""A turn, or several, as one column of the map, in tokens: its parts, its checkpoints, where it parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ckptlog.records import FAILURES, TurnRecord
from ckptlog.report.digest import Numbered
from ckptlog.report.loss import loss
from ckptlog.tui.lanes import Lane, Life

PartKind = Literal["reused", "lost", "new", "generated", "refused", "unknown"]
MarkKind = Literal[
    "live", "created", "restored", "evicted", "thinned", "superseded", "invalidated", "cleared"
]

#: of several marks on one spot the one that tells more
_MARK_RANK: dict[MarkKind, int] = {
    "restored": 0,
    "evicted": 1,
    "thinned": 2,
    "cleared": 3,
    "invalidated": 4,
    "superseded": 5,
    "created": 6,
    "live": 7,
}
_OUTCOME_RANK = {outcome: rank for rank, outcome in enumerate((*FAILURES, "error"))}


class Part(NamedTuple):
    """The positions ``low`` to ``high`` (half open) of a turn."""

    kind: PartKind
    low: int
    high: int


class Mark(NamedTuple):
    """A checkpoint in a column; ``strong`` where the selected turn's finding speaks of it."""

    n_tokens: int
    kind: MarkKind
    strong: bool


class Line(NamedTuple):
    """A checkpoint that goes on to the next column; ``ghost`` once it is dead but was needed later."""

    n_tokens: int
    strong: bool
    ghost: bool


@dataclass(frozen=True)
class Column:
    """What one column shows; of several turns the worst one's parts, and all that happened to checkpoints."""

    turns: tuple[Numbered, ...]
    shown: Numbered
    n_ctx: int | None
    parts: tuple[Part, ...]
    holes: tuple[tuple[int, int], ...]
    divergence: int | None
    cut: bool
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
    restart: bool
    #: what would have been cached with other flags: a number of tokens, or the ends of a range
    then: tuple[int, ...] = ()

    @property
    def refused_ratio(self) -> float | None:
        """How many times the context a refused prompt was; null for any other turn."""
        turn = self.shown.turn
        if turn.outcome != "arrival-rejection":
            return None
        return turn.n_prompt / self.n_ctx if turn.n_prompt and self.n_ctx else 1.0


def parts_of(turn: TurnRecord, n_ctx: int | None) -> tuple[Part, ...]:
    """A turn's parts from position 0 upwards, as far as the log tells; no empty ones."""
    prompt = turn.n_prompt or 0
    if turn.outcome == "arrival-rejection":
        return (Part("refused", 0, prompt or n_ctx or 1),)
    limit = n_ctx or prompt + (turn.n_generated or 0)
    if turn.n_cached is None:
        spans = [Part("unknown", 0, prompt)]
    else:
        lost_end = min(turn.n_cached + lost_tokens(turn), prompt)
        spans = [
            Part("reused", 0, turn.n_cached),
            Part("lost", turn.n_cached, lost_end),
            Part("new", max(lost_end, turn.n_cached), prompt),
        ]
    spans.append(Part("generated", prompt, prompt + (turn.n_generated or 0)))
    clipped = (Part(part.kind, min(part.low, limit), min(part.high, limit)) for part in spans)
    return tuple(part for part in clipped if part.high > part.low)


def lost_tokens(turn: TurnRecord) -> int:
    """The tokens a turn lost, as far as the log tells; 0 where it tells nothing."""
    lost = loss(turn)
    return lost.tokens if lost is not None else 0


def badness(turn: TurnRecord) -> tuple[int, int, int]:
    """A key to find the worst of several turns by ``max``."""
    failed = turn.failed or turn.outcome == "error"
    rank = len(_OUTCOME_RANK) - _OUTCOME_RANK.get(turn.outcome, len(_OUTCOME_RANK))
    return int(failed), rank if failed else 0, lost_tokens(turn)


def column_of(
    lane: Lane, first: int, last: int, strong: Sequence[Life] = (), focus: int | None = None
) -> Column:
    """The column of a lane's turns ``first`` to ``last`` (indices, both included).

    ``strong`` are the checkpoints to point out, ``focus`` the index of the turn that missed them.
    """
    items = tuple(lane.turns[first : last + 1])
    shown = max(items, key=lambda item: badness(item.turn))
    turn = shown.turn
    n_ctx = lane.context_of(turn) or lane.n_ctx
    parts_at = turn.n_common if lost_tokens(turn) else None
    if turn.mismatch is not None and turn.mismatch.pos is not None and turn.outcome in FAILURES:
        parts_at = turn.mismatch.pos
    return Column(
        turns=items,
        shown=shown,
        n_ctx=n_ctx,
        parts=parts_of(turn, n_ctx),
        holes=tuple(shift.hole for shift in turn.shifts),
        divergence=parts_at if turn.failed else None,
        cut=turn.outcome == "limit-stop" or "limit-stop" in turn.also,
        marks=_marks(lane, first, last, strong),
        lines=_lines(lane, last, strong, focus),
        restart=lane.is_restart(first),
    )


def _marks(lane: Lane, first: int, last: int, strong: Sequence[Life]) -> tuple[Mark, ...]:
    marks: dict[tuple[int, MarkKind], Mark] = {}
    for life in lane.lives_between(first, last):
        mark = Mark(life.record.n_tokens, _mark_kind(life, first, last), life in strong)
        marks[mark.n_tokens, mark.kind] = mark
    # the most telling last, so that it is drawn over the others
    return tuple(sorted(marks.values(), key=lambda mark: (mark.strong, -_MARK_RANK[mark.kind])))


def _mark_kind(life: Life, first: int, last: int) -> MarkKind:
    if any(first <= index <= last for index in life.restored):
        return "restored"
    if life.died is not None and first <= life.died <= last and life.record.fate != "live":
        return life.record.fate
    return "created" if life.born >= first else "live"


def _lines(lane: Lane, last: int, strong: Sequence[Life], focus: int | None) -> tuple[Line, ...]:
    lines = {
        life.record.n_tokens: Line(life.record.n_tokens, life in strong, False)
        for life in lane.lives_at(last)
        if life.after(last)
    }
    if focus is not None:
        for life in strong:
            if life.died is not None and life.died <= last < focus:
                lines.setdefault(life.record.n_tokens, Line(life.record.n_tokens, True, True))
    return tuple(sorted(lines.values(), key=lambda line: line.strong))
