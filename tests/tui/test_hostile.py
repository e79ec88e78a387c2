"""Text from a log is data: no markup, no control sequence, whatever its width; and ASCII where asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ckptlog.records import Report
from ckptlog.tui.glyphs import ASCII, UNICODE
from ckptlog.tui.wrap import wrapped
from tests.tui.conftest import EVICTED, LOGS, FixedApp, opened, screen_text, source_of, stored_report, until

ATTACKS = [
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "\x9b31mC1\x85next",
    "[bold red]markup[/bold red] [@click=app.quit]x[/] [/nothing]",
    "\u202eevil\u2066 \u200bhidden\ufeff",
    "日本語のテキスト 🙂🙂🏽 e\u0301\u0301\u0301 ",
    "x" * 300_000,
    "\x00\r\n\t end",
    "\ud83d lone",
]


def hostile(report: Report, attack: str) -> Report:
    """The report with the attack in every text that comes from a log or a file name."""
    for turn in report.turns:
        for evidence in turn.evidence:
            evidence.text += attack
        if turn.mismatch is not None:
            turn.mismatch.old = attack + (turn.mismatch.old or "")
            turn.mismatch.new = attack * 2
        turn.headline += attack
        if turn.explanation:
            turn.explanation += attack
        for fix in turn.fixes:
            fix.text += attack
            fix.flags.append(attack)
    for source in report.sources:
        source.path += attack.replace("/", "")
    for run in report.runs:
        run.model = run.arch = attack
    return report


@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
async def test_nothing_in_a_log_reaches_the_terminal_as_it_is(attack: str, ascii_only: bool) -> None:
    app = FixedApp(hostile(stored_report("evicted"), attack), [source_of(EVICTED)], ascii_only=ascii_only)
    async with app.run_test(size=(100, 32)) as pilot:
        await until(pilot, lambda: app.book.turns, "the report is there")
        for keys in ("", ".", ".", ".", ".", "w", "escape", "c", "C"):
            if keys:
                await pilot.press({".": "full_stop"}.get(keys, keys))
            await pilot.pause()
            text = screen_text(app)
            assert not {c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)}
            assert not {c for c in text if c in "\u202e\u2066\u200b\ufeff\ud83d"}
            if ascii_only:
                assert text.isascii(), sorted({c for c in text if not c.isascii()})
            for row in text.split("\n"):
                assert cell_len(row) <= 100
        assert app.is_running


async def test_markup_is_shown_as_it_is() -> None:
    report = stored_report("evicted")
    report.turns[6].explanation = "[bold]not bold[/bold] [@click=app.leave]x[/]"
    app = FixedApp(report, [source_of(EVICTED)])
    async with app.run_test(size=(100, 32)) as pilot:
        await until(pilot, lambda: app.book.turns, "the report is there")
        assert "[bold]not bold[/bold] [@click=app.leave]x[/]" in screen_text(app)


async def test_a_hostile_log_line_in_the_raw_log(tmp_path: Path) -> None:
    log = tmp_path / "[red]server[-red].log"
    lines = EVICTED.read_bytes().splitlines(keepends=True)
    lines.insert(
        300, b"\x1b[2J\xff\xfe broken \xe6\x97\xa5\xe6\x9c\xac [bold]x[/bold] " + b"y" * 100_000 + b"\n"
    )
    log.write_bytes(b"".join(lines))
    async with opened(log) as (app, pilot):
        assert "[red]server[-red].log" in screen_text(app)
        app._go_to_line(301)
        await until(pilot, lambda: "\\e[2J" in screen_text(app), "the line")
        text = screen_text(app)
        assert "[bold]x[/bold]" in text
        assert "日本" in text
        for _ in range(5):
            await pilot.press("right")
        # the width that can be scrolled is bounded whatever a line's length
        assert app.raw_log.virtual_size.width < 10_000


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (20, 8), (300, 90)])
async def test_ascii_draws_with_ascii_only(size: tuple[int, int]) -> None:
    async with opened(LOGS / "b11549" / "hybrid" / "reject.log.gz", size, ascii_only=True) as (app, pilot):
        for key in ("z", "full_stop", "full_stop", "full_stop", "full_stop", "question_mark", "escape", "f"):
            await pilot.press(key)
            await pilot.pause()
            text = screen_text(app)
            assert text.isascii(), sorted({c for c in text if not c.isascii()})


async def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(EVICTED) as (app, _):
        assert app.no_color
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                    if colour is not None and colour.triplet is not None:
                        assert len(set(colour.triplet)) == 1, (segment, "grey only")


def test_glyphs_of_the_ascii_set_are_ascii() -> None:
    for name in ASCII.__dataclass_fields__:
        value = getattr(ASCII, name)
        assert value is True or (isinstance(value, str) and value.isascii())
        assert name == "ascii" or len(getattr(UNICODE, name)) == 1


@given(text=st.text(max_size=300), width=st.integers(1, 60))
def test_wrapping_keeps_all_text_and_the_width(text: str, width: int) -> None:
    safe = UNICODE.text(text)
    lines = wrapped(safe, width)
    assert "".join(lines).replace(" ", "") == safe.replace(" ", "")
    assert all(cell_len(line) <= max(width, 2) for line in lines)
