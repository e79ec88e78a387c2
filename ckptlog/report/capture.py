"""How to capture a log that tells more: the command, by build, level and wrapper.

Which level shows what, and which build knows which variable, comes from
``ckptlog/server/builds.toml``. A router prints its children's lines on its standard output.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptlog.records import Report, RunRecord
from ckptlog.server.builds import flag_exists, log_level

#: switches on the dump of what the old and the new prompt hold where they part
_DEBUG = "LLAMA_SERVER_SLOTS_DEBUG"
#: without it newer builds print no text around that place
_N_DIFF = "LLAMA_SERVER_SLOTS_N_DIFF"
_LEVELS = ("checkpoints", "prompt", "similarity")


def needed_level(run: RunRecord) -> int:
    """The least ``-lv`` at which this server prints all that a diagnosis uses; 0: any."""
    levels = (log_level(lines, run.build_min, run.build_max) for lines in _LEVELS)
    return max((level for level in levels if level is not None), default=0)


def level_hides(run: RunRecord, report: Report) -> bool:
    """Whether this run's level hid the checkpoints: it is too low, and no turn has a list of them."""
    if run.verbosity is None or run.verbosity >= (
        log_level("checkpoints", run.build_min, run.build_max) or 0
    ):
        return False
    if run.checkpoints is not None and not run.checkpoints.enabled:
        return False
    seen = [
        turn
        for turn in report.turns
        if turn.run == run.run and turn.outcome not in ("arrival-rejection", "not-completion")
    ]
    return bool(seen) and all(turn.checkpoints is None for turn in seen)


def capture_command(runs: Sequence[RunRecord]) -> list[str]:
    """The shell command, one part a line, that captures all that these servers can tell.

    Without any run it is the command for a server of unknown build: everything on.
    """
    variables = [f"{_DEBUG}=1"]
    if not runs or any(flag_exists(_N_DIFF, run.build_min, run.build_max) is not False for run in runs):
        variables.append(f"{_N_DIFF}=20")
    level = max((needed_level(run) for run in runs), default=4)
    # up to b9113 the default level (0, later 3) shows everything
    wanted = f" -lv {level}" if level > 3 else ""
    router = any(run.port is not None for run in runs)
    return [
        " ".join(variables),
        f"llama-server ...{wanted} {'> server.log 2>&1' if router else '2> server.log'}",
    ]


def capture_notes(report: Report) -> list[str]:
    """What else to mind when capturing, for the wrappers and forms seen in this log."""
    notes = []
    wrappers = " ".join(source.wrapper or "" for source in report.sources)
    if any(run.port is not None for run in report.runs):
        notes.append(
            "A router prints its children's lines on its standard output, not on stderr: capture both streams."
        )
    if any(source.format == "jsonl" for source in report.sources):
        notes.append("With --log-jsonl the log is on standard output: > server.log.")
    if "journal" in wrappers:
        notes.append(
            "journald: `journalctl -u UNIT -o cat --all > server.log` keeps the lines whole "
            "(without --all it hides those with control characters)."
        )
    if "docker" in wrappers:
        notes.append("docker: `docker logs NAME > server.log 2>&1`; the server's log is on stderr.")
    if any(source.encoding.lower().startswith("utf-16") for source in report.sources):
        notes.append(
            'PowerShell\'s `2>` rewrites the log; `cmd /c "llama-server ... 2> server.log"` '
            "or the server's own --log-file keeps it as it is."
        )
    return notes
