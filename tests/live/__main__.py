"""``python -m tests.live``: play scenarios on the real server, write sample logs and fixtures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.environments import KEPT, Release, environment, installed

if TYPE_CHECKING:
    from tests.live import scenario as sc

#: models are written once and kept here
MODELS = Path(tempfile.gettempdir()) / "ckptlog-live-models"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    parser.add_argument(
        "--models", type=Path, default=MODELS, help="where model files are kept (default: %(default)s)"
    )
    commands = parser.add_subparsers(required=True)

    run = commands.add_parser("run", help="play scenarios and show what the client saw")
    run.add_argument("names", nargs="*", help="scenario names (default: all but the large ones)")
    run.add_argument("-o", "--output", type=Path, default=Path(tempfile.gettempdir()) / "ckptlog-live")
    run.set_defaults(call=_run)

    samples = commands.add_parser("samples", help="rewrite sample_logs/ from its scenarios")
    samples.add_argument("names", nargs="*", help="sample names (default: all)")
    samples.set_defaults(call=_samples)

    builds = commands.add_parser(
        "fixtures", help="play all scenarios on releases of xllamacpp, store logs and truth"
    )
    builds.add_argument("releases", nargs="*", help=f"PyPI versions (default: {' '.join(KEPT)})")
    builds.add_argument(
        "--only", action="append", default=[], metavar="SCENARIO", help="only this one (repeatable)"
    )
    builds.set_defaults(call=_fixtures)

    new = commands.add_parser(
        "build", help="what is new about a release: drift, unknown lines, disagreements"
    )
    new.add_argument("release", help="a PyPI version of xllamacpp, for example 2026.9.11063")
    new.add_argument(
        "--only", action="append", default=[], metavar="SCENARIO", help="only this one (repeatable)"
    )
    new.add_argument("-o", "--output", type=Path, help="keep the logs here (default: a temporary folder)")
    new.add_argument("--store", action="store_true", help="also store logs and truth as fixtures")
    new.set_defaults(call=_build)

    fuzz = commands.add_parser("fuzz", help="random conversations")
    fuzz.add_argument("--seconds", type=float, default=60)
    fuzz.add_argument("--seed", type=int, default=1)
    fuzz.add_argument("--release", help="another release of xllamacpp than this environment's")
    fuzz.set_defaults(call=_fuzz)

    arguments = parser.parse_args()
    code: int = arguments.call(arguments)
    return code


def _run(arguments: argparse.Namespace) -> int:
    from tests.live import scenario as sc
    from tests.live.play import play

    scenarios = sc.load()
    problems: list[str] = []
    for name in arguments.names or [n for n, s in scenarios.items() if not s.large]:
        for model in scenarios[name].models:
            truth = play(
                scenarios[name], model, newest(), models=arguments.models, folder=arguments.output / model
            )
            print(f"{name} on {model}")
            print("\n".join(f"  {line}" for line in truth.lines()))
            problems += truth.surprises()
    return _report(problems)


def _samples(arguments: argparse.Namespace) -> int:
    from tests.live.samples import write_samples

    return _report(write_samples(newest(), arguments.models, arguments.names))


def _fixtures(arguments: argparse.Namespace) -> int:
    from tests.live import fixtures

    problems: list[str] = []
    scenarios = _chosen(arguments.only)
    for name in arguments.releases or KEPT:
        release = environment(name)
        print(f"xllamacpp {release.version} (build {release.build})", flush=True)
        problems += fixtures.write(release, arguments.models, scenarios)
    return _report(problems)


def _chosen(names: list[str]) -> list[sc.Scenario]:
    """The scenarios named, else all that are not large."""
    from tests.live import scenario as sc

    return [s for n, s in sc.load().items() if (n in names if names else not s.large)]


def _build(arguments: argparse.Namespace) -> int:
    from tests.live.fixtures import store
    from tests.live.survey import survey

    release = environment(arguments.release)
    output = arguments.output or Path(tempfile.mkdtemp(prefix=f"ckptlog-{release.build}-"))
    result = survey(release, _chosen(arguments.only), arguments.models, output)
    print("\n".join(result.lines()))
    print(f"logs and truth files: {output}")
    if arguments.store:
        for model, name in result.played:
            store(output / model, release, model, name)
    return 0 if result.clean else 1


def _fuzz(arguments: argparse.Namespace) -> int:
    import ckptlog
    from tests.live import scenario as sc
    from tests.live.compare import compare
    from tests.live.generator import hunt
    from tests.live.play import play

    tried, release = [0], environment(arguments.release) if arguments.release else newest()

    with tempfile.TemporaryDirectory() as scratch:

        def disagreements(scenario: sc.Scenario) -> list[str]:
            truth = play(scenario, scenario.models[0], release, models=arguments.models, folder=Path(scratch))
            report = ckptlog.analyze(Path(scratch) / f"{scenario.name}.log").report
            tried[0] += 1
            return compare(truth, report).disagreements

        def check(scenario: sc.Scenario) -> None:
            assert not disagreements(scenario)

        found = hunt(check, seconds=arguments.seconds, first_seed=arguments.seed)
        print(f"{tried[0]} conversations tried, seed {arguments.seed}")
        if found is None:
            return 0
        named = sc.rename(found, f"found-{arguments.seed}")
        path = sc.FOUND / f"{named.name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(sc.to_json(named) + b"\n")
        print(f"a disagreement, saved as a scenario: {path}")
        return _report(disagreements(named))


def newest() -> Release:
    """The release of xllamacpp in this environment."""
    release = installed()
    if release is None:
        sys.exit("xllamacpp is not installed: pip install 'ckptlog[live]'")
    return release


def _report(problems: list[str]) -> int:
    for problem in problems:
        print(f"! {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
