"""Times whole commands side by side on big logs, and writes the tables of benchmarks/README.md.

    python benchmarks/run.py                 # everything; takes a while, needs 3 GB of disk for a time
    python benchmarks/run.py --quick         # the 200 MB log only, 3 rounds, nothing written
    python benchmarks/run.py --peers PYTHON  # an interpreter that has kvprof and fbc-cache-lint

Without --peers both are installed into a virtual environment of their own first. The logs are made
from real ones (make_log.py) in a temporary folder and deleted again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import watch_latency
from measure import Candidate, compare

HERE = Path(__file__).resolve().parent
PEERS = ("kvprof==0.2.0", "fbc-cache-lint==0.1.0")
KVPROF = "import sys; from kvprof.backends.llamacpp.serverlog import parse_server_log; parse_server_log(sys.argv[1])"
MARKS = ("<!-- results -->", "<!-- end of results -->")


def peers_python(folder: Path) -> str:
    """An interpreter with the peers, made for this run."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def make(log: Path, megabytes: float, level: int = 4, slots: int = 4) -> None:
    """A log, made in another process: what this one held would count as the peak of all it starts."""
    command = [sys.executable, str(HERE / "make_log.py"), str(log)]
    options = {"--megabytes": megabytes, "--level": level, "--slots": slots}
    subprocess.run([*command, *(str(word) for pair in options.items() for word in pair)], check=True)


def diagnose(log: Path, name: str = "ckptlog diagnose") -> Candidate:
    """The command whole: reading, judging, the JSON report."""
    command = [sys.executable, "-m", "ckptlog", "diagnose", str(log), "--format", "json"]
    return Candidate(name, command, {"PYTHONPATH": str(HERE.parent)})


def candidates(log: Path, peers: str) -> list[Candidate]:
    found = [
        diagnose(log),
        Candidate("kvprof (its parser)", [peers, "-c", KVPROF, str(log)]),
        Candidate(
            "fbc-cache-lint report",
            [peers, "-m", "fbc.cachelint.cli", "report", "--json", "--fail-on", "none", str(log)],
            good=(0, 1),
        ),
        Candidate("wc -l", ["wc", "-l", str(log)]),
    ]
    if shutil.which("rg"):
        found.append(Candidate("rg -c checkpoint", ["rg", "-c", "checkpoint", str(log)]))
    elif shutil.which("grep"):
        found.append(Candidate("grep -c checkpoint", ["grep", "-c", "checkpoint", str(log)]))
    return found


def table(log: Path, found: list[Candidate]) -> list[str]:
    size = log.stat().st_size / 1e6
    ours = found[0].median("cpu")
    lines = [
        "| command | CPU s (median) | wall s (median) | wall s (best) | MB per CPU second | peak MiB | CPU against ckptlog |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        cpu = one.median("cpu")
        lines.append(
            f"| {one.name} | {cpu:.2f} | {one.median('wall'):.2f} | {one.best('wall'):.2f} | {size / cpu:,.0f} "
            f"| {one.median('peak_mib'):.0f} | {cpu / ours:.2f} x |"
        )
    return lines


def side_by_side(folder: Path, peers: str, rounds: int, megabytes: float) -> list[str]:
    out: list[str] = []
    for level in (4, 5):
        log = folder / f"lv{level}.log"
        make(log, megabytes, level)
        lines = count_lines(log)
        print(f"-lv {level}: {log.stat().st_size:,} bytes, {lines:,} lines", flush=True)
        found = candidates(log, peers)
        compare(found, rounds)
        fastest = min(found[1:3], key=lambda one: one.median("wall"))
        out += [f"### A log of -lv {level}: {log.stat().st_size / 1e6:.0f} MB, {lines:,} lines", ""]
        out += table(log, found)
        wall, cpu = (fastest.median(what) / found[0].median(what) for what in ("wall", "cpu"))
        out += [
            "",
            f"ckptlog against the faster peer ({fastest.name}): {wall:.1f} times its throughput by the clock, "
            f"{cpu:.1f} times for each CPU second.",
            "",
        ]
        log.unlink()
    return out


def count_lines(log: Path) -> int:
    with log.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 22), b""))


def curve(folder: Path, rounds: int, sizes: list[int]) -> list[str]:
    out = ["### By size", "", "| log | MB | CPU s | MB per CPU second | peak MiB |", "|---|---|---|---|---|"]
    for level, size in [(level, size) for level in (4, 5) for size in sizes]:
        log = folder / "curve.log"
        make(log, size, level)
        one = diagnose(log, f"-lv {level}, {size} MB")
        compare([one], rounds if size <= 200 else 1)
        megabytes = log.stat().st_size / 1e6
        out.append(
            f"| -lv {level} | {megabytes:,.0f} | {one.median('cpu'):.2f} | {megabytes / one.median('cpu'):.0f} | {one.median('peak_mib'):.0f} |"
        )
        log.unlink()
    return [*out, ""]


def by_slots(folder: Path, rounds: int, megabytes: float) -> list[str]:
    out = [
        f"### By slots ({megabytes:.0f} MB of -lv 4)",
        "",
        "| slots | CPU s | MB per CPU second | peak MiB |",
        "|---|---|---|---|",
    ]
    for slots in (1, 2, 4, 8, 16):
        log = folder / "slots.log"
        make(log, megabytes, 4, slots)
        one = diagnose(log, f"{slots} slots")
        compare([one], rounds)
        size = log.stat().st_size / 1e6
        out.append(
            f"| {slots} | {one.median('cpu'):.2f} | {size / one.median('cpu'):.0f} | {one.median('peak_mib'):.0f} |"
        )
        log.unlink()
    return [*out, ""]


def machine(rounds: int) -> list[str]:
    model = next(
        (line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("polars", "lark"))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"{os.cpu_count()} cores ({model}), {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{versions}, {', '.join(PEERS)}; {rounds} rounds, the commands taking turns; load of the machine at the end: {load}.",
        "",
    ]


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


def write(lines: list[str]) -> None:
    """Put the results between the marks of the README."""
    readme = HERE / "README.md"
    text = readme.read_text()
    head, rest = text.split(MARKS[0], 1)
    readme.write_text(
        head + MARKS[0] + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + MARKS[1] + rest.split(MARKS[1], 1)[1]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time whole commands side by side on big logs.")
    parser.add_argument("--quick", action="store_true", help="the 200 MB logs only; nothing is written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--largest", type=int, default=2000, help="the last size of the curve, in MB")
    parser.add_argument("--peers", help="a Python that has kvprof and fbc-cache-lint")
    options = parser.parse_args()
    rounds = min(options.rounds, 3) if options.quick else options.rounds
    with tempfile.TemporaryDirectory(prefix="ckptlog-bench-") as name:
        folder = Path(name)
        peers = options.peers or peers_python(folder / "peers")
        lines = side_by_side(folder, peers, rounds, options.megabytes)
        if not options.quick:
            sizes = [size for size in (10, 50, 200, 1000, 2000) if size < options.largest] + [options.largest]
            lines += curve(folder, min(rounds, 3), sizes)
            lines += by_slots(folder, min(rounds, 3), options.megabytes / 4)
            lines += ["### From a turn's last line to `watch` showing it", "", *watch_latency.table()]
    lines = machine(rounds) + lines
    print("\n".join(lines))
    if not options.quick:
        write(lines)


if __name__ == "__main__":
    main()
