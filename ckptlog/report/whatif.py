"""A what-if for a person: how far to trust it, what would have been saved, what it costs, what stays bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

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
    "slot-restored-bare": "save the slot files again with a build whose files hold checkpoints (b11549)",
    "shift-cleared": "give the conversation more context, so that nothing is shifted",
    "slot-taken": "give each conversation its own slot",
    "prompt-cache-evicted": "give the RAM prompt cache more room (--cache-ram)",
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
    else:
        _verdict(page, answer.summary, _words(answer.flags))
    if answer.flags:
        page.blank()
        _turns(page, answer.turns)
    _stays(page, answer)
    _open(page, answer)
    return page.lines


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
    words = f"{found.right:,} of {plural(found.turns, 'turn')} reproduced under the log's own flags"
    if not found.doubtful:
        page.para(f"  {words}.", style="dim")
    else:
        page.para(f"  DOUBTFUL: {words}.", style="bold yellow")
        for parting in found.partings[:_PARTINGS]:
            then = "?" if parting.n_cached is None else f"{parting.n_cached:,}"
            page.para(
                f"slot {parting.slot}, task {parting.task}: {then} tokens reused in the log, "
                f"{parting.n_cached_model:,} in the model (where both agree, its checkpoints differ)",
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
        words = f"{summary.n_costly:,} costly re-prefills left of {summary.n_costly_now:,}"
        if summary.n_costly_open:
            words += f"; in {plural(summary.n_costly_open, 'more turn')} the log leaves it open"
        page.para(words, first="  ")
    page.para(f"  {_ram(summary)}", style="dim")


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
    if not best.helps:
        now = answer.summary
        words = (
            "No count and no spacing of checkpoints would have helped"
            if now.n_costly
            else "The flags are good: nothing worth mentioning would be saved by others"
        )
        page.para(f"  {words}.", style="bold")
        page.para(f"  {plural(len(settings), 'setting')} tried, up to 64 checkpoints a slot.", style="dim")
        return
    if best.saving_all is not None and answer.summary.n_costly_now:
        likely = "As far as the log shows, saves" if answer.summary.n_open else "Saves"
        _choice(page, f"{likely} every costly turn:", best.saving_all, settings)
    if best.cheapest is not None and best.cheapest != best.saving_all:
        _choice(page, "Within 1 % of the best for the least RAM:", best.cheapest, settings)
    page.blank()
    _picture(page, settings, answer.flags)


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
    page.para(f"    {saved}")


def _picture(page: Page, settings: Sequence[SettingSummary], chosen: dict[str, int | bool | str]) -> None:
    """Saved tokens against RAM: of settings that cost the same only the better, cheapest first."""
    rows: list[SettingSummary] = []
    for item in settings:
        if rows and item.flags != chosen and item.summary.n_saved <= rows[-1].summary.n_saved:
            continue
        rows.append(item)
    rows = rows[:_SETTINGS]
    most = max((abs(item.summary.n_saved) for item in rows), default=0) or 1
    flags_width = max(len(_words(item.flags)) for item in rows)
    width = max(0, min(_BAR, page.width - flags_width - 28))
    page.line(Text(f"  {'flags':<{flags_width}} {'RAM':>9} {'saved':>9}", "bold"))
    for item in rows:
        n = item.summary.n_saved
        bar = ("=" if n >= 0 else "x") * round(abs(n) / most * width)
        ram = "?" if item.summary.ram_mib is None else _mib(item.summary.ram_mib)
        mark = " <" if item.flags == chosen else ""
        line = f"  {_words(item.flags):<{flags_width}} {ram:>9} {n:>+9,} {bar}{mark}"
        page.line(Text(line, "bold" if mark else ""))


def _turns(page: Page, turns: Sequence[WhatIfTurn]) -> None:
    """The turns that change or stay costly; the rest is counted."""
    shown = [t for t in turns if t.n_saved or t.n_cached_whatif is None or t.costly]
    if not shown:
        page.para(f"  All {plural(len(turns), 'turn')} would have gone as they did.", style="dim")
        return
    runs = len({turn.run for turn in turns}) > 1
    head = f"{'run ' if runs else ''}{'slot':>4} {'task':>7} {'prompt':>8}  {'cached':>7} {'then':>13} {'saved':>8} {'time':>7}"
    page.line(Text(f"  {head}", "bold"))
    rest = []
    if len(shown) > _ROWS:
        # the turns that matter most, still in the log's order
        rest = sorted(shown, key=_weight, reverse=True)[_ROWS:]
        left_out = {id(turn) for turn in rest}
        shown = [turn for turn in shown if id(turn) not in left_out]
    for turn in shown:
        page.line(_row(turn, runs))
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


def _row(turn: WhatIfTurn, runs: bool) -> Text:
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
    run = f"{turn.run:>3} " if runs else ""
    line = f"  {run}{turn.slot:>4} {turn.task:>7} {turn.n_prompt:>8,}  {cached:>7} {then:>13} {saved:>8} {time:>7}"
    if turn.costly_whatif is not False:
        return Text(f"{line} ! {turn.cause or 'costly'}", "red")
    return Text(line, "green" if (turn.n_saved or 0) > 0 else "")


def _stays(page: Page, answer: WhatIf) -> None:
    """What no setting mends, by its cause, and what would."""
    causes = Counter(turn.cause or "unknown" for turn in answer.turns if turn.costly_whatif)
    if not causes:
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
    if not summary.n_open:
        return
    low, high = summary.n_saved_range or (0, 0)
    page.blank()
    page.para(
        f"Not certain in {plural(summary.n_open, 'turn')} (a range stands there; over all turns between "
        f"{low:+,} and {high:+,} tokens): where a user message begins is not printed and shows only where the "
        "server cut the prompt, or the log does not give the common prefix. A log with "
        "--checkpoint-min-step 0 and -lv 4 would settle it.",
        style="yellow",
    )
