"""How to capture a log that tells more: the command, by build, level and wrapper.

What is visible at which level in which build, and which stream it goes to, is the server's
own doing: since b9246 the default level (3) hides what happens to checkpoints; up to b9113
there was no such level. A router prints its children's lines on its standard output.
"""

from __future__ import annotations

from collections.abc import Sequence

from ckptlog.records import Report, RunRecord

#: the last opened build whose default level shows everything
_LAST_WITHOUT_LEVELS = 9113
#: the mismatch dump shows no text around the divergence unless this is set (b10603 and later)
_N_DIFF = "LLAMA_SERVER_SLOTS_N_DIFF=20"
_DEBUG = "LLAMA_SERVER_SLOTS_DEBUG=1"


def level_hides(run: RunRecord, report: Report) -> bool:
    """Whether this run's level hid the checkpoints: no turn of it has a list of them."""
    seen = [
        turn
        for turn in report.turns
        if turn.run == run.run and turn.outcome not in ("arrival-rejection", "not-completion")
    ]
    if not seen or any(turn.checkpoints is not None for turn in seen):
        return False
    if run.checkpoints is not None and not run.checkpoints.enabled:
        return False
    return run.verbosity is not None and run.verbosity < 4


def capture_command(runs: Sequence[RunRecord]) -> list[str]:
    """The shell command, one part a line, that captures all that these servers can tell."""
    levels = not runs or any(run.build_max is None or run.build_max > _LAST_WITHOUT_LEVELS for run in runs)
    router = any(run.port is not None for run in runs)
    return [
        f"{_DEBUG} {_N_DIFF}",
        f"llama-server ...{' -lv 4' if levels else ''} {'> server.log 2>&1' if router else '2> server.log'}",
    ]


def capture_notes(report: Report) -> list[str]:
    """What else to mind when capturing, for the wrappers and forms seen in this log."""
    notes = []
    wrappers = " ".join(source.wrapper or "" for source in report.sources)
    if any(run.port is not None for run in report.runs):
        notes.append(
            "A router prints its children's lines on its standard output, not on stderr: capture both streams."
        )
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
