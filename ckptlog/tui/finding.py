"""The finding of a turn in plain words: what happened, what it cost, why, what to do and what not."""

from __future__ import annotations

from itertools import islice

from textual.content import Content
from textual.style import Style

from ckptlog.records import FAILURES, Fix, TurnRecord
from ckptlog.report.digest import Numbered
from ckptlog.report.incidents import incident_notes
from ckptlog.report.loss import loss, n_deleted
from ckptlog.report.safe import safe_text
from ckptlog.report.text_findings import numbers
from ckptlog.report.words import duration, how_sure, listed, plural, request_words, title
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.widgets import Labelled

_BAD = "bold $text-error"
_GOOD = "bold $text-success"
#: of what happened outside of turns
_NOTES = 3
_KEY = "bold $text-accent"
#: a label and its spaces
_LABEL_CELLS = 8


def finding_lines(book: Book, item: Numbered, glyphs: Glyphs) -> list[Content | Labelled]:
    """Everything that the first tab says of a turn."""
    turn = item.turn
    failed = turn.failed or turn.outcome == "error"
    lines: list[Content | Labelled] = [_heading(book, item, failed)]
    why = turn.explanation or turn.headline
    if failed:
        # what to do comes first: on a small screen the reason takes all the room
        todo = fix_lines(turn.fixes, glyphs)
        lines += todo[:1]
        if why:
            lines.append(_labelled("Why", glyphs.text(why)))
        lines += todo[1:]
    else:
        if turn.headline:
            lines.append(Content(glyphs.text(turn.headline)))
        if turn.explanation and turn.explanation != turn.headline:
            lines.append(Content(glyphs.text(turn.explanation)))
        lines.append(_elsewhere(book))
    lines.append(Content(""))
    if turn.cause:
        lines.append(_labelled("Cause", turn.cause, (f"   (ckptlog explain {turn.cause})", "dim")))
    figures = numbers(turn)
    if figures:
        lines.append(_labelled("Tokens", figures + "."))
    if turn.trigger and turn.outcome in FAILURES:
        lines.append(_labelled("Request", request_words(turn.trigger)))
    if failed:
        lines += _alike(book, item)
        lines.append(_labelled("Sure?", how_sure([turn.confidence])))
    lines += [_labelled("" if n else "Not", glyphs.text(fix.text)) for n, fix in enumerate(turn.not_fixes)]
    lines += [_labelled("" if n else "Untold", glyphs.text(sentence)) for n, sentence in enumerate(turn.missing)]
    return lines


def _labelled(label: str, *parts: Content | tuple[str, str] | str, style: str = "dim") -> Labelled:
    return Labelled(Content.styled(f"{label:<{_LABEL_CELLS}}", style), Content.assemble(*parts))


def _heading(book: Book, item: Numbered, failed: bool) -> Content:
    turn = item.turn
    what = title(turn.outcome, turn.variant, 1) if turn.outcome in (*FAILURES, "error") else turn.outcome
    parts: list[Content | tuple[str, str] | str] = [
        (f"{'! ' if failed else ''}{what}".upper() if failed else what, _BAD if failed else _GOOD),
        f"   turn {item.number} of {len(book.turns)}",
    ]
    if len(book.lanes) > 1:
        parts.append(f", {book.lane_of(item).name}")
    cost = cost_words(turn)
    if cost:
        parts.append((f"   cost: {cost}", "bold" if failed else ""))
    return Content.assemble(*parts)


def cost_words(turn: TurnRecord) -> str:
    """What a turn cost, in its own figures; empty where nothing was lost."""
    if turn.outcome == "arrival-rejection":
        return "no answer at all"
    gone = n_deleted(turn)
    if gone:
        return f"{plural(gone, 'token')} deleted"
    if turn.outcome == "limit-stop":
        return "the rest of the answer"
    lost = loss(turn)
    if lost is None or not lost.tokens:
        return ""
    words = f"{'' if lost.exact else 'at least '}{plural(lost.tokens, 'token')} again"
    return f"{words}, {duration(lost.ms)}" if lost.ms else words


def fix_lines(fixes: list[Fix], glyphs: Glyphs) -> list[Labelled]:
    """The fixes, numbered, their flags to click on; the first one stands out."""
    lines = []
    for n, fix in enumerate(fixes):
        flags = glyphs.text(" ".join(fix.flags))
        parts: list[Content | tuple[str, str] | str] = []
        if len(fixes) > 1:
            parts.append(f"{n + 1}. ")
        if flags:
            click = Style.from_meta({"@click": f"app.copy_flags({n})"})
            parts.append(Content.styled(flags, "bold $text-success").stylize(click))
            parts.append("   ")
        text = glyphs.text(fix.text)
        if flags and text.startswith(flags):
            text = text[len(flags) :].lstrip(" :,")
        parts.append(text)
        lines.append(_labelled("" if n else "Do", *parts, style="dim" if n else _GOOD))
    return lines


def _alike(book: Book, item: Numbered) -> list[Labelled]:
    finding = book.finding_of(item)
    if finding is None or len(finding.turns) < 2:
        return []
    others = [other.number for other in finding.turns if other.number != item.number]
    text = f"{plural(len(others), 'more turn')} like this: {listed(others)}. All together: {finding.cost()}."
    return [_labelled("Same", text)]


def _elsewhere(book: Book) -> Content:
    """Where to look when nothing is wrong with this turn."""
    failed = [item.number for item in book.failed]
    outside = " ".join(safe_text(note) for note in islice(incident_notes(book.report), _NOTES))
    if not failed and outside:
        return Content(f"No turn failed. {outside}")
    if not failed:
        return Content.styled("Nothing went wrong in this log.", _GOOD)
    return Content.assemble(
        "Failed: ",
        "turn " if len(failed) == 1 else "turns ",
        listed(failed),
        " (",
        ("]", _KEY),
        " goes there).",
    )
