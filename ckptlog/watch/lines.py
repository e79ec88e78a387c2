"""What a person sees while a log is followed: a line a turn, a few more for a failure, a status line."""

from __future__ import annotations

from rich.text import Text

from ckptlog.records import TurnRecord
from ckptlog.report.brief import do
from ckptlog.report.loss import loss
from ckptlog.report.page import Page
from ckptlog.report.safe import quote, safe_text
from ckptlog.report.text_findings import quoted, without_asides
from ckptlog.report.words import duration, label, percent, plural

_STYLES = {"failed": "bold red", "error": "red", "cancelled": "yellow", "unknown": "yellow"}
#: lines that a failure's sentence may take, and what to do about it
_SAYS_LINES = 2
_DO_LINES = 4

HEADING = "    time slot    task   prompt   cached  outcome             cost"


def turn_line(turn: TurnRecord, width: int = 80) -> Text:
    """One turn on one line: when it ended, slot, task, prompt, cached, outcome, cost."""
    outcome = label(turn) + (f", {turn.variant}" if turn.variant else "")
    style = "failed" if turn.failed else turn.outcome
    line = Text.assemble(
        f"{_clock(turn.t_end):>8}{_number(turn.slot):>5}{_number(turn.task):>8}"
        f"{_figure(turn.n_prompt):>9}{_figure(turn.n_cached):>9}  ",
        (f"{outcome:<19} ", _STYLES.get(style, "")),
    )
    # what does not fit goes as a whole: first the time, then the tokens
    parts = cost(turn).split(", ")
    while parts and line.cell_len + len(", ".join(parts)) > width:
        parts.pop()
    line.append(", ".join(parts))
    line.truncate(width, overflow="crop")
    line.rstrip()
    return line


def explanation(turn: TurnRecord, width: int = 80) -> list[Text]:
    """A failure, or an error, in two or three lines: what happened, the line that shows it, what to do."""
    page = Page(width)
    if turn.headline:
        page.para(safe_text(turn.headline), first="          ", limit=_SAYS_LINES)
    if turn.evidence:
        shown = turn.evidence[0]
        head = f"          line {shown.line}: "
        page.line(Text.assemble(head, (quoted(shown, max(20, width - len(head))), "dim")))
    if turn.fixes:
        page.para(safe_text(do(without_asides(turn.fixes[0]))), first="          do: ", limit=_DO_LINES, style="bold")
    return page.lines


def cost(turn: TurnRecord) -> str:
    """What a turn cost: tokens lost and their time, or what was processed and how long that took."""
    gone = loss(turn) if turn.outcome == "checkpoint-reprefill" else None
    if gone is not None and gone.tokens:
        lost = f"{gone} lost"
        return f"{lost}, {duration(gone.ms)}" if gone.ms else lost
    if turn.outcome in ("arrival-rejection", "error", "cancelled") or turn.n_processed is None:
        return ""
    spent = f"{turn.n_processed:,} new"
    return f"{spent}, {duration(turn.prompt_ms)}" if turn.prompt_ms else spent


class Totals:
    """What the turns so far come to."""

    def __init__(self) -> None:
        self.turns = self.failed = self.errors = self.n_lost = self._prompt = self._cached = 0

    def add(self, turn: TurnRecord) -> None:
        self.turns += 1
        self.failed += turn.failed
        self.errors += turn.outcome == "error"
        gone = loss(turn)
        self.n_lost += gone.tokens if gone is not None else 0
        refused = turn.outcome in ("arrival-rejection", "not-completion") or turn.child_of is not None
        if not refused and turn.n_prompt and turn.n_cached is not None:
            self._prompt += turn.n_prompt
            self._cached += turn.n_cached

    def words(self) -> str:
        """``14 turns, 2 failed, 6,890 tokens lost, 84 % of the prompts reused``"""
        parts = [plural(self.turns, "turn")]
        if self.failed or not self.errors:
            parts.append(f"{self.failed:,} failed")
        if self.errors:
            parts.append(f"{self.errors:,} with an error")
        if self.n_lost:
            parts.append(f"{plural(self.n_lost, 'token')} lost")
        if self._prompt:
            parts.append(f"{percent(self._cached / self._prompt)} of the prompts reused")
        return ", ".join(parts)


def status(name: str, totals: Totals, waiting: bool, width: int) -> str:
    """The live status line, cut to the terminal's width."""
    what = "waiting for" if waiting else "watching"
    return f"{what} {quote(name, max(12, width // 3), len(name) - 1)}: {totals.words()}"[: width - 1]


def _clock(seconds: float | None) -> str:
    """Time since the server's start: ``0:12:34``."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _figure(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
