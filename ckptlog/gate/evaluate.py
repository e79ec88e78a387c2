"""A policy applied to one log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from ckptlog.gate.findings import findings
from ckptlog.gate.policy import Check, Policy, group_columns
from ckptlog.gate.verdict import CheckStatus, CheckVerdict, LogVerdict
from ckptlog.gate.wording import MIRRORED, found_and_wanted, unknown_words
from ckptlog.query import compile_check, compile_filter
from ckptlog.query.compile import CheckResult, CompiledCheck
from ckptlog.query.nodes import Aggregate, Compare, walk
from ckptlog.records import FAILURES, Outcome, Report, TurnRecord
from ckptlog.report.capture import capture_command
from ckptlog.report.words import percent, plural

#: outcomes of turns that lack figures by their nature, however much is logged
_WITHOUT_FIGURES: tuple[Outcome, ...] = ("arrival-rejection", "not-completion")
#: turns that are named where a check wants more of something, and any turn could be the reason
_SUSPECTS = 5


def judge(
    report: Report,
    turns: pl.DataFrame,
    path: str,
    policy: Policy,
    baseline: Sequence[CheckVerdict] = (),
    notes: Sequence[str] = (),
) -> LogVerdict:
    """The verdict on one log; ``baseline`` and ``notes`` come from its comparison with an earlier one."""
    case = _Case(report, turns, policy)
    checks = [*case.outcomes(), *case.checks(), *baseline]
    if policy.gate.warn_only:
        checks = [warned(check) for check in checks]
    failed = [check for check in checks if check.status == "failed"]
    warnings = [check for check in checks if check.status == "warning"]
    reuse = report.summary.reuse
    if failed:
        message = f"{len(failed)} of {plural(len(checks), 'check')} failed: {_listed(c.name for c in failed)}"
    else:
        message = f"{plural(len(checks), 'check')} passed" if not warnings else (
            f"no check failed, {plural(len(warnings), 'warning')}: {_listed(c.name for c in warnings)}"
        )  # fmt: skip
    facts = [plural(len(report.turns), "turn"), f"{sum(t.failed for t in report.turns):,} failed"]
    facts += [f"{percent(reuse)} reused"] if reuse is not None else []
    return LogVerdict(
        path=path,
        status="failed" if failed else "passed",
        message=f"{message} ({', '.join(facts)})",
        turns=len(report.turns),
        failed_turns=sum(turn.failed for turn in report.turns),
        reuse=None if reuse is None else round(reuse, 6),
        checks=checks,
        notes=[*notes, *_notes(report, policy), *_not_asked(policy, checks, baseline)],
    )


def warned(check: CheckVerdict) -> CheckVerdict:
    """The same finding without its power to fail the gate."""
    if check.status != "failed":
        return check
    return msgspec.structs.replace(check, status="warning")


def not_judged(report: Report) -> int:
    """How many turns (or whole runs) a limit kept out of the report."""
    return sum(report.left_out.get(what, 0) for what in ("turns", "empty", "runs"))


def counts_as(turn: TurnRecord, outcome: Outcome) -> bool:
    """Whether ``fail_on`` with this outcome means this turn.

    Of the four failures only those that cost something, also where another one came first; any other
    outcome by its name.
    """
    if outcome not in FAILURES:
        return turn.outcome == outcome
    if turn.outcome == outcome:
        return turn.failed
    harmless = outcome == "checkpoint-reprefill" and turn.severity == "harmless"
    return outcome in turn.also and not harmless


class _Case:
    def __init__(self, report: Report, turns: pl.DataFrame, policy: Policy) -> None:
        self.report = report
        self.turns = turns
        self.policy = policy
        self.hint = "capture more next time: " + " ".join(capture_command(report.runs))

    def hint_for(self, numbers: Sequence[int]) -> str:
        """How to have the values of these turns next time, or how to leave the turns out."""
        if all(self.report.turns[number - 1].outcome in _WITHOUT_FIGURES for number in numbers):
            listed = ", ".join(f"'{outcome}'" for outcome in _WITHOUT_FIGURES)
            return f'such turns have none: leave them out with where = "outcome not in ({listed})"'
        return self.hint

    def outcomes(self) -> Iterator[CheckVerdict]:
        """One check for each outcome of ``fail_on``."""
        for outcome in self.policy.fail_on:
            numbers = [n for n, turn in enumerate(self.report.turns, start=1) if counts_as(turn, outcome)]
            unjudged = not_judged(self.report) if outcome == "unknown" else 0
            unknown = len(numbers) + unjudged if outcome == "unknown" else 0
            status: CheckStatus = "passed"
            said = [plural(len(numbers), "turn")] if numbers else []
            if unjudged:
                said.append(f"{plural(unjudged, 'turn')} too many to be judged")
            if said:
                status = "warning" if unknown and self.policy.gate.allow_unknown else "failed"
            yield CheckVerdict(
                id=f"outcome/{outcome}",
                name=f"no {outcome}",
                kind="outcome",
                status=status,
                message=" and ".join(said) or "none",
                unknown=unknown,
                turns=findings(self.report, numbers),
                turns_total=len(numbers),
                hint=self.hint if unknown else None,
            )

    def checks(self) -> Iterator[CheckVerdict]:
        ids: set[str] = set()
        for check in self.policy.gate.check:
            compiled = compile_check(check.expr)
            base = identifier = f"check/{_slug(check.name or check.expr)}"
            while identifier in ids:
                identifier = f"{base}-{len(ids)}"
            ids.add(identifier)
            chosen, unsaid = self.turns, self.turns.clear()
            if check.where is not None:
                where = compile_filter(check.where).expr
                unsaid = self.turns.filter(where.is_null())
                chosen = self.turns.filter(where)
            for group, rows in _groups(chosen, group_columns(check)):
                yield self.check(check, compiled, identifier, group, rows, unsaid)

    def check(
        self,
        check: Check,
        compiled: CompiledCheck,
        identifier: str,
        group: dict[str, Any],
        rows: pl.DataFrame,
        unsaid: pl.DataFrame,
    ) -> CheckVerdict:
        result = compiled.evaluate(rows)
        message = found_and_wanted(result, _limit_is_left(compiled))
        # a turn of which `where` can't be said may belong to the check as well
        unknown = sorted({*result.unknown, *unsaid["turn"]})
        numbers: list[int] = []
        status: CheckStatus = "passed"
        hint = None
        if result.holds is False:
            status, numbers = "failed", _behind(compiled, result, rows)
        elif result.holds is None or (unknown and not _surely(compiled, result, len(unknown))):
            allowed = self.policy.gate.allow_unknown if check.allow_unknown is None else check.allow_unknown
            status = "warning" if allowed else "failed"
            if unknown:
                numbers, hint = unknown, self.hint_for(unknown)
            elif rows.is_empty():
                message += "; there is no turn to judge" + ("" if check.where is None else " with this where")
        named = findings(self.report, numbers)
        if unknown:
            lacking = unknown_words(len(unknown), _null_columns(compiled, check, self.turns, unknown))
            message += f"; {lacking}"
            if hint is not None:  # what happened in these turns is beside the point
                reason = lacking[lacking.index("no known") :]
                named = [msgspec.structs.replace(t, says=reason, do=None, evidence=[]) for t in named]
        if check.warn_only and status == "failed":
            status = "warning"
        suffix = f" [{', '.join(f'{k} {_said(v)}' for k, v in group.items())}]" if group else ""
        return CheckVerdict(
            id=identifier,
            name=(check.name or check.expr) + suffix,
            kind="check",
            status=status,
            message=message,
            unknown=len(unknown),
            turns=named,
            turns_total=len(numbers),
            expr=check.expr,
            where=check.where,
            group=group,
            hint=hint,
            undecided=hint is not None,
        )


def _groups(turns: pl.DataFrame, columns: Sequence[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """The turns by the values of ``columns``, in the values' order, null last; one group without columns."""
    if not columns or turns.is_empty():
        yield {}, turns
        return
    for values in turns.select(columns).unique().sort(columns, nulls_last=True).iter_rows():
        same = pl.all_horizontal(
            [pl.col(c).eq_missing(pl.lit(v)) for c, v in zip(columns, values, strict=True)]
        )
        yield dict(zip(columns, values, strict=True)), turns.filter(same)


def _limit_is_left(compiled: CompiledCheck) -> bool:
    tree = compiled.tree
    return isinstance(tree, Compare) and not any(isinstance(n, Aggregate) for n, _ in walk(tree.left))


def _surely(compiled: CompiledCheck, result: CheckResult, unknown: int) -> bool:
    """Whether a check that holds would hold as well if every unknown turn were counted.

    That can be said of one count() beside a constant; of sums and means it can't.
    """
    sides = result.sides
    if sides is None or sides.left is None or sides.right is None or not isinstance(compiled.tree, Compare):
        return False
    counted = compiled.tree.right if _limit_is_left(compiled) else compiled.tree.left
    if not (isinstance(counted, Aggregate) and counted.name == "count" and len(result.aggregates) == 1):
        return False
    count, limit = (sides.right, sides.left) if _limit_is_left(compiled) else (sides.left, sides.right)
    operator = MIRRORED[sides.operator] if _limit_is_left(compiled) else sides.operator
    most = count + unknown
    match operator:
        case "<" | "<=":
            return most < limit or (operator == "<=" and most == limit)
        case ">" | ">=":
            return True
        case "!=":
            return not count <= limit <= most
        case _:
            return False


def _behind(compiled: CompiledCheck, result: CheckResult, rows: pl.DataFrame) -> list[int]:
    """The turns to look at when a check does not hold."""
    sides = result.sides
    wants_more = sides is not None and (sides.operator in (">", ">=")) != _limit_is_left(compiled)
    wants_less = sides is not None and (sides.operator in ("<", "<=")) != _limit_is_left(compiled)
    if wants_more or (not wants_less and sides is not None and sides.operator not in ("==", "!=")):
        lossy = rows.filter(pl.col("failed") | (pl.col("n_lost") > 0)).sort(
            "n_lost", descending=True, nulls_last=True, maintain_order=True
        )
        return sorted(lossy["turn"].head(_SUSPECTS))
    for aggregate in result.aggregates:
        if aggregate.turns:
            return list(aggregate.turns)
    return []


def _null_columns(
    compiled: CompiledCheck, check: Check, turns: pl.DataFrame, unknown: Sequence[int]
) -> list[str]:
    """Of the columns that the check reads, those that are null in some of these turns."""
    columns = set(compiled.columns)
    if check.where is not None:
        columns |= set(compile_filter(check.where).columns)
    rows = turns.filter(pl.col("turn").is_in(list(unknown)))
    return [name for name in sorted(columns) if rows[name].null_count()]


def _notes(report: Report, policy: Policy) -> Iterator[str]:
    strange = sum(source.drifted_lines + source.unknown_slot_lines for source in report.sources)
    if strange:
        yield (f"{plural(strange, 'line')} of the server's own not understood: ckptlog doctor LOG shows them")
    unjudged = sum(turn.outcome == "unknown" for turn in report.turns) + not_judged(report)
    if unjudged and "unknown" not in policy.fail_on:
        yield f"of {plural(unjudged, 'turn')} the log does not tell the outcome, and fail_on leaves that out"


def _not_asked(
    policy: Policy, checks: Sequence[CheckVerdict], baseline: Sequence[CheckVerdict]
) -> Iterator[str]:
    """What a reader of a green verdict would think was judged, and was not."""
    if not checks:
        yield "nothing was checked: fail_on is empty, and the policy has no check"
    wanted = policy.gate.baseline
    if wanted is not None and wanted.file is None and not baseline:
        yield "nothing was compared: [gate.baseline] names no file, and --baseline none either"


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _said(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "check"
