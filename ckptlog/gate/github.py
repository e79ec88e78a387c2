"""GitHub: workflow annotations, and the job summary in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ckptlog.gate.text import like_turns
from ckptlog.gate.verdict import CheckVerdict, GateVerdict, LogVerdict
from ckptlog.report.safe import quote, safe_text
from ckptlog.report.words import plural

#: GitHub shows ten errors and ten warnings of a step and drops the rest without a word
_SHOWN = 10
_NAMED = 8
_CELL = 300


def workflow_commands(verdict: GateVerdict) -> list[str]:
    """Workflow commands, one a line; what GitHub would drop is counted in the last of its kind."""
    lines: list[str] = []
    for level in ("error", "warning"):
        found = list(_commands(verdict, level))
        if len(found) > _SHOWN:
            rest = len(found) - (_SHOWN - 1)
            told = f"{plural(rest, f'more {level}')} in the job summary"
            found = [*found[: _SHOWN - 1], _command(level, told, title="ckptlog gate")]
        lines += found
    return lines


def summary(verdict: GateVerdict) -> str:
    """The job summary: a heading, and for each log a table of its checks."""
    lines = [f"## ckptlog gate: {'passed' if verdict.passed else 'failed'}", ""]
    for log in verdict.logs:
        lines += [f"### {_cell(log.path)}: {log.status}", "", _cell(log.message), ""]
        if log.checks:
            lines += ["| | check | found | turns |", "|---|---|---|---|"]
            lines += [_row(check) for check in log.checks if check.status != "passed"]
            lines += [_row(check) for check in log.checks if check.status == "passed"]
            lines.append("")
        for check in log.checks:
            if check.status != "passed":
                lines += _details(check)
        lines += [f"- {_cell(note)}" for note in log.notes]
        lines += [""] if log.notes else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _commands(verdict: GateVerdict, level: str) -> Iterator[str]:
    for log in verdict.logs:
        if log.status in ("error", "nothing") and level == "error":
            yield _command("error", log.message, title="ckptlog gate", file=log.path)
        for check in log.checks:
            if (check.status == "failed") != (level == "error") or check.status == "passed":
                continue
            yield from _of_check(log, check, level)


def _of_check(log: LogVerdict, check: CheckVerdict, level: str) -> Iterator[str]:
    """One annotation for each kind of turn: a hundred like turns are one thing to look at."""
    groups = list(like_turns(check))
    if not groups:
        yield _command(level, f"{check.message}", title=check.name, file=log.path)
    for group in groups:
        named = ", ".join(str(turn.turn) for turn in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        text = f"{check.message}\nturn {named}{more}: {group[0].says}"
        text += f"\nDo: {group[0].do}" if group[0].do else ""
        yield _command(level, text, title=check.name, file=log.path, line=group[0].line)


def _command(level: str, text: str, *, title: str, file: str | None = None, line: int | None = None) -> str:
    properties = {"file": None if file in (None, "-") else file, "line": line, "title": title}
    given = ",".join(
        f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None
    )
    lines = "%0A".join(_data(safe_text(part)) for part in text.split("\n"))
    return f"::{level} {given}::{lines}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(safe_text(text)).replace(":", "%3A").replace(",", "%2C")


def _row(check: CheckVerdict) -> str:
    mark = {"failed": "❌", "warning": "⚠️", "passed": "✅"}[check.status]
    turns = ", ".join(str(turn.turn) for turn in check.turns[:_NAMED])
    more = check.turns_total - min(len(check.turns), _NAMED)
    turns += f" and {more} more" if more > 0 else ""
    return f"| {mark} | {_cell(check.name)} | {_cell(check.message)} | {turns} |"


def _details(check: CheckVerdict) -> list[str]:
    lines = []
    for group in like_turns(check):
        named = ", ".join(f"{turn.turn} (line {turn.line})" for turn in group[:_NAMED])
        more = f" and {len(group) - _NAMED} more" if len(group) > _NAMED else ""
        lines.append(f"- **{_cell(check.name)}**: turn {named}{more}: {_cell(group[0].says)}")
        lines += [f"  - line {pointer.line}: {_cell(pointer.says)}" for pointer in group[0].evidence[:3]]
        lines += [f"  - do: {_cell(group[0].do)}"] if group[0].do else []
    lines += [f"- {_cell(check.hint)}"] if check.hint else []
    return [*lines, ""] if lines else []


def _cell(text: str) -> str:
    """Text from a log or a policy inside Markdown: shown, never interpreted."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>()#+!|~$@&" else c for c in quote(text, _CELL))
