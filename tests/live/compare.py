"""Holds ckptlog's turns against what the client saw, figure by figure.

At verbosity 4 and above every figure must be there and equal. At verbosity 3 and below the log
hides some of them: a null is then a gap, which is counted but is no disagreement; a number that
is wrong is one at any level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ckptlog.records import Report, TurnRecord
from tests.live.truth import Request, Truth

#: ckptlog's field, and the client's
FIGURES: dict[str, Callable[[Request], int | bool | None]] = {
    "n_prompt": lambda r: r.n_prompt,
    "n_cached": lambda r: r.cache_n,
    "n_processed": lambda r: r.prompt_n,
    "n_generated": lambda r: r.predicted_n,
    "truncated": lambda r: r.truncated,
    "slot": lambda r: r.slot,
    "n_common_slot": lambda r: r.lcp_slot,
}

#: what ckptlog must call a turn that ended in this way (the first that applies)
_ENDS: dict[str, set[str]] = {
    "rejected": {"arrival-rejection"},
    "limit stop": {"limit-stop"},
    "context shift": {"context-shift"},
    "cancelled": {"cancelled"},
    "embedding": {"not-completion"},
}


@dataclass
class Comparison:
    """What agreed and what did not. ``gaps`` counts figures that the log's level hides."""

    name: str
    turns: int = 0
    figures: int = 0
    gaps: int = 0
    checkpoints_proved: int = 0
    disagreements: list[str] = field(default_factory=list)

    def add(self, other: Comparison) -> None:
        self.turns += other.turns
        self.figures += other.figures
        self.gaps += other.gaps
        self.checkpoints_proved += other.checkpoints_proved
        self.disagreements += other.disagreements

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.turns} turns, {self.figures} figures equal, {self.gaps} hidden by the level, "
            f"{self.checkpoints_proved} checkpoint lists proved, {len(self.disagreements)} disagreements"
        )


def compare(truth: Truth, report: Report, name: str = "") -> Comparison:
    """Compare a report with the truth, turn by turn."""
    result = Comparison(name)

    def disagree(text: str) -> None:
        result.disagreements.append(f"{name}: {text}")

    level = min(int(s.flags["verbosity"]) for s in truth.servers)
    if len(report.runs) != len(truth.servers):
        disagree(f"{len(report.runs)} runs, the server was started {len(truth.servers)} times")
        return result
    pairs, unpaired_requests, unpaired_turns = pair(truth, report)
    for request in unpaired_requests:
        if _must_have_a_turn(request, level):
            disagree(f"request {request.seq} ({request.step}) has no turn")
    for turn in unpaired_turns:
        disagree(f"task {turn.task} (line {turn.lines[0]}) belongs to no request")
    for request, turn in pairs:
        result.turns += 1
        where = f"request {request.seq} ({request.step}), task {turn.task}, line {turn.lines[0]}"
        for figure, wanted in _figures(request):
            seen = getattr(turn, figure)
            if seen == wanted:
                result.figures += 1
            elif seen is None and (level < 4 or figure == "n_common_slot"):
                result.gaps += 1
            else:
                disagree(f"{where}: {figure} is {seen}, the client saw {wanted}")
        wrong = _wrong_outcome(request, turn)
        if wrong:
            disagree(f"{where}: {wrong}")
        for key, value in request.verdict.items():
            if truth.build == NEWEST and getattr(turn, key) != value:
                disagree(f"{where}: {key} is {getattr(turn, key)!r}, expected {value!r}")
        if request.choices and request.status == 200:
            for text in _wrong_children(request, turn, report):
                disagree(f"{where}: {text}")
        proof = prove_checkpoints(truth, request, turn)
        if proof is not None:
            result.checkpoints_proved += 1
            if proof:
                disagree(f"{where}: {proof}")
    return result


#: the build that the scenarios' verdicts are written for
NEWEST = "b11549"


def pair(
    truth: Truth, report: Report
) -> tuple[list[tuple[Request, TurnRecord]], list[Request], list[TurnRecord]]:
    """Which turn belongs to which request.

    One client: in order. Several at once: by the prompt's length among the turns of the same run.
    Children of a request with n > 1 are the server's own and left out.
    """
    turns = [t for t in report.turns if t.child_of is None]
    requests = truth.turns()
    pairs: list[tuple[Request, TurnRecord]] = []
    left: list[TurnRecord] = []
    unpaired: list[Request] = []
    for run in range(len(truth.servers)):
        ours = [r for r in requests if r.server == run]
        theirs = [t for t in turns if t.run == run]
        if not truth.concurrent and len(ours) == len(theirs):
            pairs += zip(ours, theirs, strict=True)
            continue
        for request in ours:
            match = _match(request, theirs)
            if match is None:
                unpaired.append(request)
            else:
                pairs.append((request, match))
                theirs.remove(match)
        left += theirs
    return pairs, unpaired, left


def _match(request: Request, turns: Iterable[TurnRecord]) -> TurnRecord | None:
    def distance(turn: TurnRecord) -> int:
        return sum(
            getattr(turn, figure) is not None and getattr(turn, figure) != wanted
            for figure, wanted in _figures(request)
        )

    same = [t for t in turns if t.n_prompt in (request.n_prompt_client, None)]
    return min(same, key=distance, default=None)


def _figures(request: Request) -> Iterable[tuple[str, int | bool]]:
    """The figures that the client knows of this request."""
    if request.end == "rejected":
        # the answer says nothing but the error; that nothing was processed is what a refusal means
        yield from (
            ("n_prompt", request.n_prompt_client or 0),
            ("n_cached", 0),
            ("n_processed", 0),
            ("n_generated", 0),
        )
        return
    if request.end == "embedding":
        yield "n_prompt", request.n_prompt or 0
        return
    for figure, get in FIGURES.items():
        wanted = get(request)
        if wanted is not None:
            yield figure, wanted
    if request.n_prompt is None and request.n_prompt_client is not None and not request.choices:
        yield "n_prompt", request.n_prompt_client


def _must_have_a_turn(request: Request, level: int) -> bool:
    """A request that the server answers without a slot leaves no turn; below level 3 none does."""
    return level >= 3 and not (request.end == "error" and request.status == 400)


def _wrong_outcome(request: Request, turn: TurnRecord) -> str | None:
    wanted = _ENDS.get(request.end or "")
    if wanted and turn.outcome not in wanted and not wanted & set(turn.also):
        return f"outcome is {turn.outcome} (also {turn.also}), the client saw {request.end}"
    if wanted is None and turn.outcome in ("arrival-rejection", "limit-stop", "context-shift", "cancelled"):
        return f"outcome is {turn.outcome}, the client saw {request.end}"
    if (request.end == "error") != ("error" in (turn.outcome, *turn.also)):
        return f"outcome is {turn.outcome}, the client saw {request.end}"
    return None


def _wrong_children(request: Request, parent: TurnRecord, report: Report) -> Iterable[str]:
    """A request for n answers has n - 1 children with the parent's prompt, of which nothing is evaluated."""
    children = [t for t in report.turns if t.child_of == parent.task and t.run == parent.run]
    if len(children) != (request.choices or 1) - 1:
        yield f"{len(children)} children, the client asked for {request.choices} answers"
    for child in children:
        if (child.n_prompt, child.n_processed) != (request.n_prompt, 0):
            yield f"child {child.task} has a prompt of {child.n_prompt}, {child.n_processed} processed"


def prove_checkpoints(truth: Truth, request: Request, turn: TurnRecord) -> str | None:
    """Hold the list ckptlog rebuilt against where the server really resumed.

    None: this turn proves nothing (everything in common was reused, or the list is not known).
    An empty string: the list fits. Else what does not fit. On recurrent and hybrid memory the
    server resumes from the newest checkpoint that is not beyond the common prefix, so the reuse
    names one entry and says that none lies between it and the prefix; on sliding-window memory
    it resumes at a checkpoint's last position, one less than its ``n_tokens`` (at ``n_tokens`` where it
    holds a single one).
    """
    reused, common = request.cache_n, request.lcp_slot
    if turn.checkpoints is None or reused is None or common is None or request.choices:
        return None
    if turn.n_common != turn.n_common_slot or reused >= common or not common:
        return None
    if request.cache_prompt is False or turn.cause == "cache-off" or reused == (request.n_prompt or 0) - 1:
        return None
    held = turn.checkpoints.before
    if truth.model in ("hybrid", "recurrent"):
        # with nothing new to evaluate the state must lie one token earlier
        usable = common - 1 if common == request.n_prompt else common
        best = max((n for n in held if n <= usable), default=0)
        return (
            ""
            if best == reused
            else f"the list {held} would resume at {best} of {common}, the server did at {reused}"
        )
    if truth.model in ("swa", "gemma"):
        if reused == 0:
            return None
        fits = reused in held or reused + 1 in held
        return "" if fits else f"the server resumed at {reused}, the list is {held}"
    return None
