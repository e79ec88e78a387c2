"""The what-if from log to answer: records, sentences, command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

import ckptlog
from ckptlog.cli import main
from ckptlog.errors import NothingToJudge, UsageError
from ckptlog.replay.verdicts import Verdicts
from ckptlog.replay.whatif import Flags, Recommended, WhatIf, whatif
from ckptlog.report.whatif import render_whatif

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_logs"
LOGS = ROOT / "tests" / "data" / "logs"


def ask(path: Path, flags: Flags | None = None) -> WhatIf:
    analysis = ckptlog.analyze(path)
    return whatif(analysis.timeline, flags or Flags(), Verdicts(analysis.report))


def text(answer: WhatIf, width: int = 80) -> str:
    return "\n".join(line.plain for line in render_whatif(answer, width))


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.log")), ids=lambda path: path.stem)
def test_every_sample_is_reproduced(path: Path) -> None:
    answer = ask(path, Flags(ctx_checkpoints=5))
    assert not answer.reproduced.doubtful
    assert answer.reproduced.turns > 0
    for turn in answer.turns:
        assert (turn.n_cached_whatif is None) is (turn.n_cached_whatif_range is not None)
        if turn.n_cached_whatif is not None:
            assert 0 <= turn.n_cached_whatif <= turn.n_prompt


def test_the_logs_own_flags_change_nothing() -> None:
    for name in ("evicted-system-prompt", "older-build", "two-agents"):
        analysis = ckptlog.analyze(SAMPLES / f"{name}.log")
        count = analysis.timeline[0].checkpoints_max
        answer = ask(SAMPLES / f"{name}.log", Flags(ctx_checkpoints=count))
        assert [turn.n_saved for turn in answer.turns] == [0] * len(answer.turns)
        assert answer.summary.ram_mib == answer.summary.ram_mib_now


def test_the_sweep_names_a_setting_and_the_setting_keeps_its_word() -> None:
    path = SAMPLES / "evicted-system-prompt.log"
    swept = ask(path)
    assert swept.recommended is not None
    assert swept.recommended.helps
    flags = swept.recommended.saving_all
    assert flags is not None
    answer = ask(path, Flags(int(flags["--ctx-checkpoints"]), int(flags.get("--checkpoint-min-step", 8192))))
    assert answer.summary.n_costly_now == 1
    assert answer.summary.n_costly == 0
    assert answer.summary.n_saved == swept.summary.n_saved > 2000
    fewer = ask(
        path, Flags(int(flags["--ctx-checkpoints"]) - 1, int(flags.get("--checkpoint-min-step", 8192)))
    )
    assert fewer.summary.n_costly == 1
    page = text(swept)
    assert "Saves every costly turn:  --ctx-checkpoints" in page
    assert page.count(" <") == 2, "at the setting, and what the mark means"


def test_a_sweep_is_over_all_runs_of_the_log(tmp_path: Path) -> None:
    """The headline, the table of settings and the turns add up to the same, whichever run has most turns."""
    one, other = SAMPLES / "evicted-system-prompt.log", SAMPLES / "thinned-checkpoint.log"
    both = tmp_path / "both.log"
    both.write_bytes(one.read_bytes() + other.read_bytes())
    answer = ask(both)
    assert {turn.run for turn in answer.turns} == {0, 1}
    assert answer.recommended is not None
    assert answer.settings is not None
    row = next(item.summary for item in answer.settings if item.flags == answer.flags)
    assert row.n_saved == answer.summary.n_saved == sum(turn.n_saved or 0 for turn in answer.turns)
    assert row.n_costly_now == answer.summary.n_costly_now
    assert answer.summary.n_costly_now == sum(ask(path).summary.n_costly_now for path in (one, other))
    assert row.n_costly == answer.summary.n_costly == 0
    assert f"{row.n_saved:,} tokens" in text(answer)


def test_the_count_that_diagnose_names_is_named_too() -> None:
    path = SAMPLES / "evicted-system-prompt.log"
    fixes = [fix for turn in ckptlog.analyze(path).report.turns for fix in turn.fixes]
    said = next(fix.flags for fix in fixes if fix.name == "raise-checkpoint-count")
    answer = ask(path)
    assert answer.recommended is not None
    assert answer.recommended.count_alone == {said[0]: int(said[1])}
    assert " ".join(said) in text(answer)
    # and the cheaper choice is the one that diagnose names beside it
    wide = next(fix.flags for fix in fixes if fix.name == "wider-spacing")
    assert answer.recommended.saving_all == {wide[0]: int(wide[1]), wide[2]: int(wide[3])}
    assert answer.summary.n_costly == 0


def test_on_a_narrow_page_a_row_is_not_cut() -> None:
    page = text(ask(SAMPLES / "checkpoints-off.log", Flags(ctx_checkpoints=32)), 44)
    (row,) = [line for line in page.splitlines() if ".." in line and line.lstrip()[0].isdigit()]
    assert row.split()[-1] == "?"
    assert "saved" in page
    assert "time" not in page.split("saved")[0].splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "words"),
    [("rejected", "(2 arrival-rejection)"), ("limit-stop", "limit-stop)"), ("clock-in-system-prompt", "")],
)
def test_what_checkpoints_can_not_mend_is_not_called_good(name: str, words: str) -> None:
    page = " ".join(text(ask(SAMPLES / f"{name}.log")).split())
    assert "good" not in page
    assert "Checkpoint flags would change nothing" in page or "No count and no spacing" in page
    assert words in page
    assert ("has nothing to do with checkpoints" in page) is bool(words)


def test_without_a_turn_to_check_there_is_no_verdict() -> None:
    path = SAMPLES / "evicted-system-prompt.log"
    for flags in (Flags(), Flags(ctx_checkpoints=4)):
        answer = ask(path, flags)
        answer.reproduced.turns = answer.reproduced.right = 0
        page = text(answer)
        assert "Can't tell" in page
        for word in ("saves", "saved", "helped", "0 of 0", "DOUBTFUL", "MiB"):
            assert word not in page, word


def test_a_range_is_said_to_stand_there_only_where_the_turns_are() -> None:
    answer = ask(SAMPLES / "checkpoints-off.log", Flags(ctx_checkpoints=32))
    assert "a range stands there" in " ".join(text(answer).split())
    answer.settings, answer.flags = [], {}
    answer.recommended = Recommended(None, None)
    page = " ".join(text(answer).split())
    assert "Not certain in 1 turn (over all turns" in page


def test_no_checkpoints_is_the_cause_under_a_count_of_none() -> None:
    answer = ask(SAMPLES / "evicted-system-prompt.log", Flags(ctx_checkpoints=0))
    assert {turn.cause for turn in answer.turns if turn.costly_whatif} == {"checkpoints-disabled"}
    page = text(answer)
    assert "! checkpoints-disabled" in page
    assert "1 costly re-prefill left" in page
    assert not any(line.startswith("no VRAM") for line in page.splitlines())


def test_where_no_flag_helps_the_cause_is_named() -> None:
    answer = ask(SAMPLES / "sparse-checkpoints.log")
    assert answer.recommended is not None
    assert not answer.recommended.helps
    assert answer.flags == {}
    page = text(answer)
    assert "No count and no spacing of checkpoints would have helped." in page
    assert "put what changes last" in " ".join(page.split())


def test_what_the_log_hides_becomes_a_range_with_the_way_to_settle_it() -> None:
    answer = ask(SAMPLES / "checkpoints-off.log", Flags(ctx_checkpoints=32))
    hidden = [turn for turn in answer.turns if turn.n_cached_whatif_range is not None]
    assert len(hidden) == answer.summary.n_open == 1
    assert hidden[0].n_saved is None
    assert "Not certain in 1 turn" in text(answer)


def test_swa_full_is_told_apart_by_memory() -> None:
    assert "--swa-full does nothing for hybrid memory" in text(
        ask(SAMPLES / "evicted-system-prompt.log", Flags(swa_full=True))
    )
    answer = ask(LOGS / "b11549/swa/deep_edit.log.gz", Flags(swa_full=True))
    edited = [turn for turn in answer.turns if turn.n_saved]
    assert [turn.n_cached_whatif for turn in edited] == [turn.n_common for turn in edited] != []


def test_a_log_that_is_not_reproduced_is_doubtful() -> None:
    analysis = ckptlog.analyze(SAMPLES / "evicted-system-prompt.log")
    run = analysis.timeline[0]
    run.checkpoints_max = 7
    answer = whatif([run], Flags(ctx_checkpoints=4), Verdicts(analysis.report))
    assert answer.reproduced.doubtful
    assert answer.reproduced.partings
    assert "DOUBTFUL" in text(answer)


def test_lines_fit_and_hold_no_control_characters() -> None:
    for width in (40, 60, 80, 100):
        for path in SAMPLES.glob("*.log"):
            for line in render_whatif(ask(path), width) if width == 80 else ():
                assert line.cell_len <= width
                assert line.plain.isprintable()
    for width in (40, 100):
        for line in render_whatif(ask(SAMPLES / "thinned-checkpoint.log"), width):
            assert line.cell_len <= width


def test_the_count_that_a_diagnosis_names_is_the_smallest_that_works() -> None:
    path = SAMPLES / "evicted-system-prompt.log"
    turn = next(turn for turn in ckptlog.analyze(path).report.turns if turn.failed)
    fix = next(fix for fix in turn.fixes if fix.name == "raise-checkpoint-count")
    assert fix.flags[0] == "--ctx-checkpoints"
    count = int(fix.flags[1])
    assert ask(path, Flags(ctx_checkpoints=count)).summary.n_costly == 0
    assert ask(path, Flags(ctx_checkpoints=count - 1)).summary.n_costly == 1


def test_a_log_that_shows_too_little_is_not_called_well_set() -> None:
    """``diagnose`` finds an evicted checkpoint there: "would change nothing" would be another story."""
    shown = text(ask(SAMPLES / "default-level.log"))
    assert "Can't tell: of 1 turn this log shows too little, and up to 2,644 tokens hang on it." in " ".join(shown.split())
    assert "no turn lost much" not in shown


def test_no_count_is_named_where_none_helps() -> None:
    turns = ckptlog.analyze(SAMPLES / "sparse-checkpoints.log").report.turns
    (failed,) = (turn for turn in turns if turn.failed)
    assert "--ctx-checkpoints" not in {flag for fix in failed.fixes for flag in fix.flags}


@pytest.mark.parametrize(
    "flags",
    [Flags(ctx_checkpoints=-1), Flags(checkpoint_min_step=-5), Flags(checkpoint_min_step=5, build=8672)],
)
def test_impossible_flags_are_refused_in_one_sentence(flags: Flags) -> None:
    with pytest.raises(UsageError, match=r"^--[^\n]+$"):
        ask(SAMPLES / "healthy.log", flags)


def test_a_log_that_shows_no_memory_kind_is_nothing_to_judge() -> None:
    with pytest.raises(NothingToJudge, match="-lv 4"):
        ask(LOGS / "b11549/plain/lv3.log.gz")


Out = pytest.CaptureFixture[str]


def test_command_line(capsys: Out) -> None:
    assert main(["whatif", str(SAMPLES / "evicted-system-prompt.log"), "--ctx-checkpoints", "8"]) == 0
    out = capsys.readouterr().out
    assert "8 of 8 turns reproduced" in out
    assert "With --ctx-checkpoints 8" in out


def test_command_line_json(capsys: Out) -> None:
    path = str(SAMPLES / "evicted-system-prompt.log")
    assert main(["whatif", path, "--build", "b10068", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= {"schema", "tool", "sources", "reproduced", "flags", "turns", "summary"}
    assert found["flags"] == {"build": "b10068"}
    assert set(found["turns"][0]) >= {
        "run", "slot", "task", "n_prompt", "n_cached", "n_cached_whatif", "n_cached_whatif_range",
        "n_saved", "ms_saved", "cause",
    }  # fmt: skip
    assert set(found["summary"]) >= {"n_saved", "ms_saved", "ram_mib"}
    assert main(["whatif", path, "--format", "json"]) == 0
    swept = json.loads(capsys.readouterr().out)
    assert set(swept["settings"][0]) == {"flags", "summary"}
    assert "recommended" in swept


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["whatif", "no-such.log"], 2),
        (["whatif", str(SAMPLES / "healthy.log"), "--build", "later"], 2),
        (["whatif", str(LOGS / "b11549/plain/lv3.log.gz")], 3),
        (["whatif", str(ROOT / "pyproject.toml")], 3),
    ],
)
def test_exit_codes(arguments: list[str], code: int, capsys: Out) -> None:
    assert main(arguments) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("ckptlog: ")


def test_markup_in_a_file_name_is_text(tmp_path: Path) -> None:
    path = tmp_path / "[red]a.log"
    path.write_bytes((SAMPLES / "healthy.log").read_bytes())
    console = Console(width=200, markup=False)
    with console.capture() as capture:
        for line in render_whatif(ask(path), 200):
            console.print(line)
    assert "[red]a.log" in capture.get()
