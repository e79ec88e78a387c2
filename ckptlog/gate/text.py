"""The gate's verdict for a person, on a terminal or in a CI log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from ckptlog.gate.verdict import CheckStatus, CheckVerdict, GateVerdict, LogVerdict, TurnFinding
from ckptlog.report.page import Page
from ckptlog.report.safe import quote, safe_text
from ckptlog.report.words import plural

_MARKS: dict[CheckStatus, tuple[str, str]] = {
    "failed": ("x", "bold red"),
    "warning": ("!", "yellow"),
    "passed": ("+", "green"),
}
_WORDS = {"passed": "PASSED", "failed": "FAILED", "error": "ERROR", "nothing": "NOTHING TO JUDGE"}
#: of one check: groups of like turns, and turns named in a group
_GROUPS = 4
_NAMED = 6


def render_text(verdict: GateVerdict, width: int = 80) -> list[Text]:
    """Lines of at most ``width`` columns: first why, then each failed check with its turns."""
    page = Page(width)
    for log in verdict.logs:
        _log(page, log)
    if len(verdict.logs) > 1:
        page.blank()
        page.para(_whole(verdict), style="bold green" if verdict.passed else "bold red")
    return page.lines


def _whole(verdict: GateVerdict) -> str:
    counts = {word: sum(log.status == status for log in verdict.logs) for status, word in _WORDS.items()}
    told = [f"{count} {word.lower()}" for word, count in counts.items() if count]
    return (
        f"{'PASSED' if verdict.passed else 'FAILED'}  {plural(len(verdict.logs), 'log')}: {', '.join(told)}"
    )


def _log(page: Page, log: LogVerdict) -> None:
    page.blank()
    good = log.status == "passed"
    head = Text.assemble(
        (_WORDS[log.status], "bold green" if good else "bold red"), "  ", safe_text(log.path)
    )
    page.para(head)
    page.para(safe_text(log.message), first="  ")
    told: set[tuple[int, ...]] = set()
    for status in ("failed", "warning"):
        for check in log.checks:
            if check.status == status:
                _check(page, check, told)
    for check in log.checks:
        if check.status == "passed" and check.kind != "outcome":
            _line(page, check)
    clean = [check.name for check in log.checks if check.status == "passed" and check.kind == "outcome"]
    if clean:
        mark, style = _MARKS["passed"]
        page.para(Text(safe_text(", ".join(clean))), first=f"  {mark} ", style=style)
    for note in log.notes:
        page.para(safe_text(note), first="  note: ", rest=8, style="dim")


def _line(page: Page, check: CheckVerdict) -> None:
    mark, style = _MARKS[check.status]
    text = Text.assemble((mark, style), " ", quote(check.name, 200), ": ", safe_text(check.message))
    page.para(text, first="  ", rest=4)


def _check(page: Page, check: CheckVerdict, told: set[tuple[int, ...]]) -> None:
    """A check and its turns; what an earlier check has told of the same turns is not told again."""
    _line(page, check)
    groups = list(like_turns(check))
    for group in groups[:_GROUPS]:
        one = group[0]
        numbers = tuple(turn.turn for turn in group)
        if numbers in told and not check.undecided:
            page.para(f"{_named(group)}: see above", first="      ", rest=8)
            continue
        told |= set() if check.undecided else {numbers}
        page.para(f"{_named(group)}: {quote(one.says, 400)}", first="      ", rest=8)
        for pointer in one.evidence[:3]:
            page.para(
                f"line {pointer.line}: {quote(pointer.says, 200)}", first="        ", rest=10, style="dim"
            )
        if one.do:
            page.para(Text(quote(one.do, 300), "bold"), first="        Do: ", rest=12)
    rest = sum(len(group) for group in groups[_GROUPS:]) + check.turns_total - len(check.turns)
    if rest:
        page.para(f"and {plural(rest, 'more turn')}", first="      ")
    if check.hint:
        page.para(safe_text(check.hint), first="      ", rest=8)


def like_turns(check: CheckVerdict) -> Iterator[list[TurnFinding]]:
    """The turns with the same outcome, cause and remedy, in order of the first of each; if the check is
    undecided all of them: what they have in common is what is not known."""
    groups: dict[tuple[str | None, ...], list[TurnFinding]] = {}
    for turn in check.turns:
        key = () if check.undecided else (turn.outcome, turn.cause, turn.do)
        groups.setdefault(key, []).append(turn)
    yield from groups.values()


def _named(group: Sequence[TurnFinding]) -> str:
    """``turns 40 (line 2011), 47 (line 2390) and 3 more``."""
    named = ", ".join(f"{turn.turn:,} (line {turn.line})" for turn in group[:_NAMED])
    more = f" and {len(group) - _NAMED:,} more" if len(group) > _NAMED else ""
    return f"{'turn' if len(group) == 1 else 'turns'} {named}{more}"
