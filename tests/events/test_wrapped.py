"""Logs that a terminal wrapped, or that were cut at a width, as people paste them; the server's own stay as they are."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

from ckptlog.events.wrapped import MOST_ASKED, MOST_WIDTH, Rejoiner
from ckptlog.intake.reader import Chunk
from tests.analysis.consistency import FIGURES

NAMES = ["b8672/hybrid/fifo", "b10068/swa/deep_edit", "b11549/hybrid/lv4", "b11549/hybrid/slots2"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def hard(line: str, width: int, indent: str = "") -> list[str]:
    """As a terminal shows a line."""
    pieces = [line[:width]]
    step = width - len(indent)
    pieces += [indent + line[at : at + step] for at in range(width, len(line), step)]
    return pieces


def trimmed(line: str, width: int) -> list[str]:
    """What was copied from there has no spaces at a line's end."""
    return [piece.rstrip() for piece in hard(line, width)]


def indented(line: str, width: int) -> list[str]:
    return hard(line, width, "    ")


def soft(line: str, width: int) -> list[str]:
    """As a mail program breaks lines: between words."""
    wrap = textwrap.TextWrapper(width, break_on_hyphens=False, expand_tabs=False, replace_whitespace=False)
    return wrap.wrap(line) or [""]


def told(analysis: Any) -> list[tuple[Any, ...]]:
    return [
        (turn.slot, turn.task, turn.ended, turn.outcome, turn.variant, turn.trigger, turn.cause, turn.confidence,
         turn.checkpoints, *(getattr(turn, name) for name in FIGURES))
        for turn in analysis.report.turns
    ]  # fmt: skip


WRAPS = [
    (hard, 80), (hard, 100), (hard, 120), (hard, 132), (hard, 200), (hard, 237), (trimmed, 80), (trimmed, 120),
    (indented, 80), (indented, 100), (soft, 72), (soft, 100),
]  # fmt: skip


@pytest.mark.parametrize(("wrap", "width"), WRAPS, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("name", NAMES)
def test_a_wrapped_log_says_the_same(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, wrap: Callable[[str, int], list[str]], width: int
) -> None:
    log = recorded(name)
    lines = [COLOUR.sub("", line) for line in log.lines]
    wrapped = [wrap(line, width) for line in lines]
    found = analyse([piece for pieces in wrapped for piece in pieces])
    assert told(found) == told(log.analysis)
    assert ("put together again" in " ".join(found.report.warnings)) == (width < 200)
    source = found.report.sources[0]
    assert source.drifted_lines == source.unknown_slot_lines == 0
    # line numbers are those of what was pasted
    first = [1]
    for pieces in wrapped:
        first.append(first[-1] + len(pieces))
    for mine, whole in zip(found.report.turns, log.analysis.report.turns, strict=True):
        assert mine.lines == tuple(first[line - 1] for line in whole.lines)


@pytest.mark.parametrize("width", [*range(60, 140, 3)])
@pytest.mark.parametrize("name", ["b10068/swa/deep_edit", "b11549/hybrid/lv3", "b11549/hybrid/slots2"])
def test_no_figure_of_a_log_that_was_cut_is_wrong(
    recorded: Callable[[str], Any], analyse: Callable[..., Any], name: str, width: int
) -> None:
    """Of a number at the width digits may be missing."""
    log = recorded(name)
    whole = {(turn.task, turn.slot): turn for turn in log.analysis.report.turns}
    for turn in analyse([COLOUR.sub("", line)[:width] for line in log.lines]).report.turns:
        truth = whole[turn.task, turn.slot]
        for figure in FIGURES:
            value, right = getattr(turn, figure), getattr(truth, figure)
            assert value is None or right is None or value == right, f"task {turn.task}: {figure}"
        if turn.confidence != "inferred":
            assert turn.outcome in ("unknown", truth.outcome), f"task {turn.task}"


def chunk(lines: Sequence[str], first_line: int = 1) -> Chunk:
    return Chunk(pl.Series("line", lines, dtype=pl.String), first_line, 0)


def rejoiner() -> Rejoiner:
    """With a grammar of four messages."""

    def tell(line: str) -> tuple[str, str]:
        if re.fullmatch(r"slot release: task \d+ \| n_tokens = \d+, truncated = [01]", line):
            return "event", "release"
        if re.fullmatch(r"slot start: task \d+ \| a prompt, n_tokens = \d+", line):
            return "event", "start"
        if line.startswith("srv build for "):
            return "event", "build"
        return ("text", "old") if line.startswith("slot old: ") else ("drifted", "")

    return Rejoiner(tell)


def lines_of(chunks: Sequence[Chunk]) -> list[str]:
    return [line for chunk in chunks for line in chunk.lines.to_list()]


START = "slot start: task 7 | a prompt, n_tokens = 12345"


@pytest.mark.parametrize("cut", range(1, 4))
def test_lines_wait_for_the_next_chunk_where_they_may_go_on(cut: int) -> None:
    mender = rejoiner()
    lines = ["slot release: task 7 | n_tokens = 1", "23, trunca", "ted = 0", START]
    found = [*mender.feed(chunk(lines[:cut])), *mender.feed(chunk(lines[cut:], cut + 1)), *mender.finish()]
    assert lines_of(found) == ["slot release: task 7 | n_tokens = 123, truncated = 0", "", "", START]
    assert found[0].first_line == 1
    assert sum(len(one.lines) for one in found) == len(lines)
    assert [line for one in found for line in (one.lines if one.raw is None else one.raw)] == lines


def test_a_number_at_the_width_goes_on_on_the_next_line() -> None:
    """The grammar reads the line without its end, too."""
    mender = rejoiner()
    lines = [START[:-2], START[-2:], "other"]
    assert lines_of([*mender.feed(chunk(lines)), *mender.finish()]) == [START, "", "other"]


def test_a_number_at_the_width_is_cut_where_others_end_there() -> None:
    width = len(START) - 2
    others = [f"slot {name} is a line that goes on and on, and farther".ljust(width, ".")[:width] for name in ("one", "two")]
    found = lines_of(rejoiner().feed(chunk([*others, START[:width], START[:width], "slot release: task 7 |"])))
    assert found[2] == "slot start: task 7 | a prompt, n_tokens = "
    # with one line beyond it, it is no width
    found = lines_of(rejoiner().feed(chunk([*others, others[0] + "..", START[:width], "slot release: task 7 |"])))
    assert found[3] == START[:width]


def test_text_is_left_alone() -> None:
    lines = ["srv build for any machine whatever, say Linux x86_64", "2026-05-16 00:00:03 a stamp", "slot release: task 7"]
    assert lines_of(rejoiner().feed(chunk([*lines, START]))) == [*lines, START]
    lines = ["slot old: what someone wrote, which may end in 12", "34 and go on", "slot release: task 7"]
    assert lines_of(rejoiner().feed(chunk([*lines, START]))) == [*lines, START]


def test_the_first_line_that_no_terminal_shows_ends_it() -> None:
    lines = ["x" * (MOST_WIDTH + 1), "slot release: task 7 | n_tokens = 1", "23, truncated = 0"]
    mender = rejoiner()
    (found,) = mender.feed(chunk(lines))
    assert found.lines.to_list() == lines
    assert found.raw is None


@pytest.mark.parametrize("size", [10_000, 97])
def test_text_that_someone_chose_is_not_asked_about_without_end(size: int) -> None:
    """A request's words may make each line another one, as wide as the one before."""
    asked: list[str] = []

    def tell(line: str) -> tuple[str, str]:
        asked.append(line)
        return ("event", "release") if line.endswith("truncated = 0") else ("text", "exception")

    letters = "abcdefghij"
    lines = [f"srv  operator(): got exception: {''.join(letters[int(digit)] for digit in f'{n:012d}')}" for n in range(MOST_ASKED + 3_000)]
    wrapped = ["slot release: task 7 | n_tokens = 1", "23, truncated = 0"]
    lines += wrapped
    mender = Rejoiner(tell)
    chunks = [chunk(lines[at : at + size], at + 1) for at in range(0, len(lines), size)]
    assert lines_of(list(mender.through(chunks))) == lines
    assert len(asked) == MOST_ASKED


def test_a_server_s_own_log_passes_untouched(recorded: Callable[[str], Any], log_name: str) -> None:
    analysis = recorded(log_name).analysis
    joined = analysis.analyzer.extractor.rejoiner
    assert (joined.n_joined, joined.n_cut) == (0, 0)
