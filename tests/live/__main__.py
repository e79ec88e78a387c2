"""``python -m tests.live``: play scenarios on the real server, write sample logs and fixtures."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.live.environments import KEPT, environment, installed
from tests.live.play import Release, play

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

    arguments = parser.parse_args()
    code: int = arguments.call(arguments)
    return code


def _run(arguments: argparse.Namespace) -> int:
    from tests.live import scenario as sc

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
    from tests.live import scenario as sc

    problems: list[str] = []
    scenarios = [s for n, s in sc.load().items() if (n in arguments.only if arguments.only else not s.large)]
    for name in arguments.releases or KEPT:
        release = environment(name)
        print(f"xllamacpp {release.version} (build {release.build})")
        problems += fixtures.write(release, arguments.models, scenarios)
    return _report(problems)


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
