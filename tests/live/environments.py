"""An environment of its own for any release of xllamacpp, made on first use."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True)
class Release:
    """One release of xllamacpp: its version and the interpreter that has it."""

    version: str
    python: str = sys.executable

    @property
    def build(self) -> str:
        """The llama.cpp build, ``b11549`` for 2026.10.11549 and ``b8672`` for 2026.4.8672.1."""
        return f"b{OLD_BUILDS.get(self.version) or self.version.split('.')[2]}"


#: what the releases before the numbering by date hold
OLD_BUILDS = {
    "0.2.0": 6301,
    "0.2.1": 6451,
    "0.2.2": 6628,
    "0.2.3": 6751,
    "0.2.4": 6900,
    "0.2.5": 7079,
    "0.2.6": 7079,
    "0.2.7": 7376,
    "0.2.8": 7551,
    "0.2.9": 7710,
    "0.2.10": 7827,
    "0.2.11": 7964,
    "0.2.12": 8156,
    "0.2.13": 8352,
    "0.2.14": 8352,
}


FOLDER = Path(tempfile.gettempdir())

#: The releases whose logs are kept as fixtures: a mid-2026 spread over the eras of the
#: checkpoint rules (ckptlog/server/builds.toml), and the newest.
KEPT = ("2026.4.8672.1", "2026.6.9713", "2026.8.10566", "2026.9.10809", "2026.10.11549")


def installed() -> Release | None:
    """The release in this environment, None without the ``live`` extra."""
    try:
        return Release(version("xllamacpp"))
    except PackageNotFoundError:
        return None


def environment(release: str, folder: Path = FOLDER) -> Release:
    """``release`` (``2026.6.9713``) ready to run: this environment's, else one made with venv and pip.

    Raises CalledProcessError if pip cannot install it.
    """
    here = installed()
    if here is not None and here.version == release:
        return here
    place = folder / f"venv-{release}"
    python = place / "bin" / "python"
    if not python.exists():
        print(f"making {place} with xllamacpp {release}", file=sys.stderr)
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"xllamacpp=={release}"], check=True)
    return Release(release, str(python))
