"""Every key, on real logs, by the keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from ckptlog.analysis import analyze
from ckptlog.query import compile_filter
from ckptlog.tui.app import TimelineApp
from ckptlog.tui.commands import TimelineCommands
from ckptlog.tui.keys import KEYS
from ckptlog.tui.panes import TABS
from ckptlog.tui.widgets import Sheet
from tests.tui.conftest import (
    EVICTED,
    FOUR_SLOTS,
    HEALTHY,
    LOGS,
    REJECTED,
    SHIFTED,
    messages,
    opened,
    screen_text,
    until,
)


def number(app: TimelineApp) -> int:
    assert app.item is not None
    return app.item.number


async def typed(pilot: Pilot[Any], text: str, end: str = "enter") -> None:
    pilot.app.query_one(Input).value = text
    await pilot.pause()
    await pilot.press(end)
    await pilot.pause()


async def test_it_opens_on_the_worst_finding_and_tells_what_to_do() -> None:
    async with opened(EVICTED, (80, 24)) as (app, _):
        assert number(app) == 7
        text = screen_text(app)
        assert "A PROMPT WAS PROCESSED AGAIN" in text
        assert "--ctx-checkpoints" in text
        assert "1 failed" in text


async def test_moving_in_the_list() -> None:
    async with opened(EVICTED) as (app, pilot):
        for key, wanted in [
            ("up", 6), ("k", 5), ("down", 6), ("j", 7), ("home", 1), ("end", 8), ("pageup", 1), ("G", 8),
        ]:  # fmt: skip
            await pilot.press(key)
            assert number(app) == wanted, key


async def test_moving_on_the_map() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("tab")
        assert app.focused is app.map
        for key, wanted in [
            ("left", 6), ("h", 5), ("right", 6), ("l", 7), ("home", 1), ("left", 1), ("end", 8), ("right", 8),
        ]:  # fmt: skip
            await pilot.press(key)
            await pilot.pause()
            assert number(app) == wanted, key
        await pilot.press("pageup")
        await pilot.pause()
        assert number(app) < 8
        await pilot.press("shift+tab")
        assert app.focused is app.turn_list


async def test_the_map_changes_the_slot_with_up_and_down() -> None:
    async with opened(FOUR_SLOTS) as (app, pilot):
        await pilot.press("tab")
        slots = []
        for _ in range(4):
            assert app.item is not None
            slots.append(app.item.turn.slot)
            await pilot.press("down")
            await pilot.pause()
        assert sorted(slots, key=str) == [0, 1, 2, 3]
        await pilot.press("up")
        await pilot.pause()
        assert app.item is not None
        assert app.item.turn.slot == slots[3]


async def test_next_and_previous_failed_turn() -> None:
    failed = [n for n, turn in enumerate(analyze(str(REJECTED)).report.turns, 1) if turn.failed]
    assert len(failed) >= 2
    async with opened(REJECTED) as (app, pilot):
        await pilot.press("home")
        visited = []
        for _ in range(len(failed) + 1):
            await pilot.press("right_square_bracket")
            visited.append(number(app))
        assert visited == [*failed, failed[0]]
        await pilot.press("left_square_bracket")
        assert number(app) == failed[-1]


async def test_a_healthy_log_says_so() -> None:
    async with opened(HEALTHY) as (app, pilot):
        await pilot.press("right_square_bracket")
        text = screen_text(app)
        assert "none failed" in text
        assert "Nothing went wrong in this log." in text


@pytest.mark.parametrize(
    ("key", "path", "outcome"),
    [
        ("1", REJECTED, "arrival-rejection"),
        ("2", LOGS / "b11549" / "plain" / "lv4.log.gz", "limit-stop"),
        ("3", SHIFTED, "context-shift"),
        ("4", EVICTED, "checkpoint-reprefill"),
    ],
)
async def test_outcome_filters(key: str, path: Path, outcome: str) -> None:
    async with opened(path) as (app, pilot):
        before = len(app.turn_list.items)
        await pilot.press(key)
        shown = {item.turn.outcome for item in app.turn_list.items}
        assert shown == {outcome}
        assert len(app.turn_list.items) < before
        assert f"only {outcome}" in screen_text(app)
        await pilot.press("0")
        assert len(app.turn_list.items) == before
        await pilot.press(key, key)
        assert len(app.turn_list.items) == before


async def test_filter_errors_are_shown_as_you_type_and_the_filter_is_the_languages_own() -> None:
    expression = "failed and n_lost > 1k"
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("f")
        field = app.query_one(Input)
        field.value = "n_losst > 3"
        await pilot.pause()
        await pilot.pause()
        assert "did you mean n_lost" in screen_text(app)
        field.value = expression
        await pilot.pause()
        await pilot.pause()
        assert "1 of 8 turns" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        frame = analyze(str(EVICTED)).turns.filter(compile_filter(expression).expr)
        assert [item.number for item in app.turn_list.items] == frame["turn"].to_list()
        assert app.focused is app.turn_list
        await pilot.press("0")
        assert len(app.turn_list.items) == 8


async def test_a_wrong_filter_is_not_taken_and_escape_leaves_it() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("f")
        await typed(pilot, "n_lost >")
        assert app.prompt.is_open
        await pilot.press("escape")
        await pilot.pause()
        assert not app.prompt.is_open
        assert len(app.turn_list.items) == 8
        await pilot.press("q")


async def test_slots_one_by_one() -> None:
    async with opened(FOUR_SLOTS) as (app, pilot):
        everything = len(app.turn_list.items)
        counts = []
        for slot in range(4):
            await pilot.press("s")
            assert {item.turn.slot for item in app.turn_list.items} == {slot}
            counts.append(len(app.turn_list.items))
        assert sum(counts) == everything
        await pilot.press("s")
        assert len(app.turn_list.items) == everything
        await pilot.press("S")
        assert {item.turn.slot for item in app.turn_list.items} == {3}


async def test_sorting() -> None:
    async with opened(EVICTED) as (app, pilot):
        orders = set()
        for _ in range(6):
            await pilot.press("O")
            await pilot.pause()
            orders.add(app.turn_list.order)
        assert {"prompt", "outcome"} <= orders
        app.turn_list.sort_by("prompt")
        await pilot.pause()
        prompts = [item.turn.n_prompt or 0 for item in app.turn_list.items]
        assert prompts == sorted(prompts, reverse=True)
        app.turn_list.sort_by("prompt")
        await pilot.pause()
        assert [item.turn.n_prompt or 0 for item in app.turn_list.items] == sorted(prompts)
        app.turn_list.sort_by("outcome")
        await pilot.pause()
        assert app.turn_list.items[0].turn.failed


async def test_tabs() -> None:
    async with opened(EVICTED) as (app, pilot):
        seen = [app.tab]
        for _ in TABS:
            await pilot.press("full_stop")
            seen.append(app.tab)
        assert seen == [*TABS, TABS[0]]
        await pilot.press("comma")
        assert app.tab == TABS[-1]


async def test_enter_opens_the_log_at_the_turn_and_escape_comes_back() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert app.focused is app.raw_log
        assert app.item is not None
        assert app.raw_log.line_number == app.item.turn.lines[0]
        await pilot.press("escape")
        assert app.focused is app.turn_list


async def test_enter_on_evidence_opens_the_log_at_the_quoted_line() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("full_stop", "tab", "tab")
        assert app.focused is not None
        assert app.focused.id == "evidence"
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert app.item is not None
        evidence = app.item.turn.evidence[0]
        assert app.tab == "log"
        assert app.raw_log.line_number == evidence.line
        assert evidence.text.split("|")[-1].strip()[:30] in screen_text(app)


async def test_enter_on_a_checkpoint_opens_the_log_where_it_died() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("comma", "comma", "tab", "tab")
        assert app.focused is not None
        assert app.focused.id == "checkpoints"
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert app.item is not None
        lane = app.book.lane_of(app.item)
        assert app.raw_log.line_number == lane.blamed(app.item.turn)[0].record.fate_line


async def test_search_forwards_backwards_and_round_the_end() -> None:
    wanted = [
        n
        for n, line in enumerate(EVICTED.read_text(errors="replace").splitlines(), 1)
        if "erasing old" in line
    ]
    assert len(wanted) > 3
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("home", "slash")
        await typed(pilot, "ERASING OLD".lower())
        log = app.raw_log
        await until(pilot, lambda: log.line_number == wanted[0], "first match")
        await pilot.press("n")
        await until(pilot, lambda: log.line_number == wanted[1], "next match")
        await pilot.press("N")
        await until(pilot, lambda: log.line_number == wanted[0], "match before")
        await pilot.press("N")
        await until(pilot, lambda: log.line_number == wanted[-1], "round the end")
        assert "erasing old" in screen_text(app)


async def test_a_search_that_finds_nothing_says_so() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("slash")
        await typed(pilot, "[no such (thing")
        await until(pilot, lambda: "no line matches" in messages(app), "the message")


async def test_only_the_lines_of_the_task_or_slot() -> None:
    async with opened(FOUR_SLOTS) as (app, pilot):
        log = app.raw_log
        await pilot.press("o")
        assert log.only == "slot"
        await until(pilot, lambda: log.n_rows > 3 and log._filter is not None and log._filter.done)
        assert app.item is not None
        slot, task = app.item.turn.slot, app.item.turn.task
        lines = [log._line(log._number(index)) for index in range(log.n_rows)]
        assert all(f"id  {slot} |" in line for line in lines)
        await pilot.press("o")
        assert log.only == "task"
        await until(pilot, lambda: log.n_rows > 1 and log._filter is not None and log._filter.done)
        assert all(str(task) in log._line(log._number(index)) for index in range(log.n_rows))
        await pilot.press("o")
        assert log.only == "all"
        assert log.n_rows == log.total_lines


@pytest.mark.parametrize(("text", "turn"), [("#3", 3), ("turn 4", 4)])
async def test_go_to_a_turn(text: str, turn: int) -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("g")
        await typed(pilot, text)
        assert number(app) == turn


async def test_go_to_a_line_or_task() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("g")
        await typed(pilot, "120")
        await pilot.pause()
        assert app.raw_log.line_number == 120
        assert app.focused is app.raw_log
        await pilot.press("g")
        await typed(pilot, "99999999")
        await pilot.pause()
        assert app.raw_log.line_number == app.raw_log.total_lines
        task = app.book.turns[2].turn.task
        await pilot.press("g")
        await typed(pilot, f"t{task}")
        assert number(app) == 3
        for wrong in ("rubbish", "#999", "t999999", ""):
            await pilot.press("g")
            await typed(pilot, wrong)
            assert number(app) == 3


async def test_zoom_and_scale() -> None:
    async with opened(EVICTED) as (app, pilot):
        width = app.map.pitch.width
        await pilot.press("z")
        assert app.map.pitch.width > width
        await pilot.press("Z", "Z")
        assert app.map.pitch.width < width
        for _ in range(25):
            await pilot.press("Z")
        assert app.map.n_columns == 1
        assert app.map.column(0).shown.turn.failed
        scales = {app.map.scale_kind}
        for _ in range(2):
            await pilot.press("y")
            scales.add(app.map.scale_kind)
        assert scales == {"context", "used", "log"}


async def test_copying() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("c")
        assert app.clipboard.startswith("# ckptlog report")
        assert "--ctx-checkpoints" in app.clipboard
        await pilot.press("C")
        assert app.clipboard.startswith("--ctx-checkpoints ")
        assert app.item is not None
        assert app.clipboard == " ".join(app.item.turn.fixes[0].flags)


@pytest.mark.parametrize("ending", ["md", "json", "txt", "svg"])
async def test_export(ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"out.{ending}"
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("4", "e")
        await typed(pilot, str(target))
        assert target.exists()
        content = target.read_text()
        if ending == "json":
            assert [turn["outcome"] for turn in json.loads(content)["turns"]] == ["checkpoint-reprefill"]
        elif ending == "svg":
            assert content.startswith("<svg")
        else:
            assert "checkpoint-evicted" in content
        # an existing file stays as it is
        target.write_text("mine")
        await pilot.press("e")
        await typed(pilot, str(target))
        assert target.read_text() == "mine"
        await until(pilot, lambda: "is there already" in messages(app), "the message")


async def test_export_to_nowhere(tmp_path: Path) -> None:
    async with opened(EVICTED) as (app, pilot):
        for wrong, says in [
            (str(tmp_path / "a.pdf"), "must end in"),
            (str(tmp_path / "no" / "a.md"), "can't write"),
        ]:
            await pilot.press("e")
            await typed(pilot, wrong)
            await until(pilot, lambda says=says: says in messages(app), says)  # type: ignore[misc]


async def test_report_and_help() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("w")
        await pilot.pause()
        assert isinstance(app.screen, Sheet)
        assert "A PROMPT WAS PROCESSED AGAIN" in screen_text(app)
        await pilot.press("j", "k", "G", "escape")
        await pilot.pause()
        assert not isinstance(app.screen, Sheet)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "next failed turn" in screen_text(app)
        await pilot.press("q")
        await pilot.pause()
        assert not isinstance(app.screen, Sheet)


async def test_maximizing_a_pane() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("tab", "m")
        await pilot.pause()
        assert app.screen.maximized is app.map
        await pilot.press("m")
        await pilot.pause()
        assert app.screen.maximized is None


async def test_dark_and_light() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("d")
        assert not app.current_theme.dark
        await pilot.press("d")
        assert app.current_theme.dark


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+q", 0), ("ctrl+c", 130)])
async def test_quitting(key: str, code: int) -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert (app.return_code or 0) == code


async def test_the_command_palette_has_every_key() -> None:
    async with opened(EVICTED) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Search for commands" in screen_text(app), "the palette")
        await pilot.press(*"next failed")
        await until(pilot, lambda: "next failed turn" in screen_text(app), "the hit")
        await pilot.press("enter")
        await pilot.pause()
        assert number(app) == 7
        screen = app.screen
    offered = {action for _, action in TimelineCommands(screen)._commands()}
    assert offered == {key.action for key in KEYS}


def test_every_key_has_an_action() -> None:
    for key in KEYS:
        assert hasattr(TimelineApp, f"action_{key.action.partition('(')[0]}"), key
    names = [name for key in KEYS for name in key.keys.split(",")]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("width", [80, 100])
async def test_the_footer_has_room_for_what_matters(width: int) -> None:
    async with opened(EVICTED, (width, 24)) as (app, pilot):
        for words in ("enter log", "] failure", "i what-if", "? help", "q quit"):
            # a footer is made anew when what can be done has changed
            await until(pilot, lambda: words in screen_text(app).splitlines()[-1], words)  # noqa: B023 - called at once


async def test_the_mismatch_s_sentences_are_wrapped() -> None:
    async with opened(SHIFTED, (80, 24)) as (app, pilot):
        await pilot.press("full_stop", "full_stop")
        await pilot.pause()
        assert app.tab == "mismatch"
        text = " ".join(line.strip("\u2502 ") for line in screen_text(app).splitlines())
        assert "the log does not show the text behind them." in text
