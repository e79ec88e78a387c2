"""Writes ``sample_logs/``: the logs of the scenarios that have a ``sample`` entry, and their index."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.live import scenario as sc
from tests.live.environments import Release, environment

FOLDER = Path(__file__).parents[2] / "sample_logs"
#: a sample is read by people and shipped in the wheel
MAX_BYTES = 300_000


def write_samples(release: Release, models: Path, names: list[str], folder: Path = FOLDER) -> list[str]:
    """Play the sample scenarios (all, or those named) and rewrite the index; returns what went wrong."""
    from tests.live.play import play

    problems: list[str] = []
    samples = {n: s for n, s in sc.load().items() if s.sample}
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or samples:
            scenario = samples[name]
            chosen = environment(scenario.release) if scenario.release else release
            truth = play(scenario, scenario.models[0], chosen, models=models, folder=Path(scratch))
            problems += truth.surprises()
            log = Path(scratch) / f"{name}.log"
            if log.stat().st_size > MAX_BYTES:
                problems.append(f"{name}: {log.stat().st_size} bytes, more than {MAX_BYTES}")
            shutil.copyfile(log, folder / file_name(scenario))
            print(f"{file_name(scenario)}: {log.stat().st_size} bytes, {len(truth.turns())} turns")
    (folder / "index.toml").write_text(
        index({n: s for n, s in samples.items() if (folder / file_name(s)).exists()})
    )
    return problems


def file_name(scenario: sc.Scenario) -> str:
    return scenario.name + (".jsonl" if scenario.logger.get("jsonl") else ".log")


def index(samples: dict[str, sc.Scenario]) -> str:
    """The index as TOML: a table a sample, in order of name."""
    lines = ["# Written by `python -m tests.live samples`; what each sample log shows.\n"]
    for name, scenario in sorted(samples.items()):
        sample = scenario.sample
        assert sample is not None
        lines.append("[[sample]]")
        fields = {
            "name": name,
            "file": file_name(scenario),
            "shows": sample.shows,
            "outcome": sample.outcome,
            "variant": sample.variant,
            "cause": sample.cause,
        }
        # the texts are plain sentences: a JSON string is a TOML string too
        lines += [f"{key} = {_toml(value)}" for key, value in fields.items() if value is not None]
        lines.append("")
    return "\n".join(lines)


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
