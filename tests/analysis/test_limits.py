"""What a hostile log makes too much of is counted and told, and memory stays bounded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ckptlog.analysis import Analyzer, analyze
from ckptlog.analysis.parallel import analyze_in_parts
from ckptlog.analysis.parts import Undivided
from ckptlog.gate.evaluate import judge
from ckptlog.gate.policy import Gate, Policy
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source
from ckptlog.report.as_json import render_json
from ckptlog.report.markdown import render_markdown
from ckptlog.report.text import render_text
from ckptlog.timeline import limits

#: the package gives the function of that name
analyze_module = sys.modules["ckptlog.analysis.analyze"]

Analyse = Callable[..., Any]
Recorded = Callable[[str], Any]

LAUNCH = "0.00.{ms:03d}.000 I slot launch_slot_: id {slot:2d} | task {task} | processing task, is_child = 0"
REFUSED = (
    "0.00.001.000 E srv    send_error: task id = {task}, error: request (9216 tokens) exceeds the available "
    "context size (8192 tokens), try increasing it"
)
HEAD = "0.00.001.000 I slot create_check: id  0 | task 0 | "
CREATED = HEAD + "created context checkpoint {n} of 9999 (pos_min = 0, pos_max = {n}, n_tokens = {n}, size = 1.000 MiB)"
START = "0.00.000.100 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 512, kv_unified = 'false'"


def launches(count: int, slots: int = 1) -> list[str]:
    return [LAUNCH.format(ms=1, slot=i % slots, task=i) for i in range(count)]


def fed(lines: list[str], **options: Any) -> Analyzer:
    """An analyzer that has read these lines and is still open."""
    analyzer, source = Analyzer(**options), Source("server.log")
    analyzer.begin(source)
    for chunk in Feeder(source).stream("".join(f"{line}\n" for line in lines).encode()):
        analyzer.feed(chunk)
    return analyzer


def test_tasks_that_are_never_released(analyse: Analyse) -> None:
    report = analyse(launches(limits.MAX_EMPTY + 2_000)).report
    assert len(report.turns) == limits.MAX_EMPTY
    assert report.left_out == {"empty": 2_000}
    (warning,) = report.warnings
    assert warning.startswith("2,000 turns that were never released")
    assert f"from line {limits.MAX_EMPTY + 1:,} on" in warning
    for text in ("\n".join(line.plain for line in render_text(report, 100)), render_markdown(report)):
        assert "2,000 turns that were never" in " ".join(text.split())


def test_more_turns_than_a_report_holds(analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckptlog.analysis.analyzer.MAX_TURNS", 50)
    analysis = analyse([REFUSED.format(task=i) for i in range(80)])
    report = analysis.report
    assert [turn.task for turn in report.turns] == list(range(50))
    assert report.left_out == {"turns": 30}
    assert "from line 51 on" in report.warnings[0]
    verdict = judge(report, analysis.turns, "server.log", Policy("", Gate()))
    assert verdict.status == "failed"
    assert any("30 turns too many to be judged" in check.message for check in verdict.checks)


def test_a_follower_is_told_of_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckptlog.analysis.analyzer.MAX_TURNS", 50)
    seen: list[int | None] = []
    fed([REFUSED.format(task=i) for i in range(80)], on_turn=lambda turn: seen.append(turn.task)).finish()
    assert seen == list(range(80))


def test_refusals_without_a_slot_do_not_wait_for_the_end() -> None:
    analyzer = fed([REFUSED.format(task=i) for i in range(3 * limits.MAX_WAITING)])
    (stream,) = analyzer.tracker.streams
    assert len(stream.unfinished) <= limits.MAX_WAITING
    analyzer.finish()
    assert len(analyzer.turns) == 3 * limits.MAX_WAITING


def test_more_slots_than_a_server_has(analyse: Analyse) -> None:
    count = 3 * limits.MAX_SLOTS
    analyzer = fed([START, *launches(count, slots=count)])
    (stream,) = analyzer.tracker.streams
    assert len(stream.slots) == limits.MAX_SLOTS
    analyzer.finish()
    assert len(analyzer.turns) == count
    assert analyzer.left_out.counts == {"slots": count - limits.MAX_SLOTS}
    # a slot that was forgotten and comes back held something: nothing is known of it any more
    again = fed([START, *launches(count, slots=count), LAUNCH.format(ms=2, slot=0, task=count)])
    again.finish()
    assert next(turn for turn in again.turns if turn.task == count).outcome == "unknown"


def test_more_ports_than_a_router_has() -> None:
    lines = [f"[{10_000 + i}] slot launch_slot_: id 0 | task {i} | processing task, is_child = 0" for i in range(1000)]
    analyzer = fed(lines)
    assert len(analyzer.tracker.streams) <= limits.MAX_PORTS
    analyzer.finish()
    assert len(analyzer.turns) == 1000
    assert set(analyzer.left_out.counts) == {"ports"}


def test_more_starts_than_a_report_holds(analyse: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ckptlog.timeline.tracker.MAX_RUNS", 5)
    monkeypatch.setattr("ckptlog.analysis.analyzer.MAX_RUNS", 5)
    report = analyse([line for i in range(8) for line in (START, *launches(1), "")]).report
    assert (len(report.runs), len(report.turns)) == (5, 5)
    assert report.left_out == {"runs": 3}
    assert "from line 16 on" in report.warnings[0]


def test_a_list_longer_than_any_servers() -> None:
    analyzer = fed([*launches(1), *(CREATED.format(n=n) for n in range(1, limits.MAX_LISTED + 101))])
    (stream,) = analyzer.tracker.streams
    assert len(stream.slots[0].checkpoints) == limits.MAX_LISTED
    assert not stream.slots[0].list_known
    assert analyzer.left_out.counts == {"listed": 100}


def test_a_turn_with_messages_without_end(monkeypatch: pytest.MonkeyPatch, analyse: Analyse) -> None:
    monkeypatch.setattr("ckptlog.timeline.stream_state.MAX_IN_TURN", 20)
    batches = [HEAD + f"cached n_tokens = {n}, memory_seq_rm [{n}, end)" for n in range(50)]
    release = "0.00.002.000 I slot      release: id  0 | task 0 | stop processing: n_tokens = 60, truncated = 0"
    report = analyse([*launches(1), *batches, release]).report
    assert report.left_out == {"in_turn": 30}
    assert report.turns[0].ended == "release"


def test_more_checkpoints_than_a_report_holds(monkeypatch: pytest.MonkeyPatch, analyse: Analyse) -> None:
    monkeypatch.setattr("ckptlog.timeline.stream_state.MAX_CHECKPOINTS", 10)
    report = analyse([*launches(1), *(CREATED.format(n=n) for n in range(1, 31))]).report
    assert len(report.checkpoints) == 10
    assert report.left_out == {"checkpoints": 20}
    assert report.turns[0].checkpoints is not None
    assert len(report.turns[0].checkpoints.created) == 30


def test_quotes_are_cut(analyse: Analyse) -> None:
    report = analyse([*launches(1), f"0.00.001.000 E srv    send_error: task id = 0, error: {'x' * 500_000}"]).report
    assert max(len(item.text) for turn in report.turns for item in turn.evidence) <= limits.MAX_QUOTE


def test_parts_are_not_put_together_beyond_a_limit(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parts within a limit may be beyond it together: one reading decides what is left out."""
    log = recorded("b11549/hybrid/lv4")
    path = tmp_path / "server.log"
    path.write_bytes(log.data * 2)
    assert len(analyze_in_parts(str(path), 2).turns) == 2 * len(log.report.turns)
    monkeypatch.setattr("ckptlog.analysis.parts.MAX_TURNS", len(log.report.turns) + 1)
    with pytest.raises(Undivided):
        analyze_in_parts(str(path), 2)


@pytest.mark.parametrize("most", [0, 3, 20])
def test_a_timeline_that_is_whole_only_at_first_changes_no_report(
    tmp_path: Path, recorded: Recorded, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(recorded("b11549/hybrid/lv4").data * 3)
    whole = analyze(path, processes=1)
    monkeypatch.setattr(analyze_module, "MOST_WHOLE", most)
    frugal = analyze(path, processes=1)
    assert isinstance(frugal.analyzer, Analyzer)
    assert not frugal.analyzer.whole_timeline
    assert render_json(frugal.report) == render_json(whole.report)
    assert [len(run.turns) for run in frugal.timeline] == [len(run.turns) for run in whole.timeline]


def test_a_report_in_pieces_is_the_whole_one(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    report = recorded("b11549/hybrid/lv4").report
    whole = msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
    for size in (1, 2, 7, 1000):
        monkeypatch.setattr("ckptlog.report.as_json._AT_ONCE", size)
        assert render_json(report) == whole


def test_a_flood_of_unknown_shapes_is_counted_without_the_grammar(
    recorded: Recorded, analyse: Analyse, changed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line is a shape of its own: after some thousands only its head is looked at. Known messages, and rows
    of token ids (which have no literal), are events all the same."""
    log = recorded("b11549/hybrid/debug_window")
    words = ["".join(chr(97 + (i >> 4 * k) % 16) for k in range(4)) for i in range(300)]
    flood = [f"slot print_timing: id  0 | task 1 | qx{word}" for word in words[:200]]
    flood += [f"a time slot of qx{word}" for word in words[200:]]
    whole = analyse([*flood, *log.lines]).report
    monkeypatch.setattr("ckptlog.events.shape_book.MAX_REFUSED", 30)
    told = analyse([*flood, *log.lines]).report
    assert changed(whole, told) == []
    assert [source.unknown_slot_lines for source in told.sources] == [200]


def test_prompts_compared_for_one_choice() -> None:
    chosen = "0.00.001.000 I slot get_availabl: id  0 | task -1 | selected slot by LRU, t_last = -1"
    compared = "0.00.877.501 I srv          load:    - prompt with length     578, lcp =     237, f_keep = 0.410, f_sim = 0.382"
    analyzer = fed([START, chosen, *[compared] * (limits.MAX_BETWEEN + 500)])
    (stream,) = analyzer.tracker.streams
    assert stream.selection is not None
    assert len(stream.selection.candidates) == len(stream.selection.held_saved) == limits.MAX_BETWEEN
