"""The mouse: columns, the wheel, hovering, headings, tabs, flags."""

from __future__ import annotations

from textual import events
from textual.widget import Widget

from ckptlog.tui.app import TimelineApp
from tests.tui.conftest import EVICTED, LOGS, opened, until

_GUTTER = 6


def column_x(app: TimelineApp, index: int) -> int:
    """A cell inside a column of the map, counted from the map's border."""
    return 1 + _GUTTER + index * app.map.pitch.width + app.map.pitch.body // 2


async def test_a_click_on_a_column_selects_its_turn() -> None:
    async with opened(EVICTED) as (app, pilot):
        for index in (2, 0, 7):
            await pilot.click(app.map, offset=(column_x(app, index), 4))
            await pilot.pause()
            assert app.item is not None
            assert app.item.number == index + 1
        # beside the columns nothing happens
        await pilot.click(app.map, offset=(2, 4))
        await pilot.pause()
        assert app.item.number == 8


async def test_hovering_shows_a_columns_figures() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.hover(app.map, offset=(column_x(app, 3), 4))
        await pilot.pause()
        assert str(app.map.border_subtitle).startswith("turn 4: reused")
        await pilot.hover(app.turn_list, offset=(3, 3))
        await pilot.pause()
        assert str(app.map.border_subtitle).startswith("turn 7: !re-prefill")


def wheel(widget: Widget, kind: type[events.MouseEvent], ctrl: bool = False) -> events.MouseEvent:
    return kind(widget, 10, 3, 0, 0, 0, shift=False, meta=False, ctrl=ctrl)


async def test_the_wheel_goes_along_the_turns_and_zooms_with_ctrl() -> None:
    async with opened(EVICTED, (100, 32)) as (app, pilot):
        for _ in range(3):
            await pilot.press("z")
        await pilot.press("home")
        timeline = app.map
        timeline.scroll_to(x=0, animate=False, immediate=True)
        await pilot.pause()
        timeline.post_message(wheel(timeline, events.MouseScrollDown))
        await until(pilot, lambda: timeline.scroll_offset.x > 0, "scrolled to the right")
        timeline.post_message(wheel(timeline, events.MouseScrollUp))
        await until(pilot, lambda: timeline.scroll_offset.x == 0, "and back")
        before = timeline.pitch.width
        timeline.post_message(wheel(timeline, events.MouseScrollDown, ctrl=True))
        await until(pilot, lambda: timeline.pitch.width < before, "zoomed out")
        timeline.post_message(wheel(timeline, events.MouseScrollUp, ctrl=True))
        await until(pilot, lambda: timeline.pitch.width == before, "and in again")


async def test_a_click_on_a_turn_selects_it_and_a_second_one_opens_its_log() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.click(app.turn_list, offset=(4, 4))  # border, heading, turns 1, 2, 3
        await pilot.pause()
        assert app.item is not None
        assert app.item.number == 3
        await pilot.click(app.turn_list, offset=(4, 4), times=2)
        await until(pilot, lambda: app.focused is app.raw_log, "the log has the keys")
        assert app.raw_log.line_number == app.item.turn.lines[0]


async def test_a_click_on_a_heading_sorts() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.click(app.turn_list, offset=(11, 1))
        await pilot.pause()
        assert app.turn_list.order == "prompt"
        assert app.turn_list.items[0].turn.n_prompt == max(
            item.turn.n_prompt or 0 for item in app.turn_list.items
        )


async def test_a_click_on_a_tab_opens_it() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.click("#tab-bar", offset=(14, 0))
        await pilot.pause()
        assert app.tab == "evidence"


async def test_a_click_on_flags_copies_them() -> None:
    async with opened(EVICTED, (120, 40)) as (app, pilot):
        static = app.query_one("#finding").query_one("Static")
        lines = static.visual.render_strips(static.size.width, None, static.visual_style, _options(static))  # type: ignore[attr-defined]
        row = next(y for y, strip in enumerate(lines) if "--ctx-checkpoints" in strip.text)
        column = lines[row].text.index("--ctx-checkpoints") + 3
        await pilot.click(static, offset=(column, row))
        await until(pilot, lambda: app.clipboard.startswith("--ctx-checkpoints "), "copied")


def _options(static: Widget):  # type: ignore[no-untyped-def]
    from textual.visual import RenderOptions

    return RenderOptions(static._get_style, static.styles)


async def test_a_click_on_evidence_twice_opens_the_log_there() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("full_stop")
        await pilot.click("#evidence", offset=(12, 0))
        await pilot.pause()
        await pilot.click("#evidence", offset=(12, 0), times=2)
        await until(pilot, lambda: app.focused is app.raw_log, "the log has the keys")
        assert app.item is not None
        assert app.raw_log.line_number == app.item.turn.evidence[0].line


async def test_a_column_of_several_turns_selects_the_worst_of_them() -> None:
    async with opened(LOGS / "b11549" / "hybrid" / "reject.log.gz") as (app, pilot):
        await pilot.press("home")
        for _ in range(20):
            await pilot.press("Z")
        assert app.map.n_columns == 1
        await pilot.click(app.map, offset=(1 + _GUTTER, 4))
        await pilot.pause()
        assert app.item is not None
        assert app.item.turn.outcome == "arrival-rejection"
