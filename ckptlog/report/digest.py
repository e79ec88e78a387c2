"""A report boiled down to what a person must be told, before any of it is formatted.

The text and the Markdown report are both made from a :class:`Digest`, so they can't disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from ckptlog.records import FAILURES, HEALTHY, Fix, Mark, Report, TurnRecord
from ckptlog.report.loss import Loss, loss, n_deleted
from ckptlog.report.words import duration, percent, plural, title
from ckptlog.verdict.judge import NOT_ENDED

#: flags of which a larger value also does what a smaller one would have done
_LARGER_COVERS = frozenset({"--ctx-checkpoints", "--swa-checkpoints", "--ctx-size", "-c", "--cache-ram"})

#: tokens; a prompt shorter than this is processed in no time
_LONG_PROMPT = 512

#: milliseconds of one prompt; shorter than this, nobody asks why
_SLOW_MS = 30_000.0

#: share of prompt tokens; an agent's session reuses most of its prompts
_LITTLE_REUSE = 0.5

#: how much longer a conversation's next prompt is, at most, if it is to be taken for one
_GROWTH = 1.5

_RANK: dict[str, int] = {outcome: rank for rank, outcome in enumerate((*FAILURES, "error"))}


@dataclass(frozen=True)
class Numbered:
    """A turn and its place in the whole log, from 1 (kept when turns are filtered out)."""

    number: int
    turn: TurnRecord


@dataclass(frozen=True)
class Finding:
    """Turns with the same outcome, variant, cause and first fix (on several servers: with the same flags)."""

    turns: list[Numbered]

    @cached_property
    def worst(self) -> Numbered:
        """The turn that cost most (the first of several alike); it stands for all of them."""
        return max(
            self.turns,
            key=lambda item: (*_weight(item.turn), -item.number),
        )

    @property
    def outcome(self) -> str:
        return self.worst.turn.outcome

    @property
    def title(self) -> str:
        """What happened to its turns, as a heading."""
        return title(self.outcome, self.worst.turn.variant, len(self.turns))

    @property
    def name(self) -> str:
        """What ``ckptlog explain`` knows it by: the cause, or outcome and variant if there is none."""
        turn = self.worst.turn
        return turn.cause or ", ".join(part for part in (turn.outcome, turn.variant) if part)

    @cached_property
    def losses(self) -> list[Loss | None]:
        """What each of its turns lost."""
        return [loss(item.turn) for item in self.turns]

    @cached_property
    def n_lost(self) -> int:
        return sum(each.tokens for each in self.losses if each is not None)

    @cached_property
    def lost_ms(self) -> float:
        return sum(each.ms for each in self.losses if each is not None)

    @cached_property
    def fixes(self) -> list[Fix]:
        """The fixes, cheapest first, each as the turn that needs most of it has it."""
        merged = {fix.name: fix for fix in self.worst.turn.fixes}
        for item in self.turns:
            for fix in item.turn.fixes:
                if fix.name in merged and _covers(fix, merged[fix.name]):
                    merged[fix.name] = fix
        return list(merged.values())

    @property
    def not_fixes(self) -> list[Fix]:
        return self.worst.turn.not_fixes

    @property
    def why(self) -> str:
        """Why it happened, told of its worst turn; what happened, where the log doesn't tell why."""
        return self.worst.turn.explanation or self.worst.turn.headline

    def cost(self) -> str:
        """What it cost, in numbers of this log."""
        if self.outcome == "arrival-rejection":
            return f"{plural(len(self.turns), 'request')} refused"
        if self.outcome == "limit-stop":
            return f"{plural(len(self.turns), 'answer')} cut short"
        if self.outcome == "context-shift":
            gone = sum(n_deleted(item.turn) for item in self.turns)
            if gone:
                return f"{plural(gone, 'token')} deleted"
            return f"{plural(len(self.turns), 'prompt')} cut"
        if self.outcome == "error":
            return f"{plural(len(self.turns), 'request')} failed"
        if not self.n_lost:
            return "loss not in the log"
        exact = all(each is not None and each.exact for each in self.losses)
        tokens = f"{'' if exact else 'at least '}{plural(self.n_lost, 'token')} again"
        return f"{tokens}, {duration(self.lost_ms)}" if self.lost_ms else tokens


def _processed(items: list[Numbered]) -> int:
    return sum(item.turn.n_processed or 0 for item in items)


def _weight(turn: TurnRecord) -> tuple[float, int]:
    lost = loss(turn)
    return (lost.ms, lost.tokens) if lost is not None else (0.0, 0)


def _covers(fix: Fix, other: Fix) -> bool:
    """Whether ``fix`` sets the same flag as ``other``, to a value that does for both."""
    if len(fix.flags) != 2 or len(other.flags) != 2 or fix.flags[0] != other.flags[0]:
        return False
    if fix.flags[0] not in _LARGER_COVERS:
        return False
    try:
        return int(fix.flags[1]) > int(other.flags[1])
    except ValueError:
        return False


def _next_to_nothing(turn: TurnRecord) -> bool:
    """Whether at most a twentieth of the prompt came from the cache."""
    return turn.n_cached is not None and (turn.n_processed or 0) >= 19 * turn.n_cached


def shows(turn: TurnRecord, mark: Mark) -> bool:
    """Has the turn a line of evidence with that mark?"""
    return any(evidence.mark == mark for evidence in turn.evidence)


@dataclass(frozen=True)
class Selection:
    """Some turns of a log, by ``--where``: their places in the whole log, from 1, of ``total``."""

    numbers: list[int]
    total: int


@dataclass(frozen=True)
class Digest:
    """What a report comes to."""

    report: Report
    selection: Selection | None
    turns: list[Numbered]
    findings: list[Finding]
    harmless: list[Numbered] = field(default_factory=list)

    @cached_property
    def failed(self) -> int:
        return sum(item.turn.failed for item in self.turns)

    @cached_property
    def lost(self) -> Loss:
        """What all turns lost together: the sum of what each is said to have lost."""
        each = [lost for item in self.turns if (lost := loss(item.turn)) is not None]
        return Loss(
            sum(one.tokens for one in each), sum(one.ms for one in each), all(one.exact for one in each)
        )

    @cached_property
    def process_ended(self) -> bool:
        """Did a server's process crash while it was at work on no turn?"""
        return any(each.kind == "server-ended" for run in self.report.runs for each in run.incidents)

    @cached_property
    def failed_outside(self) -> bool:
        """Did anything fail outside of turns? (A router that makes room for a model does what it is told to.)"""
        return any(each.kind != "model-unloaded" for run in self.report.runs for each in run.incidents)

    @cached_property
    def unended(self) -> list[Numbered]:
        """Turns that were at work where the log ends."""
        return [item for item in self.turns if NOT_ENDED in item.turn.missing]

    @cached_property
    def cancelled(self) -> list[Numbered]:
        """Turns that ended without a complete answer and by no fault: the client went away, or the server was stopped."""
        return [item for item in self.turns if item.turn.outcome == "cancelled"]

    @cached_property
    def unjudged(self) -> list[Numbered]:
        """Turns of which the log does not tell the outcome."""
        return [item for item in self.turns if item.turn.outcome == "unknown"]

    @cached_property
    def rewritten(self) -> list[Finding]:
        """Harmless by the rules, since next to nothing was shared, and yet worth telling: long
        prompts whose head the client changes, so that nothing can ever be reused. Where little was reused in
        all, also those of memory that needs no checkpoint to reuse the few tokens in common."""
        groups: dict[str | None, list[Numbered]] = {}
        reused = [item for item in self.turns if item.turn.outcome == "reused" and _next_to_nothing(item.turn)]
        for item in [*self.harmless, *(reused if self.little_reused else ())]:
            turn = item.turn
            if turn.trigger == "prefix-rewritten" and (turn.n_processed or 0) >= _LONG_PROMPT:
                groups.setdefault(turn.cause, []).append(item)
        return [Finding(items) for items in groups.values()]

    @cached_property
    def growing(self) -> list[Numbered]:
        """Turns of unknown outcome that reused nothing, each a longer prompt than the one before on its slot: they may
        be one conversation whose beginning changes. Empty unless there are several."""
        found: list[Numbered] = []
        before: dict[tuple[int, int | None], int] = {}
        for item in self.turns:
            turn, n_prompt = item.turn, item.turn.n_prompt
            if n_prompt is None or turn.slot is None:
                continue
            last = before.get((turn.run, turn.slot))
            before[turn.run, turn.slot] = n_prompt
            grows = last is not None and last < n_prompt <= last * _GROWTH
            if grows and turn.outcome == "unknown" and turn.n_cached == 0 and n_prompt >= _LONG_PROMPT:
                found.append(item)
        return found if len(found) > 1 else []

    @cached_property
    def little_reused(self) -> bool:
        """Whether less than half of all prompt tokens came from the cache, as far as the log tells."""
        reuse = self.report.summary.reuse
        return reuse is not None and reuse < _LITTLE_REUSE

    @cached_property
    def reused_words(self) -> str | None:
        """The share of prompt tokens that came from the cache, and of which turns it is where not of all."""
        reuse = self.report.summary.reuse
        if reuse is None:
            return None
        asked = [
            item.turn
            for item in self.turns
            if item.turn.child_of is None and item.turn.outcome not in ("arrival-rejection", "not-completion")
        ]
        told = sum(turn.n_cached is not None and bool(turn.n_prompt) for turn in asked)
        share = f"{percent(reuse)} of prompt tokens reused"
        return share if told == len(asked) else f"{share} in {told:,} of {plural(len(asked), 'turn')}"

    @cached_property
    def swapped(self) -> list[Numbered]:
        """Turns that went on with another conversation's tokens."""
        return [item for item in self.turns if shows(item.turn, "slot-swapped")]

    @cached_property
    def slept(self) -> list[Numbered]:
        """Turns that found nothing and may have been held before the server slept, by their lengths."""
        return self._let_go("slept")

    @cached_property
    def purged(self) -> list[Numbered]:
        """Turns that found nothing and may have been held before the server purged their slot for room."""
        return self._let_go("purged")

    @cached_property
    def cleared(self) -> list[Numbered]:
        """Turns that found nothing and may have been held before a client's request emptied their slot, by their lengths."""
        return self._let_go("cleared")

    def _let_go(self, how: Mark) -> list[Numbered]:
        return [item for item in self.turns if not item.turn.failed and shows(item.turn, how)]

    @cached_property
    def unawaited(self) -> list[Numbered]:
        """Turns that the server finished although the client had gone."""
        return [item for item in self.turns if shows(item.turn, "client-gone")]

    @cached_property
    def left_behind(self) -> list[Numbered]:
        """Turns that lost the last answer, and less than fails, to drafted tokens behind its end."""
        return [item for item in self.turns if not item.turn.failed and shows(item.turn, "drafts-left-behind")]

    @cached_property
    def unshared(self) -> list[Numbered]:
        """Long prompts, healthy each by itself, that found nothing or another conversation in a slot
        that had been used before; empty unless they are why little was reused in all."""
        if self.findings or not self.little_reused:
            return []
        rewritten = [item for finding in self.rewritten for item in finding.turns]
        used: set[tuple[int, int | None]] = set()
        found = []
        told = {item.number for item in (*self.slept, *self.purged, *self.cleared, *rewritten)}
        for item in self.turns:
            turn = item.turn
            alone = (turn.n_processed or 0) >= _LONG_PROMPT and _next_to_nothing(turn)
            apart = item.number not in told and (turn.run, turn.slot) in used
            if alone and turn.outcome in (*HEALTHY, *FAILURES) and apart:
                found.append(item)
            used.add((turn.run, turn.slot))
        return found if _processed(found) > max(_processed(self.slept), _processed(rewritten)) else []

    @cached_property
    def head_changed(self) -> bool:
        """Whether nothing failed, and a changing head is why little was reused."""
        return bool(self.rewritten and self.little_reused and not self.findings and not self.unshared)

    @cached_property
    def slow(self) -> list[Numbered]:
        """Long waits for new tokens in turns that lost nothing to speak of; empty where there is a finding."""
        return [item for item in self._long_waits if not shows(item.turn, "parted")]

    @cached_property
    def parted(self) -> list[Numbered]:
        """Long waits for tokens behind a change, which the slot had held in another version."""
        return [item for item in self._long_waits if shows(item.turn, "parted")]

    @cached_property
    def _long_waits(self) -> list[Numbered]:
        if self.findings or self.rewritten:
            return []
        slept = {item.number for item in self.slept}
        return [
            item
            for item in self.turns
            if item.turn.outcome in HEALTHY
            and item.number not in slept
            and (item.turn.n_processed or 0) >= _LONG_PROMPT
            and (item.turn.prompt_ms or 0) >= _SLOW_MS
        ]

    @cached_property
    def fine(self) -> int:
        """Turns in which nothing went wrong, a harmless re-prefill included."""
        return sum(
            item.turn.outcome in HEALTHY
            or item.turn.outcome == "not-completion"
            or (item.turn.outcome in FAILURES and not item.turn.failed)
            for item in self.turns
        )

    @cached_property
    def missing(self) -> list[tuple[str, int]]:
        """What the log could not tell: each sentence and for how many turns, most first."""
        counts: dict[str, int] = {}
        for item in self.turns:
            for sentence in dict.fromkeys(item.turn.missing):
                counts[sentence] = counts.get(sentence, 0) + 1
        return sorted(counts.items(), key=lambda pair: -pair[1])

    @cached_property
    def counts(self) -> dict[str, int]:
        """Turns by outcome, for those that are neither fine nor failed."""
        counts: dict[str, int] = {}
        for item in self.turns:
            if item.turn.outcome in ("cancelled", "error", "unknown"):
                counts[item.turn.outcome] = counts.get(item.turn.outcome, 0) + 1
        return counts


def _by_server(items: list[Numbered]) -> list[Finding]:
    """Turns alike, apart where their servers need other flags: one advice can't serve both."""
    runs: dict[int, list[Numbered]] = {}
    for item in items:
        runs.setdefault(item.turn.run, []).append(item)
    if len(runs) == 1:
        return [Finding(items)]
    apart: dict[tuple[str, ...], list[Numbered]] = {}
    for turns in runs.values():
        fixes = Finding(turns).fixes
        apart.setdefault(tuple(fixes[0].flags) if fixes else (), []).extend(turns)
    return [Finding(turns) for turns in apart.values()]


def digest(report: Report, selection: Selection | None = None) -> Digest:
    """Group a report's turns into findings, the worst first.

    The order of findings is the contract's precedence of outcomes (a refused or mutilated
    prompt harms more than a slow one), then the cost.
    """
    numbers = selection.numbers if selection else range(1, len(report.turns) + 1)
    turns = [Numbered(number, turn) for number, turn in zip(numbers, report.turns, strict=True)]
    groups: dict[tuple[str | None, ...], list[Numbered]] = {}
    for item in turns:
        turn = item.turn
        if turn.failed or turn.outcome == "error":
            fix = turn.fixes[0].name if turn.fixes else None
            # what one log can't tell of two turns may be two things
            missing = turn.missing if turn.cause == "unknown" else ()
            groups.setdefault((turn.outcome, turn.variant, turn.cause, fix, *missing), []).append(item)
    findings = sorted(
        (finding for items in groups.values() for finding in _by_server(items)),
        key=lambda finding: (
            _RANK.get(finding.outcome, len(_RANK)),
            -finding.lost_ms,
            -finding.n_lost,
            -len(finding.turns),
            finding.turns[0].number,
        ),
    )
    harmless = [item for item in turns if item.turn.outcome in FAILURES and not item.turn.failed]
    return Digest(report, selection, turns, findings, harmless)
