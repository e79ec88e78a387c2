"""The lines around the panes: what log this is, how far it is read, what a column shows; the help."""

from __future__ import annotations

from textual.content import Content

from ckptlog.report.loss import loss
from ckptlog.report.words import build_words, duration, label, percent, plural
from ckptlog.tui.book import Book
from ckptlog.tui.columns import Column
from ckptlog.tui.glyphs import NAMES, Glyphs, sign
from ckptlog.tui.keys import KEYS, PANE_KEYS, shown
from ckptlog.tui.loading import Progress
from ckptlog.tui.widgets import Labelled


def top_line(book: Book, paths: list[str], glyphs: Glyphs) -> Content:
    """The log, its server, how many turns failed."""
    report = book.report
    names = [glyphs.text(book.source_name(n)) for n in range(len(report.sources))]
    name = names[0] if len(names) == 1 else f"{len(names) or len(paths)} logs" if names else "reading"
    summary = report.summary
    failed = len(book.failed)
    parts: list[Content | tuple[str, str] | str] = [(name, "bold"), f"  {plural(summary.turns, 'turn')}, "]
    parts.append((f"{failed:,} failed", "bold $text-error") if failed else ("none failed", "$text-success"))
    if summary.reuse is not None:
        parts.append(f", {percent(summary.reuse)} from cache")
    if failed and book.digest.lost.ms:
        parts.append(f", {duration(book.digest.lost.ms)} lost")
    if report.runs:
        run = report.runs[-1]
        memory = "" if run.memory == "unknown" else f", {run.memory} memory"
        parts.append((f"   {build_words(run) or 'build unknown'}{memory}", "$text-muted"))
        if len(report.runs) > 1:
            parts.append((f", {plural(len(report.runs), 'server start')}", "$text-muted"))
    return Content.assemble(*parts)


def progress_words(progress: Progress) -> str:
    """How far the reading is, for the status line."""
    taken = _bytes(progress.taken)
    if progress.phase == "reading":
        if not progress.total:
            return f"reading, {taken} so far (esc stops)"
        share = min(1.0, progress.taken / progress.total)
        left = progress.left
        estimate = f", about {duration(max(left, 1.0) * 1000)} left" if left is not None else ""
        return f"reading: {share:.0%} of {_bytes(progress.total)}{estimate} (esc stops)"
    if progress.phase == "following":
        return f"following, {taken} so far"
    if progress.phase == "stopped":
        whole = f" of {_bytes(progress.total)}" if progress.total else ""
        return f"stopped: only {taken}{whole} were read"
    return ""


def _bytes(n: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:,.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1000
    return ""


def column_words(column: Column) -> str:
    """A column's figures, for the map's lower edge."""
    item = column.shown
    turn = item.turn
    many = len(column.turns)
    head = f"turn {item.number}"
    if many > 1:
        head = f"turns {column.turns[0].number}-{column.turns[-1].number}, worst {item.number}"
    parts = [f"{head}: {sign(turn).strip()}{label(turn)}"]
    lost = loss(turn)
    if lost is not None and lost.tokens:
        parts.append(f"{lost} lost" + (f" ({duration(lost.ms)})" if lost.ms else ""))
    if turn.n_cached is not None and turn.outcome != "arrival-rejection":
        parts.append(f"{turn.n_cached:,} cached")
    if column.then:
        parts.append(f"then {' to '.join(f'{n:,}' for n in column.then)}")
    if turn.n_prompt is not None:
        parts.append(f"prompt {turn.n_prompt:,}")
    if turn.n_generated:
        parts.append(f"answer {turn.n_generated:,}")
    return ", ".join(parts)


def help_lines(glyphs: Glyphs) -> list[Content | Labelled]:
    """All keys by group, and what the map's shapes mean."""
    lines: list[Content | Labelled] = []
    groups = list(dict.fromkeys(key.group for key in KEYS))
    for group in groups:
        lines.append(Content.styled(group, "bold"))
        rows = [(shown(key.keys), key.about) for key in KEYS if key.group == group]
        rows += [(keys, about) for keys, about, of in PANE_KEYS if of == group]
        lines += [_entry(f"{keys:<16}", about, "bold $text-accent") for keys, about in rows]
        lines.append(Content(""))
    lines.append(Content.styled("The map", "bold"))
    lines.append(
        Content("  A column is a turn, from token 0 at the bottom up; the context's end is the dotted line.")
    )
    for name, words in NAMES.items():
        lines.append(_entry(f"{getattr(glyphs, name):<4}", _MEANS.get(name, words)))
    lines.append(_entry(f"{glyphs.life * 3:<4}", "a checkpoint's life, from turn to turn"))
    lines.append(_entry(f"{glyphs.ghost * 3:<4}", "it is gone, and the selected turn needed it"))
    return lines


def _entry(name: str, about: str, style: str = "bold") -> Labelled:
    return Labelled(Content.assemble("  ", (name, style)), Content(about))


_MEANS = {
    "reused": "taken from the cache",
    "lost": "processed again although the server had held it",
    "new": "new prompt tokens",
    "generated": "the answer",
    "refused": "a prompt that was refused: it rises over the context's line",
    "unknown": "the log does not tell what was reused",
    "hole": "deleted by a context shift",
    "cut": "the answer ended here because the context was full",
    "live": "a checkpoint that is there",
    "created": "a checkpoint made in this turn",
    "restored": "a checkpoint that this turn resumed from",
    "evicted": "a checkpoint dropped because the list was full",
    "thinned": "a checkpoint dropped because another was close",
    "superseded": "a checkpoint replaced by one at the same place",
    "invalidated": "a checkpoint dropped because it lay beyond where the prompts part",
    "cleared": "a checkpoint dropped with all the slot held",
    "divergence": "where the new prompt parts from what the slot held",
    "whatif": "up to here it would have been cached with the flags chosen in what-if",
}
