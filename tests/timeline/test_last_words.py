"""How a server process ended: a crash at the log's end is seen, a stop is none, and a user's words are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptlog
from ckptlog.verdict.judge import NOT_ENDED
from tests.timeline.logs import DONE, OPEN, START, turns


@pytest.mark.parametrize(
    ("end", "fix"),
    [
        ("/src/ggml/src/ggml.c:1593: GGML_ASSERT(n_tokens <= n_batch) failed\n[New LWP 52]\nAborted (core dumped)", "report-crash"),
        ("D:\\a\\ggml\\src\\ggml-backend.cpp:204: fatal error", "report-crash"),
        ("CUDA error: out of memory\n  current device: 0, in function alloc at /b/ggml-cuda.cu:519\n/b/ggml-cuda.cu:104: CUDA error", "device-memory"),
        ("ROCm error: an illegal memory access was encountered", "device-failed"),
        ("terminate called after throwing an instance of 'vk::DeviceLostError'\n  what():  vk::Device::waitForFences: ErrorDeviceLost", "report-crash"),
        ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  empty stack\n[1]    48211 IOT instruction (core dumped)  ./llama-server", "report-crash"),
        ("libggml-base.so(ggml_print_backtrace+0x21f)[0x72e0b99cd82f]", "look-before-restart"),
        ("[1]    48211 abort      ./llama-server -m gemma.gguf", "look-before-restart"),
        ("zsh: segmentation fault  ./llama-server -m gemma.gguf", "look-before-restart"),
        ("[1]  + 48211 abort      llama-server -m gemma.gguf", "look-before-restart"),
        ("zsh: abort      ./start.sh", "look-before-restart"),
        ("[1]+  Aborted                 nohup serve", "look-before-restart"),
        ("fish: Job 1, 'llama-server -m a.gguf' terminated by signal SIGSEGV (Address boundary error)", "look-before-restart"),
        ("./serve.sh: line 69: 7365 Killed                  ./llama-server", "host-memory"),
        ("Apr 17 20:01:37 box systemd[1]: llama.service: Main process exited, code=killed, status=9/KILL", "host-memory"),
        ("PS D:\\llama> $LASTEXITCODE\n-1073740791", "look-before-restart"),
        ("llama-1 exited with code 139", "look-before-restart"),
    ],
)  # fmt: skip
def test_a_crash_at_the_end(tmp_path: Path, end: str, fix: str) -> None:
    (turn,) = turns(tmp_path, f"{START}{OPEN}{end}\n")
    assert (turn.ended, turn.outcome, turn.variant) == ("error", "error", "crash")
    assert [each.name for each in turn.fixes] == [fix]
    assert turn.evidence[0].text.strip() in end


def test_the_line_that_tells_most_comes_first(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, f"{START}{OPEN}/b/x.cu:104: CUDA error\nCUDA error: out of memory\nAborted\n")
    assert [each.text for each in turn.evidence] == ["CUDA error: out of memory", "/b/x.cu:104: CUDA error", "Aborted"]


def test_a_new_start_behind_it(tmp_path: Path) -> None:
    first, second = turns(tmp_path, f"{START}{OPEN}Segmentation fault (core dumped)\n{START}{OPEN}{DONE}")
    assert (first.variant, first.evidence[0].text) == ("crash", "Segmentation fault (core dumped)")
    assert second.outcome == "cold"


@pytest.mark.parametrize("end", ["Aborted (core dumped)", "^CReceived second interrupt, terminating immediately."])
def test_a_start_behind_it_of_which_the_first_lines_are_missing(tmp_path: Path, end: str) -> None:
    later = f"main: model loaded\n{OPEN}{DONE}".replace("task 7", "task 0")
    first, second = turns(tmp_path, f"{START}{OPEN}{end}\n{later}")
    assert (first.ended, second.ended, second.run) == ("error" if "dumped" in end else "cancel", "release", first.run + 1)
    # where the server spoke on it is no new one
    first, second = turns(tmp_path, f"{START}{OPEN}{end}\n{DONE}{later}")
    assert (first.run, second.run) == (0, 0)


@pytest.mark.parametrize("words", ["Aborted", "CUDA error: out of memory", "/a/b.cpp:12: fatal error", "Killed"])
def test_no_crash_where_the_server_goes_on(tmp_path: Path, words: str) -> None:
    (turn,) = turns(tmp_path, f"{START}{OPEN}{words}\n{DONE}")
    assert turn.outcome == "cold"
    later = OPEN.replace("task 7", "task 9")
    assert turns(tmp_path, f"{START}{OPEN}{DONE}{words}\n{later}")[0].outcome == "cold"
    (turn,) = turns(tmp_path, f"{START}{OPEN}{words}\nslot update_slots: id  0 | task 7 | n_tokens = 512, memory_seq_rm [512, end)\n")
    assert (turn.ended, turn.variant) == ("cut", None)


@pytest.mark.parametrize(
    "words",
    ["I saw Segmentation fault", "Killed the process", "/a/b.cpp:12:5: warning: unused", "x exited with code 143",
     "killed", "abort", "bus error", "zsh: killed     grep update_slots", "[1]  + 48211 killed     tail -f server.log",
     "bash: line 1:  7365 Killed                  tee server.log", "fish: Job 1, 'grep slot' terminated by signal SIGKILL (Forced quit)",
     "Apr 17 20:01:37 box systemd[1]: llama.service: Main process exited, code=killed, status=15/TERM"],
)  # fmt: skip
def test_what_is_no_crash(tmp_path: Path, words: str) -> None:
    (turn,) = turns(tmp_path, f"{START}{OPEN}{words}\n")
    assert turn.ended == "cut"


def test_words_within_a_mismatch_window(tmp_path: Path) -> None:
    dump = (
        "slot update_slots: id  0 | task 7 | old: ... and | then\nAborted\nslot update_slots: id  0 | task 7 | new: ... and | now\n"
        "Segmentation fault\nslot update_slots: id  0 | task 7 |    1    2\nslot update_slots: id  0 | task 7 |    1    3\n"
    )
    (turn,) = turns(tmp_path, START + OPEN + dump)
    assert turn.ended == "cut"


def test_nothing_but_a_crash_is_no_server(tmp_path: Path) -> None:
    log = tmp_path / "other.log"
    log.write_text("building\n/a/b.cpp:12: fatal error\nAborted (core dumped)\n")
    assert ckptlog.analyze(log).report.runs == []


@pytest.mark.parametrize(
    "stop",
    [
        "^Csrv    operator(): operator(): cleaning up before exit...",
        "^CReceived second interrupt, terminating immediately.",
        "llama_memory_breakdown_print: |   - Host  |   694 =   552 +       0 +     142 |",
        "srv    operator(): operator(): cleaning up before exit...\nAborted (core dumped)",
    ],
)
def test_a_server_that_was_stopped(tmp_path: Path, stop: str) -> None:
    """The same whether the log ends there, or another server starts."""
    (alone,) = turns(tmp_path, f"{START}{OPEN}{stop}\n")
    first, _ = turns(tmp_path, f"{START}{OPEN}{stop}\n{START}{OPEN}{DONE}")
    for turn in (alone, first):
        assert (turn.ended, turn.outcome, turn.variant, turn.fixes) == ("cancel", "cancelled", "server-stopped", [])
        assert turn.evidence[0].text == stop.splitlines()[0]


def test_what_stands_before_the_build_belongs_to_the_new_run(tmp_path: Path) -> None:
    head = "main: n_parallel is set to auto, using n_parallel = 4 and kv_unified = true\n"
    log = tmp_path / "server.log"
    log.write_text(f"{START}{OPEN}{DONE}{head}{START}{OPEN}{DONE}")
    first, second = ckptlog.analyze(log).report.runs
    assert (first.lines[1], second.lines[0], first.n_slots) == (9, 10, 1)


ROUTER = """\
0.00.100.000 I srv          load: spawning server instance with name=gemma on port 51000
[51000] 0.00.010.000 I srv    load_model: initializing slots, n_slots = 1
[51000] 0.01.000.000 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0
"""
EXITED = "0.09.000.000 I srv    operator(): instance name=gemma exited with status 1\n"


def test_a_child_that_its_router_saw_end(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, ROUTER + EXITED)
    assert (turn.variant, turn.evidence[0].text) == ("crash", EXITED.strip())


@pytest.mark.parametrize(
    "said",
    [EXITED.replace("status 1", "status 0"), EXITED.replace("gemma", "other"),
     "0.08.000.000 I srv        unload: stopping model instance name=gemma\n" + EXITED],
)  # fmt: skip
def test_a_child_that_was_stopped(tmp_path: Path, said: str) -> None:
    (turn,) = turns(tmp_path, ROUTER + said)
    assert (turn.ended, turn.variant) == (("cancel", "server-stopped") if "unload" in said else ("cut", None))


def test_a_process_that_died_of_what_failed_the_request(tmp_path: Path) -> None:
    error = "srv    send_error: task id = 7, error: Compute error.\n"
    (turn,) = turns(tmp_path, f"{START}{OPEN}{error}/src/ggml-vulkan.cpp:6: vk::DeviceLostError\nAborted (core dumped)\n")
    assert (turn.outcome, turn.variant, turn.ended) == ("error", "crash", "error")
    (turn,) = turns(tmp_path, START + OPEN + error)
    assert (turn.outcome, turn.variant) == ("error", None)


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("Segmentation fault (core dumped)", "ended while no request was at work: why is not in the log"),
        ("./serve.sh: line 69: 7365 Killed                  ./llama-server", "want of the host's memory"),
        ("/src/ggml/src/ggml.c:1593: GGML_ASSERT(n_tokens <= n_batch) failed\nAborted", "the server's own check failed"),
    ],
)
def test_a_server_that_died_while_idle(tmp_path: Path, end: str, says: str) -> None:
    log = tmp_path / "server.log"
    for more in ("", START + OPEN + DONE):
        log.write_text(f"{START}{OPEN}{DONE}{end}\n{more}")
        report = ckptlog.analyze(log).report
        (found,) = report.runs[0].incidents
        assert (found.kind, found.text, found.lines[0]) == ("server-ended", end.splitlines()[0], 10)
        assert says in found.says
        assert [turn.outcome for turn in report.turns] == ["cold"] * len(report.turns)
    # what it spoke after is no end, and what it was asked for no crash
    for text in (f"{START}{OPEN}{DONE}Aborted\n{OPEN.replace('7', '9')}", f"{START}{OPEN}{DONE}srv  operator(): cleaning up before exit...\n"):
        log.write_text(text)
        assert ckptlog.analyze(log).report.runs[0].incidents == []


def test_a_server_that_is_gone_while_it_loads(tmp_path: Path) -> None:
    load = "0.00.100.000 I srv    load_model: loading model '/m/gemma.gguf'\n0.07.000.000 I cmn          init: llama threadpool init, n_threads = 1\n"
    ready = "0.09.000.000 I srv  llama_server: model loaded\n0.09.000.001 I srv  llama_server: listening on http://127.0.0.1:8080\n"
    kept = "0.04.000.000 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 4096, kv_unified = 'false'\n"
    log = tmp_path / "server.log"
    log.write_text((load + kept) * 2 + load + kept + ready)
    runs = ckptlog.analyze(log).report.runs
    assert [[each.kind for each in run.incidents] for run in runs] == [["start-failed"], ["start-failed"], []]
    assert "while it was loading its model" in runs[0].incidents[0].says
    log.write_text((load + kept + ready) * 2)
    assert [run.incidents for run in ckptlog.analyze(log).report.runs] == [[], []]


def test_a_turn_that_ends_with_the_log(tmp_path: Path) -> None:
    (turn,) = turns(tmp_path, START + OPEN)
    assert (turn.ended, turn.outcome, turn.missing) == ("cut", "cold", [NOT_ENDED])
    (turn,) = turns(tmp_path, START + OPEN + DONE)
    assert turn.missing == []


def test_a_client_that_waits_no_longer_for_a_stopped_server(tmp_path: Path) -> None:
    stop = "srv    operator(): operator(): cleaning up before exit...\n"
    (turn,) = turns(tmp_path, f"{START}{OPEN}{stop}srv          stop: cancel task, id_task = 7\n")
    assert (turn.variant, turn.evidence[0].text, turn.fixes) == ("server-stopped", stop.strip(), [])
    # one that left before that did so by itself
    (turn,) = turns(tmp_path, f"{START}{OPEN}srv          stop: cancel task, id_task = 7\n{stop}")
    assert (turn.outcome, turn.variant) == ("cancelled", None)


def test_the_program_around_the_server_speaks_on(tmp_path: Path) -> None:
    asked = '[GIN] 2026/08/14 - 20:48:47 | 500 |         1m31s |       127.0.0.1 | POST     "/api/chat"'
    (turn,) = turns(tmp_path, f"{START}{OPEN}CUDA error: out of memory\n{asked}\n")
    assert (turn.variant, turn.evidence[0].text) == ("crash", "CUDA error: out of memory")
