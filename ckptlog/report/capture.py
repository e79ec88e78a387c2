"""How to capture a log that tells more: the command, by build, level and wrapper.

Which level shows what, and which build knows which variable, comes from
``ckptlog/server/builds.toml``. A router prints its children's lines on its standard output.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ckptlog.records import Report, RunRecord
from ckptlog.report.words import listed, plural
from ckptlog.server.builds import flag_exists, log_level

#: switches on the dump of what the old and the new prompt hold where they part
_DEBUG = "LLAMA_SERVER_SLOTS_DEBUG"
#: without it newer builds print no text around that place
_N_DIFF = "LLAMA_SERVER_SLOTS_N_DIFF"
_LEVELS = ("checkpoints", "prompt", "similarity")


def needed_level(run: RunRecord) -> int:
    """The least ``-lv`` at which this server prints all that a diagnosis uses; 0: any."""
    return max(_least_level(lines, run.build_min, run.build_max) for lines in _LEVELS)


@cache  # a log may hold very many runs, of few builds
def _least_level(lines: str, build_min: int | None, build_max: int | None) -> int:
    return log_level(lines, build_min, build_max) or 0


def hidden_runs(report: Report) -> list[RunRecord]:
    """The runs whose level hid the checkpoints: it is too low, and no turn has a list of them."""
    asked: set[int] = set()
    listed: set[int] = set()
    for turn in report.turns:
        if turn.outcome not in ("arrival-rejection", "not-completion"):
            asked.add(turn.run)
            if turn.checkpoints is not None:
                listed.add(turn.run)
    asked -= listed
    return [run for run in report.runs if run.run in asked and _level_hides(run)]


def hidden_words(report: Report) -> str | None:
    """That most evidence is missing at this level, and what could be worked out all the same, with the
    sentence that the capturing command follows on; None where nothing is hidden."""
    hidden = hidden_runs(report)
    if not hidden:
        return None
    names = {run.run for run in hidden}
    turns = [turn for turn in report.turns if turn.run in names]
    reuse = sum(turn.n_cached is not None for turn in turns)
    exact = sum(turn.n_common is not None for turn in turns)
    bounded = sum(turn.n_common is None and turn.n_common_range is not None for turn in turns)
    within = f" and within bounds for {bounded:,} more" if bounded else ""
    levels = sorted({run.verbosity for run in hidden if run.verbosity is not None})
    told = any(turn.cause not in (None, "unknown") for turn in turns)
    causes = "a cause shows only now and then" if told else "the causes are not in it"
    return (
        f"The log was made at -lv {listed(levels)}, where the server does not print what becomes of its "
        f"checkpoints: {causes}. From the figures that are left, the reuse could be worked out "
        f"for {reuse:,} of {plural(len(turns), 'turn')}, and what was shared with what the slot held for "
        f"{exact:,}{within}. This command shows the rest:"
    )


def _level_hides(run: RunRecord) -> bool:
    if run.verbosity is None or (run.checkpoints is not None and not run.checkpoints.enabled):
        return False
    return run.verbosity < _least_level("checkpoints", run.build_min, run.build_max)


def capture_command(runs: Sequence[RunRecord], router: bool = False) -> list[str]:
    """The shell command, one part a line, that captures all that these servers can tell.

    Without any run it is the command for a server of unknown build: everything on. ``router``:
    they are a router's, even if no run tells its port.
    """
    variables = [f"{_DEBUG}=1"]
    builds = {(run.build_min, run.build_max) for run in runs}
    if not builds or any(flag_exists(_N_DIFF, *build) is not False for build in builds):
        variables.append(f"{_N_DIFF}=20")
    level = max((needed_level(run) for run in runs), default=4)
    # up to b9113 the default level (0, later 3) shows everything
    wanted = f" -lv {level}" if level > 3 else ""
    router = router or any(run.port is not None for run in runs)
    return [
        " ".join(variables),
        f"llama-server ...{wanted} {'> server.log 2>&1' if router else '2> server.log'}",
    ]


def of_forks(runs: Sequence[RunRecord]) -> bool:
    """Are they of forks (or of 2024) alone, which show by default what they have to say of reuse?"""
    return bool(runs) and all(run.fork is not None for run in runs)


def capture_lines(report: Report, runs: Sequence[RunRecord], router: bool = False) -> list[str]:
    """:func:`capture_command` as lines to be pasted into the shell that the log seems to come from."""
    if of_forks(runs):
        return ["llama-server ... > server.log 2>&1"]
    variables, command = capture_command(runs, router)
    if _powershell(report):
        # PowerShell's own redirection rewrites what it writes; cmd's does not
        return [*(f"$env:{variable}" for variable in variables.split()), f'cmd /c "{command}"']
    return [f"{variables} \\", f"  {command}"]


def _wrappers(report: Report) -> str:
    return " ".join(source.wrapper or "" for source in report.sources)


def _powershell(report: Report) -> bool:
    return "powershell" in _wrappers(report) or any(
        source.encoding.lower().startswith("utf-16") for source in report.sources
    )


def capture_notes(report: Report, router: bool = False) -> list[str]:
    """What else to mind when capturing, for the wrappers and forms seen in this log."""
    notes = []
    wrappers = _wrappers(report)
    if router or any(run.port is not None for run in report.runs):
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
    if "lm-studio" in wrappers:
        notes.append(
            "LM Studio runs llama.cpp inside and passes on neither flags nor variables of llama-server: to see "
            "more, serve the same model file with llama-server itself."
        )
    if _powershell(report):
        notes.append(
            'PowerShell\'s `2>` rewrites the log; `cmd /c "llama-server ... 2> server.log"` '
            "or the server's own --log-file keeps it as it is."
        )
    return notes
