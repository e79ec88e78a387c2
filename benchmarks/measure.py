"""What a whole process costs: wall time, CPU time of it and its children, peak memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Cost:
    """One run. Seconds and MiB."""

    wall: float
    cpu: float
    peak_mib: float


@dataclass
class Candidate:
    """A command that is compared with others, with the costs of its runs."""

    name: str
    command: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    #: exit codes that mean that it did its work
    good: tuple[int, ...] = (0,)
    costs: list[Cost] = field(default_factory=list)

    def median(self, what: str) -> float:
        return statistics.median(getattr(cost, what) for cost in self.costs)

    def best(self, what: str) -> float:
        return min(getattr(cost, what) for cost in self.costs)


def run(candidate: Candidate) -> Cost:
    """One run of a command, output thrown away. Raises RuntimeError if it fails.

    Byte code may be written: an installed package has it, and without it a start compiles all it imports anew.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.monotonic()
    # a real file, because some commands look for nothing when their output is /dev/null
    process = subprocess.Popen(
        candidate.command,
        env={**env, **candidate.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    while process.stdout.read(1 << 20):
        pass
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in candidate.good:
        raise RuntimeError(f"{candidate.name} ended with code {process.returncode}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def compare(candidates: Sequence[Candidate], rounds: int, say: bool = True) -> None:
    """Run all of them in turn, ``rounds`` times, so that a busy machine is busy for all."""
    for number in range(rounds):
        for candidate in candidates:
            cost = run(candidate)
            candidate.costs.append(cost)
            if say:
                print(
                    f"  round {number + 1}: {candidate.name:<28} {cost.cpu:7.2f} s CPU "
                    f"{cost.wall:7.2f} s wall {cost.peak_mib:7.0f} MiB",
                    flush=True,
                )
