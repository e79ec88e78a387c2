"""Real logs as followed runs, each analysed once a session."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import ckptlog
from ckptlog.replay.follow import Followed, follow
from ckptlog.replay.from_timeline import NotReplayable, run_from_timeline

LOGS = Path(__file__).parent.parent / "data" / "logs"


@cache
def followed_runs(name: str) -> tuple[Followed, ...]:
    """The runs of LOGS/name.log.gz under their own flags; those that can't be replayed are left out."""
    found = []
    for run in ckptlog.analyze(LOGS / f"{name}.log.gz").timeline:
        try:
            found.append(follow(run_from_timeline(run)))
        except NotReplayable:
            continue
    return tuple(found)


@cache
def truth(name: str) -> dict[str, Any]:
    """What the client of that recording saw."""
    found: dict[str, Any] = json.loads(gzip.decompress((LOGS / f"{name}.truth.json.gz").read_bytes()))
    return found


def all_names() -> list[str]:
    """BUILD/MODEL/SCENARIO of every recording."""
    return sorted(
        str(path.relative_to(LOGS)).removesuffix(".log.gz").replace("\\", "/")
        for path in LOGS.glob("*/*/*.log.gz")
    )
