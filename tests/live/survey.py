"""What is new about a build: plays the scenarios on it and lets ckptlog read the logs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import ckptlog
from tests.live import scenario as sc
from tests.live.compare import Comparison, compare
from tests.live.environments import Release
from tests.live.play import play
from tests.live.server import ServerFailed


@dataclass
class Survey:
    """All that a person must look at after a new release, gathered over all scenarios.

    ``drifted`` and ``unknown`` count lines by shape, with an example each; ``surprises`` is where
    the server itself does something else than on the build the scenarios were written for.
    """

    release: Release
    comparison: Comparison
    drifted: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    surprises: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    #: model and scenario of each log that was read
    played: list[tuple[str, str]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing to teach the grammar, nothing to mend."""
        return not (self.drifted or self.unknown or self.comparison.disagreements or self.failed)

    def lines(self) -> list[str]:
        """The survey for a person."""
        out = [
            f"xllamacpp {self.release.version} (build {self.release.build}), {len(self.played)} logs",
            str(self.comparison),
        ]
        for title, shapes in (("drifted", self.drifted), ("unknown", self.unknown)):
            out.append(f"{title}: {shapes.total()} lines of {len(shapes)} shapes")
            for shape, count in shapes.most_common():
                out.append(f"  {count:5} x {shape!r}")
                out.append(f"          {self.examples[shape]}")
        for title, texts in (
            ("disagreements", self.comparison.disagreements),
            ("the server does otherwise", self.surprises),
            (
                "flags this release does not know",
                [f"{flag} ({n} servers)" for flag, n in self.missing.items()],
            ),
            ("could not be played", self.failed),
        ):
            out.append(f"{title}: {len(texts)}")
            out += [f"  {text}" for text in texts]
        return out


def survey(release: Release, scenarios: list[sc.Scenario], models: Path, folder: Path) -> Survey:
    """Play ``scenarios`` on ``release``; the logs stay in ``folder/MODEL``."""
    found = Survey(release, Comparison(release.build))
    for scenario in scenarios:
        for model in scenario.models:
            place = folder / model
            try:
                truth = play(scenario, model, release, models=models, folder=place)
            except (ServerFailed, TimeoutError) as e:
                found.failed.append(f"{scenario.name} on {model}: {str(e)[-300:]}")
                continue
            found.missing.update(flag for server in truth.servers for flag in server.missing)
            if set(scenario.logger) & set(truth.servers[0].missing):
                continue  # this release cannot write that form of log
            analysis = ckptlog.analyze(place / f"{scenario.name}.log")
            found.played.append((model, scenario.name))
            found.surprises += truth.surprises()
            found.comparison.add(compare(truth, analysis.report, f"{release.build}/{model}/{scenario.name}"))
            for item in analysis.drift:
                shapes = found.drifted if item.status == "drifted" else found.unknown
                shapes[item.literal or item.message[:60]] += item.count
                found.examples.setdefault(
                    item.literal or item.message[:60],
                    f"{model}/{scenario.name}.log:{item.line}: {item.text[:160]!r}"
                    + (
                        f" (column {item.column}, expected {', '.join(item.expected)})"
                        if item.column is not None
                        else ""
                    ),
                )
    return found
