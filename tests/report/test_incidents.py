"""What the reports say of things that happened outside of turns."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog
from ckptlog.grammar import messages
from ckptlog.report.incidents import incident_notes
from ckptlog.report.markdown import render_markdown
from ckptlog.report.nothing import nothing_to_judge
from ckptlog.report.redact import redacted
from ckptlog.report.text import render_text
from ckptlog.timeline.incidents import incident, start_over, take_start_error
from ckptlog.timeline.model import Run
from ckptlog.verdict.incidents import NOT_STARTED, incident_says

from .build import a_turn

FOLDER = Path(__file__).parents[1] / "data" / "binary"


def text_of(name: str) -> str:
    report = ckptlog.analyze(FOLDER / name).report
    return " ".join(" ".join(line.plain for line in render_text(report)).split())


def test_requests_that_reached_no_slot_are_listed() -> None:
    name = "10434/pre-lv3.log.gz"
    text, markdown = text_of(name), render_markdown(ckptlog.analyze(FOLDER / name).report)
    assert "9 requests were answered with an error and reached no slot" in text
    assert "Requests that reached no slot - line 8: HTTP 401: Invalid API Key - line 9: HTTP 500" in text
    assert "## Requests that reached no slot\n\n- line 8: HTTP 401: Invalid API Key\n" in markdown


def test_one_alone_is_told_at_once() -> None:
    text = text_of("10434/tmpl-lv3.log.gz")
    assert "A request was answered with an error before it reached a slot (line 20): HTTP 400: Unable to generate parser" in text
    assert "Requests that reached no slot" not in text
    assert "Nothing failed in 2 turns, but something outside of them did." in text


def test_a_slot_file_that_does_not_fit_is_told_with_what_it_fits() -> None:
    text = text_of("10434/slotf-foreign-lv4.log.gz")
    assert "(line 223): n_stream mismatch. A file fits only the model and the settings it was saved with (-ctk" in text


def test_models_that_a_router_let_go() -> None:
    text = text_of("11434/router-lv3.log.gz")
    assert "to make room for others (--models-max): tiny-plain twice, tiny-hybrid once (line " in text


def test_the_first_word_is_of_the_process_that_ended() -> None:
    for name in ("10434/rkill-kill-lv3.log.gz", "10434/again-lv3.log.gz"):
        assert "but a server went down while it was idle." in text_of(name)
    assert "went down" not in text_of("10434/sleep-lv4.log.gz")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fail-port-lv3", "holds no turn. The server did not start: it could not listen at its address (line 7): 127.0.0.1, port: "),
        ("fail-draft-lv3", "The server did not start: the draft model could not be loaded (line 7): failed to open "),
        ("fail-flag-lv3", "no server starts: error: invalid argument: --no-such-flag"),
    ],
)
def test_a_log_without_a_turn(name: str, says: str) -> None:
    (sentence,) = nothing_to_judge(ckptlog.analyze(FOLDER / "10434" / f"{name}.log.gz"))
    assert says in sentence


def test_what_is_posted_has_no_words_of_a_request_and_no_names() -> None:
    for name, private in (("pre-lv3", ["nonsense", "'messages'"]), ("router-lv3", ["tiny-plain", "tiny-hybrid", "/models/"])):
        report = redacted(ckptlog.analyze(FOLDER / "10434" / f"{name}.log.gz").report)
        told = " ".join([*incident_notes(report), *(f"{i.text} {i.message} {i.says}" for run in report.runs for i in run.incidents)])
        assert not [word for word in private if word in told]
        assert report.runs[0].incidents[-1].status == 500


def test_words_of_a_log_are_made_safe(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    evil = r'{"error":{"code":400,"message":"\u001b[31m[bold]<b>\nx"}}'
    done = (
        "slot launch_slot_: id  0 | task 7 | processing task, is_child = 0\n"
        "slot      release: id  0 | task 7 | stop processing: n_tokens = 910, truncated = 0\n"
    )
    log.write_text(f"srv    operator(): got exception: {evil}\nsrv    operator(): unauthorized: Invalid API Key\n{done}")
    report = ckptlog.analyze(log).report
    text = "\n".join(line.plain for line in render_text(report))
    assert "\x1b" not in text
    assert "\\e[31m[bold]<b> x" in text
    assert "<b>" not in render_markdown(report)


def test_many_different_ones_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    words = (f"{chr(97 + i // 26)}{chr(97 + i % 26)} is required" for i in range(200))
    log.write_text("".join(f'srv    operator(): got exception: {{"code":400,"message":"{each}"}}\n' for each in words))
    (run,) = ckptlog.analyze(log).report.runs
    assert len(run.incidents) == 33
    report = ckptlog.analyze(log).report
    report.turns = [a_turn()]
    assert "- and 23 other errors" in "\n".join(line.plain for line in render_text(report))
    assert render_markdown(report).count("\n- line ") == 20
    assert "\n- and 13 other errors" in render_markdown(report)
    assert sum(each.count for each in run.incidents) == 200
    assert (run.incidents[-1].message, run.incidents[-1].lines) == (None, (33, 200))


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (
            "llama_state_seq_load_file: error loading sequence state file: failed to open /slots/notes of jane: No such file or directory",
            "failed to open <path-1>: No such file or directory",
        ),
        ("srv  llama_server: couldn't bind HTTP server socket, hostname: janes-box, port: 8080", "<host-1>, port: 8080"),
        ("srv  llama_server: couldn't start HTTP listener on janes-box", "<host-1>"),
        ("srv          init: init: chat template parsing error: unexpected 'jane'", "<text-1>"),
        ("llama_model_load: error loading model: failed to open /models/of jane.gguf: Permission denied", "failed to open <path-1>: Permission denied"),
    ],
)  # fmt: skip
def test_what_is_posted_has_no_file_s_or_host_s_name(tmp_path: Path, line: str, left: str) -> None:
    log = tmp_path / "server.log"
    slot = "srv    send_error: task id = 5, error: Unable to restore slot: No available space in KV cache or invalid slot save file\n"
    exits = "srv  llama_server: exiting due to model loading error\n"
    loads = "0.00.300.000 I srv    load_model: loading model 'x.gguf'\n"
    log.write_text(f"{loads}0.00.318.476 E {line}\n0.00.318.500 E {slot if 'state file' in line else exits}")
    (run,) = redacted(ckptlog.analyze(log).report).runs
    (found,) = run.incidents
    assert found.message == left
    assert "jane" not in f"{found.text} {found.says}"


def test_what_is_posted_has_the_server_s_words_whole(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    words = "No available space in KV cache or invalid slot save file"
    log.write_text(f"srv    send_error: task id = 5, error: Unable to restore slot: {words}\n")
    assert redacted(ckptlog.analyze(log).report).runs[0].incidents[0].message == words


def test_what_happened_is_told_where_no_turn_is_shown() -> None:
    report = ckptlog.analyze(FOLDER / "10434" / "fail-draft-lv3.log.gz").report
    assert "**No turn to show.**\n\nThe server did not start: the draft model could not be loaded" in render_markdown(report)
    told = "\n".join(line.plain for line in render_text(report))
    assert "Note The server did not start: the draft model could not be loaded" in told


def test_what_a_log_without_a_turn_is_has_no_names_where_the_report_has_none() -> None:
    analysis = ckptlog.analyze(FOLDER / "10434" / "fail-draft-lv3.log.gz")
    (plain,), (private,) = nothing_to_judge(analysis), nothing_to_judge(analysis, redacted(analysis.report))
    assert ".gguf" in plain
    assert ".gguf" not in private.removeprefix(str(FOLDER))


@pytest.mark.parametrize("kind", ["start_error", "model_load_error"])
def test_each_error_of_a_start_is_said_in_words(kind: str) -> None:
    assert {wording.name for wording in messages().kinds[kind].wordings} <= NOT_STARTED.keys()


def test_an_error_without_words_yet_is_told_all_the_same() -> None:
    run = Run(0, 0, 1, 3)
    for line, how in enumerate(("exiting_model", "of_a_later_build", "model"), 1):
        take_start_error(run, incident("start-failed", line, "", message=how, how=how))
    start_over(run)
    (told,) = run.incidents
    assert (told.message, told.how) == ("model", "model")
    assert "an error of its start ended it" in incident_says(run, incident("start-failed", 1, "", how="of_a_later_build"))


def test_a_prompt_that_found_its_slot_emptied_is_not_blamed_on_its_beginning() -> None:
    told = text_of("10434/slotf-foreign-lv4.log.gz")
    assert "Turn 3 found nothing: a request had emptied the slot before" in told
    assert "little was reused" not in told
    assert "the client changes the beginning" not in told
