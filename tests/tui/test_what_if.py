"""The what-if panel: flags are changed, the answer and the map follow."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from ckptlog.analysis import analyze
from ckptlog.replay.from_timeline import NotReplayable
from ckptlog.replay.verdicts import Verdicts
from ckptlog.replay.whatif import Flags, replay_runs, whatif
from ckptlog.tui.app import TimelineApp
from ckptlog.tui.imagining import Answer
from tests.tui.conftest import EVICTED, opened, screen_text, until


async def _opened_panel(app: TimelineApp, pilot: Pilot[Any]) -> None:
    await pilot.press("i")
    await until(pilot, lambda: app.what_if._answer is not None, "the replay answers")


def _summary(app: TimelineApp) -> tuple[int, int]:
    answer = app.what_if._answer
    assert answer is not None
    assert not isinstance(answer.found, str)
    return answer.found.summary.n_saved, answer.found.summary.n_costly


async def test_it_opens_with_the_log_s_own_flags_and_names_what_would_have_helped() -> None:
    async with opened(EVICTED, (120, 50)) as (app, pilot):
        await _opened_panel(app, pilot)
        assert app.focused is app.what_if
        text = screen_text(app)
        assert "as in the log" in text
        assert "8 of 8 turns reproduced" in text
        assert "Saves every costly turn" in text
        assert not any(app.map.column(n).then for n in range(8))


async def test_flags_by_arrows_and_digits_change_the_totals_and_the_map() -> None:
    analysis = analyze([str(EVICTED)])
    wanted = whatif(analysis.timeline, Flags(ctx_checkpoints=8), Verdicts(analysis.report))
    async with opened(EVICTED, (120, 50)) as (app, pilot):
        await _opened_panel(app, pilot)
        await pilot.press("right")
        assert app.what_if.flags == Flags(ctx_checkpoints=3)
        await pilot.press("left", "left")
        assert app.what_if.flags == Flags(ctx_checkpoints=1)
        await pilot.press("8")
        assert app.what_if.flags == Flags(ctx_checkpoints=8)
        await until(pilot, lambda: app.what_if._answer is not None, "the replay answers")
        assert _summary(app)[0] == wanted.summary.n_saved > 0
        assert _summary(app)[1] == 0
        assert f"{wanted.summary.n_saved:,} tokens less to process" in screen_text(app)
        marked = [app.map.column(n).then for n in range(8)]
        assert marked == [(turn.n_cached_whatif,) for turn in wanted.turns]
        assert "cached then" in screen_text(app)
        # the marks go when the panel does
        await pilot.press("i")
        assert app.tab == "finding"
        assert not any(app.map.column(n).then for n in range(8))


async def test_the_other_flags_and_back_to_the_log_s_own() -> None:
    async with opened(EVICTED, (120, 50)) as (app, pilot):
        await _opened_panel(app, pilot)
        await pilot.press("down", "left")
        assert app.what_if.flags == Flags(checkpoint_min_step=128)
        await pilot.press("1", "2", "8", "backspace")
        assert app.what_if.flags == Flags(checkpoint_min_step=12)
        await pilot.press("down", "space")
        assert app.what_if.flags == Flags(checkpoint_min_step=12, swa_full=True)
        await until(pilot, lambda: app.what_if._answer is not None, "the replay answers")
        assert "--swa-full does nothing for hybrid memory" in screen_text(app)
        await pilot.press("delete")
        assert app.what_if.flags == Flags()


async def test_flags_are_chosen_and_changed_with_the_mouse() -> None:
    async with opened(EVICTED, (120, 50)) as (app, pilot):
        await _opened_panel(app, pilot)
        text = app.what_if.query_one(Static)
        more = len("  --ctx-checkpoints      <        2  >") - 1
        await pilot.click(text, offset=(more, 0))
        assert app.what_if.flags == Flags(ctx_checkpoints=3)
        await pilot.click(text, offset=(more - len("       3  >"), 0))
        await pilot.click(text, offset=(more - len("       2  >"), 0))
        assert app.what_if.flags == Flags(ctx_checkpoints=1)
        await pilot.click(text, offset=(4, 2))
        assert app.what_if.cursor == 2
        assert app.what_if.flags == Flags(ctx_checkpoints=1)
        await pilot.click(text, offset=(more, 2))
        assert app.what_if.flags == Flags(ctx_checkpoints=1, swa_full=True)
        # beside the flags nothing changes
        await pilot.click(text, offset=(4, 4))
        assert app.what_if.cursor == 2


async def test_the_log_s_own_replay_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = replay_runs
    monkeypatch.setattr("ckptlog.replay.whatif.replay_runs", lambda runs: made.append(runs) or make(runs))
    async with opened(EVICTED, (120, 50)) as (app, pilot):
        await _opened_panel(app, pilot)
        await pilot.press("right")
        await until(pilot, lambda: app.what_if.turns, "the replay answers")
        await pilot.press("right", "left", "left")
        await until(pilot, lambda: app.what_if._answer is not None, "the replay answers")
    assert len(made) == 1


def test_the_replay_is_not_loaded_before_it_is_wanted() -> None:
    code = "import sys, ckptlog.tui.app; sys.exit('ckptlog.replay.whatif' in sys.modules or 'polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_followed_log_has_no_timeline_and_says_so() -> None:
    async with opened(EVICTED, (120, 50), follow=True) as (app, pilot):
        await pilot.press("i")
        await pilot.pause()
        assert "not kept while a log is followed" in screen_text(app)
        await pilot.press("right", "8", "backspace", "delete", "down", "space")
        assert app.what_if.flags == Flags()


async def test_what_cannot_be_replayed_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: object) -> None:
        raise NotReplayable("its prompts are not in the log")

    async with opened(EVICTED, (120, 50)) as (app, pilot):
        monkeypatch.setattr("ckptlog.replay.from_timeline.run_from_timeline", refuse)
        monkeypatch.setattr("ckptlog.replay.whatif.run_from_timeline", refuse)
        await _opened_panel(app, pilot)
        assert isinstance(app.what_if._answer, Answer)
        assert "nothing can be replayed: its prompts are not in the log" in screen_text(app)
        await pilot.press("right", "8")
        assert app.what_if.flags == Flags()
