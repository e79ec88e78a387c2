"""Columns and their cells: every story has its own shape, without colour."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptlog.analysis import analyze
from ckptlog.tui.book import Book
from ckptlog.tui.columns import column_of, parts_of
from ckptlog.tui.glyphs import ASCII, UNICODE, Glyphs
from ckptlog.tui.lanes import Lane
from ckptlog.tui.raster import OVER_ROWS, PITCHES, Frame, column_cells, fitting_zoom
from ckptlog.tui.scale import make_scale
from tests.tui.conftest import EVICTED, LIMIT, LOGS, REJECTED, SHIFTED

_LANES: dict[Path, Lane] = {}


def lane_of(path: Path) -> Lane:
    if path not in _LANES:
        _LANES[path] = next(iter(Book(analyze(str(path)).report).lanes.values()))
    return _LANES[path]


def drawn(lane: Lane, first: int, last: int, glyphs: Glyphs, zoom: int = 4, rows: int = 20) -> list[str]:
    """A column as text, the top row first."""
    assert lane.n_ctx is not None
    frame = Frame(make_scale("context", rows, lane.n_ctx, lane.used), OVER_ROWS, True)
    cells = column_cells(column_of(lane, first, last), frame, PITCHES[zoom], glyphs)
    return ["".join(cell.char for cell in row) for row in reversed(cells)]


def failed_index(lane: Lane) -> int:
    return next(index for index, item in enumerate(lane.turns) if item.turn.failed)


@pytest.mark.parametrize("glyphs", [ASCII, UNICODE], ids=["ascii", "unicode"])
def test_a_lost_prompt_is_drawn_as_lost_up_to_where_the_prompts_part(glyphs: Glyphs) -> None:
    lane = lane_of(EVICTED)
    turn = lane.turns[failed_index(lane)].turn
    rows = drawn(lane, failed_index(lane), failed_index(lane), glyphs)
    frame_rows = round((turn.n_common or 0) / (lane.n_ctx or 1) * 20)
    lost = [row for row in rows if row.startswith(glyphs.lost * 2) or row.endswith(glyphs.lost)]
    assert abs(sum(glyphs.lost in row for row in rows) - frame_rows) <= 1, "\n".join(rows)
    assert any(glyphs.divergence in row for row in rows)
    assert lost or frame_rows < 2
    assert not any(glyphs.reused in row for row in rows)


def test_a_refused_prompt_rises_over_the_line_of_the_context() -> None:
    lane = lane_of(REJECTED)
    near, far = (
        drawn(lane, index, index, ASCII)
        for index, item in enumerate(lane.turns)
        if item.turn.outcome == "arrival-rejection"
    )
    # rows 0 and 1 are over the context: a near miss reaches the lower one, a far one both
    assert "!" not in near[0]
    assert near[1].startswith("!!!!")
    assert far[0].startswith("^^^^")
    assert far[1].startswith("!!!!")


def test_an_answer_cut_by_a_full_context_ends_at_the_line() -> None:
    lane = lane_of(LIMIT)
    index = next(i for i, item in enumerate(lane.turns) if item.turn.outcome == "limit-stop")
    rows = drawn(lane, index, index, ASCII)
    assert rows[OVER_ROWS].count("#") >= 3, "\n".join(rows)


def test_a_shift_leaves_a_hole() -> None:
    lane = lane_of(SHIFTED)
    index = next(i for i, item in enumerate(lane.turns) if item.turn.shifts)
    shift = lane.turns[index].turn.shifts[0]
    rows = drawn(lane, index, index, ASCII)
    holes = sum("::" in row for row in rows)
    assert holes == pytest.approx((shift.hole[1] - shift.hole[0]) / (lane.n_ctx or 1) * 20, abs=1)


def test_the_fates_of_checkpoints_are_told_apart() -> None:
    fates = {"live", "created", "restored", "evicted", "thinned", "superseded", "invalidated", "cleared"}
    for glyphs in (ASCII, UNICODE):
        assert len({getattr(glyphs, fate) for fate in fates}) == len(fates)
        parts = {"reused", "lost", "new", "generated", "refused", "unknown", "hole", "cut"}
        assert len({getattr(glyphs, part) for part in parts}) == len(parts)


def test_the_line_of_a_needed_checkpoint_goes_on_as_a_ghost() -> None:
    lane = lane_of(EVICTED)
    focus = failed_index(lane)
    strong = lane.blamed(lane.turns[focus].turn)
    columns = [column_of(lane, i, i, strong, focus) for i in range(len(lane.turns))]
    died = strong[0].died
    assert died is not None
    ghosts = [index for index, column in enumerate(columns) if any(line.ghost for line in column.lines)]
    assert ghosts == list(range(died, focus))


def test_a_column_of_several_turns_shows_the_worst() -> None:
    lane = lane_of(EVICTED)
    column = column_of(lane, 0, len(lane.turns) - 1)
    assert column.shown.turn.failed
    assert len(column.turns) == len(lane.turns)


@pytest.mark.parametrize(("n_turns", "width"), [(1, 60), (5, 60), (8, 60), (52, 200), (5000, 60)])
def test_few_turns_fill_the_screen_and_many_stay_readable(n_turns: int, width: int) -> None:
    pitch = PITCHES[fitting_zoom(n_turns, width)]
    assert pitch.turns == 1
    if n_turns <= 8:
        assert n_turns * pitch.width <= width
    assert pitch.body >= 3


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(["newconv_ck2", "pcache_on", "reject", "lv3", "limit_stop", "ncmpl_shift"]),
    zoom=st.integers(0, len(PITCHES) - 1),
    rows=st.integers(1, 60),
    kind=st.sampled_from(["context", "used", "log"]),
    over=st.integers(0, 2),
)
def test_cells_always_fill_the_frame(name: str, zoom: int, rows: int, kind: str, over: int) -> None:
    lane = lane_of(LOGS / "b11549" / "swa" / f"{name}.log.gz")
    pitch = PITCHES[zoom]
    frame = Frame(make_scale(kind, rows, lane.n_ctx, lane.used), over, kind != "used")  # type: ignore[arg-type]
    for first in range(0, len(lane.turns), pitch.turns):
        last = min(first + pitch.turns, len(lane.turns)) - 1
        cells = column_cells(column_of(lane, first, last), frame, pitch, ASCII)
        assert len(cells) == frame.rows
        assert all(len(row) == pitch.width for row in cells)
        assert all(len(cell.char) == 1 and cell.char.isascii() for row in cells for cell in row)


@pytest.mark.parametrize("path", [EVICTED, LIMIT, SHIFTED], ids=lambda path: path.stem)
def test_parts_are_contiguous_and_stay_in_the_context(path: Path) -> None:
    lane = lane_of(path)
    for item in lane.turns:
        parts = parts_of(item.turn, lane.n_ctx)
        assert parts[0].low == 0
        assert all(a.high == b.low for a, b in pairwise(parts))
        assert parts[-1].high <= (lane.n_ctx or 0)
