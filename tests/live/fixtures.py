"""The stored logs of all builds: ``tests/data/live/BUILD/MODEL/SCENARIO.{log,truth.json}.gz``."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.live import scenario as sc
from tests.live.environments import Release
from tests.live.truth import Truth

FOLDER = Path(__file__).parents[1] / "data" / "live"


@dataclass(frozen=True)
class Fixture:
    """One stored log and its truth."""

    log: Path

    @property
    def name(self) -> str:
        return "/".join(self.log.parts[-3:]).removesuffix(".log.gz")

    def truth(self) -> Truth:
        path = self.log.with_name(self.log.name.replace(".log.gz", ".truth.json.gz"))
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Truth)


def stored(folder: Path = FOLDER) -> Iterator[Fixture]:
    """All fixtures, by build, model and scenario."""
    return (Fixture(path) for path in sorted(folder.glob("*/*/*.log.gz")))


def write(release: Release, models: Path, scenarios: list[sc.Scenario], folder: Path = FOLDER) -> list[str]:
    """Play ``scenarios`` on ``release`` and store the logs.

    The logs are stored as they are. Returns what could not be played; a scenario's expectations
    are the newest build's and are not held against an older one.
    """
    # needs gguf, which those who only read fixtures may not have
    from tests.live.play import play
    from tests.live.server import ServerFailed

    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for scenario in scenarios:
            name = scenario.name
            for model in scenario.models:
                try:
                    truth = play(scenario, model, release, models=models, folder=Path(scratch))
                except ServerFailed as e:
                    problems.append(f"{name} on {model}: {e}")
                    continue
                if set(scenario.logger) & set(truth.servers[0].missing):
                    continue  # this release cannot write that form of log
                store(Path(scratch), release, model, name, folder)
    return problems


def store(place: Path, release: Release, model: str, name: str, folder: Path = FOLDER) -> None:
    """Compress NAME.log and NAME.truth.json from ``place`` into the fixtures."""
    target = folder / release.build / model
    target.mkdir(parents=True, exist_ok=True)
    for kind in ("log", "truth.json"):
        data = (place / f"{name}.{kind}").read_bytes()
        # no time in the header: a log that has not changed gives the same file
        (target / f"{name}.{kind}.gz").write_bytes(gzip.compress(data, 9, mtime=0))
