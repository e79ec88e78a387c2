"""A what-if for a person: how far to trust it, what would have been saved, what it costs, what stays bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from ckptlog.replay.loss import is_costly_loss
from ckptlog.replay.whatif import SettingSummary, WhatIf, WhatIfSummary, WhatIfTurn
from ckptlog.report.page import Page
from ckptlog.report.safe import safe_text, shorten
from ckptlog.report.words import duration, plural

_ROWS = 24
_SETTINGS = 14
_BAR = 24
_PARTINGS = 3

#: what to do where no flag helps, by the verdict's cause
_BEYOND_FLAGS = {
    "before-first-boundary": "stop rewriting the head of the prompt (a clock, an id, a file list in the system prompt)",
    "no-user-boundary": "send the conversation to the chat endpoint, so that the server knows where messages begin",
    "checkpoints-sparse": (
        "checkpoints are made only where messages begin and near a prompt's end; put what changes last, or in a "
        "message of its own"
    ),
    "cache-off": "let the requests ask for the cache (cache_prompt)",
    "server-rule": "upgrade the server: this build's own rule does it",
    "restore-failed": "look at the errors before a checkpoint failed to load; after a slot file, save that slot again",
    "slot-restored-bare": "save the slot files again with a build whose files hold checkpoints (b11549)",
    "shift-cleared": "give the conversation more context, so that nothing is shifted",
    "slot-taken": "give each conversation its own slot",
    "prompt-cache-evicted": "give the RAM prompt cache more room (--cache-ram)",
    "checkpoints-disabled": "these flags switch checkpoints off: allow some (--ctx-checkpoints)",
    "other-conversation": "nothing: another conversation had the slot",
}


def render_whatif(answer: WhatIf, width: int = 80) -> list[Text]:
    """Lines of at most ``width`` columns, readable without colour."""
    page = Page(width)
    for source in answer.sources:
        name = safe_text(shorten(source.path, width - 4, around=len(source.path) - 1))
        page.para(Text(name, "bold"))
    _trust(page, answer)
    page.blank()
    if answer.settings is not None:
        _sweep(page, answer)
    elif answer.reproduced.turns:
        _verdict(page, answer.summary, _words(answer.flags))
    else:
        _cant_tell(page)
    if _table_shown(answer):
        page.blank()
        _turns(page, answer.turns)
    _stays(page, answer)
    _open(page, answer)
    return page.lines


def _table_shown(answer: WhatIf) -> bool:
    return bool(answer.flags and answer.reproduced.turns)


def _cant_tell(page: Page) -> None:
    page.para(
        "Can't tell: the log does not show enough of any turn. `ckptlog doctor` says what is missing, and "
        "how to capture a log that has it.",
        first="  ",
        rest=2,
        style="bold",
    )


def _words(flags: dict[str, int | bool | str]) -> str:
    parts = []
    for name, value in flags.items():
        if value is True:
            parts.append(name)
        elif name == "build":
            parts.append(f"build {value}")
        else:
            parts.append(f"{name} {value}")
    return safe_text(" ".join(parts))


def _trust(page: Page, answer: WhatIf) -> None:
    found = answer.reproduced
    if not found.turns:
        page.para("No turn could be checked against the log.", first="  ", style="bold yellow")
    words = f"{found.right:,} of {plural(found.turns, 'turn')} reproduced under the log's own flags"
    if found.turns and not found.doubtful:
        page.para(f"  {words}.", style="dim")
    elif found.turns:
        page.para(f"  DOUBTFUL: {words}.", style="bold yellow")
        for parting in found.partings[:_PARTINGS]:
            then = "?" if parting.n_cached is None else f"{parting.n_cached:,}"
            if parting.n_cached_model is None:
                model = "the model can't tell: its sliding-window cache was full"
            else:
                model = f"{parting.n_cached_model:,} in the model (where both agree, its checkpoints differ)"
            page.para(
                f"slot {parting.slot}, task {parting.task}: {then} tokens reused in the log, {model}",
                first="    ",
                style="dim",
            )
    for note in answer.notes:
        page.para(note, first="  ", rest=2, style="yellow")
    for skipped in answer.skipped:
        page.para(f"run {skipped.run} is left out: {skipped.why}", first="  ", style="yellow")


def _verdict(page: Page, summary: WhatIfSummary, flags: str) -> None:
    """What these flags would have changed, and their price."""
    page.para(Text.assemble("With ", (flags, "bold cyan"), ":"), first="  ", rest=4)
    if summary.n_saved > 0:
        parts = [f"{summary.n_saved:,} tokens less to process"]
        if summary.ms_saved > 0:
            parts.append(duration(summary.ms_saved))
        page.para("  " + ", ".join(parts), style="bold green")
    elif summary.n_saved < 0:
        page.para(f"  {-summary.n_saved:,} tokens MORE to process", style="bold red")
    else:
        page.para("  nothing saved, nothing lost", style="bold")
    if summary.n_costly_now or summary.n_costly or summary.n_costly_open:
        words = f"{plural(summary.n_costly, 'costly re-prefill')} left, now {summary.n_costly_now:,}"
        if summary.n_costly_open:
            words += f"; in {plural(summary.n_costly_open, 'more turn')} the log leaves it open"
        page.para(words, first="  ")
    page.para(_ram(summary), first="  ", style="dim")


def _mib(value: float) -> str:
    return f"{value:,.0f} MiB" if value >= 10 else f"{value:.2f} MiB"


def _ram(summary: WhatIfSummary) -> str:
    if summary.ram_mib is None or summary.ram_mib_now is None:
        return "What the checkpoints weigh is not in the log (the `created` lines have it)."
    return (
        f"Host RAM for checkpoints, all slots at their fullest: {_mib(summary.ram_mib)}, "
        f"now {_mib(summary.ram_mib_now)}; no VRAM."
    )


def _sweep(page: Page, answer: WhatIf) -> None:
    """The recommendation and a picture of what RAM buys."""
    settings, best = answer.settings or [], answer.recommended
    assert best is not None
    if not answer.reproduced.turns:
        _cant_tell(page)
        return
    if not best.helps:
        _no_help(page, answer, len(settings))
        return
    if best.saving_all is not None and answer.summary.n_costly_now:
        likely = "As far as the log shows, saves" if answer.summary.n_open else "Saves"
        _choice(page, f"{likely} every costly turn:", best.saving_all, settings)
        if best.count_alone is not None and best.count_alone != best.saving_all:
            _choice(
                page,
                "So does a larger count alone (as `ckptlog diagnose` has it):",
                best.count_alone,
                settings,
            )
    if best.cheapest is not None and _is_cheaper(
        best.cheapest, best.saving_all if answer.summary.n_costly_now else None, settings
    ):
        _choice(page, "Within 1 % of the best for the least RAM:", best.cheapest, settings)
    _elsewhere(page, answer)
    page.blank()
    _picture(page, settings, answer.flags)


def _is_cheaper(
    flags: dict[str, int | bool | str],
    than: dict[str, int | bool | str] | None,
    settings: Sequence[SettingSummary],
) -> bool:
    """Whether a setting takes less RAM than the one named before (fewer checkpoints, without sizes)."""
    if than is None or flags == than:
        return than is None
    ram = {_words(item.flags): item.summary.ram_mib for item in settings}
    one, other = ram[_words(flags)], ram[_words(than)]
    if one is None or other is None:
        return int(flags["--ctx-checkpoints"]) < int(than["--ctx-checkpoints"])
    return one < other


def _no_help(page: Page, answer: WhatIf, n_settings: int) -> None:
    """No setting is better than the log's own: say so, and of what that is no word of praise."""
    if answer.summary.n_costly_now:
        words = "No count and no spacing of checkpoints would have helped."
    else:
        words = "Checkpoint flags would change nothing: no turn lost much for want of a checkpoint."
    if answer.summary.n_open:
        n_open, most = answer.summary.n_open, (answer.summary.n_saved_range or (0, 0))[1]
        if is_costly_loss(most, None):
            words = (
                f"Can't tell: of {plural(n_open, 'turn')} this log shows too little, and up to "
                f"{plural(most, 'token')} hang on it. In the others checkpoint flags would change nothing."
            )
        else:
            words = f"As far as the log shows: {words[0].lower()}{words[1:]}"
    page.para(words, first="  ", rest=2, style="bold")
    _elsewhere(page, answer)
    page.para(f"  {plural(n_settings, 'setting')} tried, up to 64 checkpoints a slot.", style="dim")


def _elsewhere(page: Page, answer: WhatIf) -> None:
    """Failures that have nothing to do with checkpoints."""
    if not answer.elsewhere:
        return
    kinds = ", ".join(f"{count:,} {outcome}" for outcome, count in answer.elsewhere.items())
    page.para(
        f"What went wrong here has nothing to do with checkpoints ({kinds}): see `ckptlog diagnose`."
        if not answer.summary.n_costly_now
        else f"Other things went wrong as well ({kinds}), which no checkpoint mends: see `ckptlog diagnose`.",
        first="  ",
        rest=2,
    )


def _choice(
    page: Page, title: str, flags: dict[str, int | bool | str], settings: Sequence[SettingSummary]
) -> None:
    found = next(item.summary for item in settings if item.flags == flags)
    page.para(Text.assemble(f"  {title}  ", (_words(flags), "bold cyan")), rest=4)
    parts = [f"{found.n_saved:,} tokens"]
    if found.ms_saved > 0:
        parts.append(duration(found.ms_saved))
    saved = "saves " + ", ".join(parts)
    if found.ram_mib is not None:
        saved += f" for {_mib(found.ram_mib)} of host RAM (now {_mib(found.ram_mib_now or 0)})"
    page.para(saved, first="    ")


def _picture(page: Page, settings: Sequence[SettingSummary], chosen: dict[str, int | bool | str]) -> None:
    """Saved tokens against RAM: of settings that cost the same only the better, cheapest first."""
    rows: list[SettingSummary] = []
    for item in settings:
        if rows and item.flags != chosen and item.summary.n_saved <= rows[-1].summary.n_saved:
            continue
        rows.append(item)
    if len(rows) > _SETTINGS:
        kept = rows[:_SETTINGS]
        rows = kept if any(item.flags == chosen for item in kept) else [*kept[:-1], *_chosen(rows, chosen)]
    most = max((abs(item.summary.n_saved) for item in rows), default=0) or 1
    flags_width = max(len(_words(item.flags)) for item in rows)
    width = max(0, min(_BAR, page.width - flags_width - 28))
    page.line(Text(f"  {'flags':<{flags_width}} {'RAM':>9} {'saved':>9}", "bold"))
    for item in rows:
        n = item.summary.n_saved
        bar = ("=" if n >= 0 else "x") * round(abs(n) / most * width)
        ram = "?" if item.summary.ram_mib is None else _mib(item.summary.ram_mib)
        mark = " <" if item.flags == chosen else " ?" if item.summary.n_open else ""
        line = f"  {_words(item.flags):<{flags_width}} {ram:>9} {n:>+9,} {bar}{mark}"
        page.line(Text(line, "bold" if item.flags == chosen else "dim" if mark else ""))
    if any(item.flags == chosen for item in rows):
        page.para("< the turns below are under this one", first="  ", style="dim")
    if any(item.summary.n_open and item.flags != chosen for item in rows):
        page.para(
            "? perhaps less: messages may begin where this log does not show it, and their checkpoints take room",
            first="  ",
            rest=4,
            style="dim",
        )


def _chosen(rows: Sequence[SettingSummary], chosen: dict[str, int | bool | str]) -> list[SettingSummary]:
    return [item for item in rows if item.flags == chosen]


def _turns(page: Page, turns: Sequence[WhatIfTurn]) -> None:
    """The turns that change or stay costly; the rest is counted."""
    shown = [t for t in turns if t.n_saved or t.n_cached_whatif is None or t.costly]
    if not shown:
        page.para(f"  All {plural(len(turns), 'turn')} would have gone as they did.", style="dim")
        return
    runs = len({turn.run for turn in turns}) > 1
    rest = []
    if len(shown) > _ROWS:
        # the turns that matter most, still in the log's order
        rest = sorted(shown, key=_weight, reverse=True)[_ROWS:]
        left_out = {id(turn) for turn in rest}
        shown = [turn for turn in shown if id(turn) not in left_out]
    cells = [_cells(turn, runs) for turn in shown]
    head = [*(["run"] if runs else []), *_HEAD]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    for name in ("time", "prompt"):  # on a narrow page these can go
        if sum(widths) + 2 * len(widths) > page.width:
            at = head.index(name)
            del head[at], widths[at]
            for row in cells:
                del row[at]
    page.line(Text("  " + _aligned(head, widths), "bold"))
    for turn, row in zip(shown, cells, strict=True):
        _row(page, turn, _aligned(row, widths))
    if rest:
        saved = sum(turn.n_saved or 0 for turn in rest)
        page.para(f"  ... {len(rest):,} more that change less: {saved:+,} tokens", style="dim")
    left = len(turns) - len(shown) - len(rest)
    if left:
        page.para(f"  {plural(left, 'turn')} the same", style="dim")


def _weight(turn: WhatIfTurn) -> tuple[bool, int]:
    """How much a turn changes, at most."""
    ends = turn.n_cached_whatif_range or (turn.n_cached_whatif or 0,)
    return turn.costly_whatif is True, max(abs(end - (turn.n_cached or 0)) for end in ends)


_HEAD = ("slot", "task", "prompt", "cached", "then", "saved", "time")


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _cells(turn: WhatIfTurn, runs: bool) -> list[str]:
    cached = "?" if turn.n_cached is None else f"{turn.n_cached:,}"
    if turn.n_cached_whatif is not None:
        then = f"{turn.n_cached_whatif:,}"
    else:
        low, high = turn.n_cached_whatif_range or (0, 0)
        then = f"{low:,}..{high:,}"
    saved = "?" if turn.n_saved is None else f"{turn.n_saved:+,}"
    time = "" if turn.ms_saved is None else duration(turn.ms_saved)
    if turn.ms_saved is not None and turn.ms_saved < 0:
        time = "-" + duration(-turn.ms_saved)
    place = [f"{turn.slot}", f"{turn.task}", f"{turn.n_prompt:,}"]
    return [*([f"{turn.run}"] if runs else []), *place, cached, then, saved, time]


def _row(page: Page, turn: WhatIfTurn, cells: str) -> None:
    """A turn; why it is costly still stands behind it, or below where the page is narrow."""
    if turn.costly_whatif is False:
        page.line(Text(f"  {cells}", "green" if (turn.n_saved or 0) > 0 else ""))
        return
    why = f"! {safe_text(turn.cause or 'costly')}"
    if len(cells) + len(why) + 3 <= page.width:
        page.line(Text(f"  {cells} {why}", "red"))
    else:
        page.line(Text(f"  {cells}", "red"))
        page.para(why, first="      ", style="red")


def _stays(page: Page, answer: WhatIf) -> None:
    """What no setting mends, by its cause, and what would."""
    causes = Counter(
        turn.cause or ("unknown" if turn.costly else "costly only under these flags")
        for turn in answer.turns
        if turn.costly_whatif
    )
    if not causes or not answer.reproduced.turns:
        return
    page.blank()
    page.para(
        "Stays bad with these flags:" if answer.flags else "Stays bad whatever the flags:", style="bold"
    )
    for cause, count in causes.most_common():
        advice = _BEYOND_FLAGS.get(cause)
        words = f"{plural(count, 'turn')}: {safe_text(cause)}"
        page.para(f"{words}; {advice}" if advice else words, first="  ", rest=4)


def _open(page: Page, answer: WhatIf) -> None:
    summary = answer.summary
    if not summary.n_open or not answer.reproduced.turns:
        return
    shown = "a range stands there; over" if _table_shown(answer) else "over"
    low, high = summary.n_saved_range or (0, 0)
    page.blank()
    page.para(
        f"Not certain in {plural(summary.n_open, 'turn')} ({shown} all turns between "
        f"{low:+,} and {high:+,} tokens): where a user message begins is not printed and shows only where the "
        "server cut the prompt, or the log does not give the common prefix. A log with "
        "--checkpoint-min-step 0 and -lv 4 would settle it.",
        style="yellow",
    )
