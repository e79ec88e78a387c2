"""Growing logs: new turns, where the view stays, rotation, truncation, a pipe; and a long log's progress."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptlog.analysis import analyze
from ckptlog.errors import InputError
from ckptlog.intake.sources import Source
from ckptlog.tui.app import TimelineApp
from ckptlog.tui.following import PictureTaken, Progressed
from ckptlog.tui.loading import Loader, Picture, Progress
from ckptlog.tui.piped import PipedLog
from ckptlog.tui.timeline import Timeline
from tests.tui.conftest import EVICTED, REJECTED, messages, opened, until


def cut_before(path: Path, turn: int) -> int:
    """Where in a log the ``turn``-th turn begins, in bytes."""
    line = analyze(str(path)).report.turns[turn - 1].lines[0]
    return sum(len(each) for each in path.read_bytes().splitlines(keepends=True)[: line - 1])


async def test_new_turns_appear_and_the_view_stays_at_the_end(tmp_path: Path) -> None:
    data, cut = EVICTED.read_bytes(), cut_before(EVICTED, 5)
    log = tmp_path / "server.log"
    log.write_bytes(data[:cut])
    async with opened(log, follow=True) as (app, pilot):
        await until(pilot, lambda: len(app.book.turns) == 4, "four turns")
        await pilot.press("end")
        assert app.item is not None
        assert app.item.number == 4
        with log.open("ab") as file:
            file.write(data[cut:])
        await until(pilot, lambda: len(app.book.turns) == 8, "all turns")
        assert app.item.number == 8
        assert "new failure" in app._news
        # what was seen is what batch says
        batch = analyze(str(EVICTED)).report
        assert [turn.outcome for turn in app.book.report.turns] == [turn.outcome for turn in batch.turns]
        assert [turn.lines for turn in app.book.report.turns] == [turn.lines for turn in batch.turns]
        await pilot.press("right_square_bracket")
        assert app.item.number == 7
        assert not app._news


async def test_the_view_stays_where_the_user_put_it(tmp_path: Path) -> None:
    data, cut = EVICTED.read_bytes(), cut_before(EVICTED, 5)
    log = tmp_path / "server.log"
    log.write_bytes(data[:cut])
    async with opened(log, follow=True) as (app, pilot):
        await until(pilot, lambda: len(app.book.turns) == 4, "four turns")
        await pilot.press("home", "down")
        with log.open("ab") as file:
            file.write(data[cut:])
        await until(pilot, lambda: len(app.book.turns) == 8, "all turns")
        assert app.item is not None
        assert app.item.number == 2
        await pilot.press("F")
        assert app.item.number == 8


async def test_rotation_and_truncation(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(EVICTED.read_bytes())
    async with opened(log, follow=True) as (app, pilot):
        await until(pilot, lambda: len(app.book.turns) == 8, "the first log")
        log.rename(tmp_path / "server.log.1")
        log.write_bytes(REJECTED.read_bytes())
        await until(pilot, lambda: len(app.book.turns) == 14, "the rotated log's successor")
        first, second = app.book.turns[0].turn, app.book.turns[8].turn
        assert (first.source, second.source) == (0, 1)
        # the raw lines of both are still there
        await pilot.press("home", "enter")
        await pilot.pause()
        assert "slot" in app.raw_log._line(first.lines[0])
        log.write_bytes(b"")
        await pilot.pause(0.5)
        with log.open("ab") as file:
            file.write(EVICTED.read_bytes())
        await until(pilot, lambda: len(app.book.turns) == 22, "what came after the truncation")


async def test_several_logs_are_followed_all(tmp_path: Path) -> None:
    data, cut = EVICTED.read_bytes(), cut_before(EVICTED, 5)
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(data[:cut])
    second.write_bytes(REJECTED.read_bytes())
    n_second = len(analyze(str(REJECTED)).report.turns)
    async with opened([first, second], follow=True) as (app, pilot):
        await until(pilot, lambda: len(app.book.turns) == 4 + n_second, "both logs")
        await pilot.press("F", "F")
        with first.open("ab") as file:
            file.write(data[cut:])
        await until(pilot, lambda: len(app.book.turns) == 8 + n_second, "the first log's new turns")
        # the end is where something was written last
        assert app.item is not None
        assert (app.item.number, app.item.turn.source) == (8, 0)
        assert "new failure" in app._news
        with second.open("ab") as file:
            file.write(data)
        await until(pilot, lambda: len(app.book.turns) == 16 + n_second, "the second log's new turns")
        assert app.item.turn.source == 1
        # each log says what it says when it is read alone, and is told apart from the other
        alone = analyze(str(first)).report
        turns = [item.turn for item in app.book.turns]
        assert [turn.outcome for turn in turns[:8]] == [turn.outcome for turn in alone.turns]
        assert [turn.evidence for turn in turns[:8]] == [turn.evidence for turn in alone.turns]
        assert [turn.source for turn in turns] == [0] * 8 + [1] * (n_second + 8)
        assert {turn.run for turn in turns[:8]}.isdisjoint(turn.run for turn in turns[8:])


async def test_one_of_several_followed_logs_is_rotated(tmp_path: Path) -> None:
    first, second = tmp_path / "a.log", tmp_path / "b.log"
    first.write_bytes(EVICTED.read_bytes())
    second.write_bytes(EVICTED.read_bytes())
    async with opened([first, second], follow=True) as (app, pilot):
        await until(pilot, lambda: len(app.book.turns) == 16, "both logs")
        first.rename(tmp_path / "a.log.1")
        first.write_bytes(REJECTED.read_bytes())
        await until(pilot, lambda: len(app.book.turns) == 22, "the first log's successor")
        assert [item.turn.source for item in app.book.turns] == [0] * 8 + [1] * 8 + [2] * 6
        with second.open("ab") as file:
            file.write(EVICTED.read_bytes())
        await until(pilot, lambda: len(app.book.turns) == 30, "the second log goes on")


async def test_a_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    data, cut = EVICTED.read_bytes(), cut_before(EVICTED, 5)
    os.write(writing, data[:cut])
    piped = PipedLog(reading)
    app = TimelineApp(["-"], follow=True, piped=piped)
    async with app.run_test(size=(100, 32)) as pilot:
        await until(pilot, lambda: len(app.book.turns) == 4, "the first turns")
        os.write(writing, data[cut:])
        os.close(writing)
        await until(pilot, lambda: app.progress.phase == "done", "the end of the pipe")
        assert len(app.book.turns) == 8
        await pilot.press("end", "enter")
        await pilot.pause()
        assert "slot" in app.raw_log._line(app.book.turns[7].turn.lines[0])
    assert app.loader_ended(10)
    path = piped.path
    piped.close()
    assert not os.path.exists(path)


async def test_a_log_without_turns_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"")
    async with opened(log, follow=True) as (app, pilot):
        await pilot.pause(0.3)
        assert app.failure is None
        await pilot.press(
            "j", "enter", "w", "c", "right_square_bracket", "slash", "escape", "question_mark", "escape"
        )
        log.write_bytes(EVICTED.read_bytes())
        await until(pilot, lambda: len(app.book.turns) == 8, "the turns")


def read_all(path: Path, stop_after: int | None = None) -> tuple[list[Picture], list[Progress]]:
    """What the loader tells of a log; stopped after some pictures if asked."""
    pictures: list[Picture] = []
    progress: list[Progress] = []

    def on_picture(picture: Picture) -> None:
        pictures.append(picture)
        loader.seen(0.0)
        if stop_after is not None and len(pictures) >= stop_after:
            loader.stop()

    loader = Loader([str(path)], follow=False, on_picture=on_picture, on_progress=progress.append)
    loader.start()
    assert loader.join(120)
    return pictures, progress


def test_a_long_log_shows_its_first_turns_early_and_can_be_stopped(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(EVICTED.read_bytes() * 60)
    pictures, _ = read_all(log, stop_after=1)
    first, last = pictures[0], pictures[-1]
    assert first.report.turns
    assert first.progress.taken <= 512 << 10
    assert first.progress.total == log.stat().st_size
    assert last.progress.phase == "stopped"
    assert last.progress.taken < log.stat().st_size


def test_no_picture_is_taken_while_the_last_one_is_not_on_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(EVICTED.read_bytes() * 60)
    pictures: list[Picture] = []
    loader = Loader([str(log)], follow=False, on_picture=pictures.append, on_progress=lambda _: None)
    loader.start()
    assert loader.join(120)
    # the first, and the last, which must come
    assert len(pictures) == 2
    assert pictures[-1].progress.phase == "done"


def test_the_loader_says_the_same_as_batch() -> None:
    pictures, _ = read_all(EVICTED)
    assert pictures[-1].report == analyze(str(EVICTED)).report
    assert pictures[-1].progress.phase == "done"


def test_a_big_log_s_timeline_is_made_again_of_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckptlog.tui.reading.BIG_BYTES", 1)
    log = tmp_path / "server.log"
    log.write_bytes(EVICTED.read_bytes())
    pictures, _ = read_all(log)
    batch = analyze(str(EVICTED), timeline=True)
    assert pictures[-1].report.turns == batch.report.turns
    timeline = pictures[-1].timeline
    assert timeline is not None
    assert timeline.share == 0
    # what was written since is not in the report, and must not be in the replay either
    with log.open("ab") as file:
        file.write(REJECTED.read_bytes())
    (run,) = timeline.runs()
    assert [turn.task for turn in run.turns] == [turn.task for turn in batch.timeline[0].turns]
    assert len(run.turns) == len(batch.report.turns)
    assert timeline.ended(0)


def test_the_timeline_of_a_log_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "gone.log"))
    source.facts.raw_bytes = 10
    with pytest.raises(InputError, match=r"gone\.log"):
        Timeline([source]).runs()


def test_progress_has_an_estimate() -> None:
    assert Progress("reading", 25, 100, 2.0).left == 6.0
    assert Progress("reading", 25, None, 2.0).left is None
    assert Progress("reading", 0, 100, 2.0).left is None


async def test_the_reading_thread_makes_what_the_screen_looks_up() -> None:
    async with opened(EVICTED) as (app, _):
        made = vars(app.book)
        assert {"digest", "lanes", "failed", "_lane_of", "_finding_of"} <= made.keys()
        assert "_lives_near" in vars(app.book.lanes[next(iter(app.book.lanes))])


async def test_escape_stops_reading(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(EVICTED.read_bytes() * 1500)
    app = TimelineApp([str(log)])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.book.turns, "the first turns")
        assert app.progress.phase == "reading"
        await pilot.press("escape")
        await until(pilot, lambda: app.progress.phase == "stopped", "stopped")
        assert app.book.turns
        await pilot.press("F")
        assert "not followed" in messages(app)
    assert app.loader_ended(60)


async def test_what_the_loader_says_while_the_application_ends_is_no_error() -> None:
    async with opened(EVICTED) as (app, _):
        progress, report = app.progress, app.book.report
    assert not app.screen_stack
    app.on_progressed(Progressed(progress))
    picture = Picture(report, (), progress)
    app.on_picture_taken(PictureTaken(picture, app.book, None))
