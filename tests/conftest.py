"""What tests share: the recorded logs, ways to analyse text without a file, and golden files.

A test with an argument ``log_name`` runs once for each recording in ``data/logs``.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ckptlog.analysis import Analysis, Analyzer
from ckptlog.intake.reader import Feeder
from ckptlog.intake.sources import Source
from ckptlog.records import Report, TurnRecord

# with it Python buffers nothing, and a fault of what is buffered at the end would not show
os.environ.pop("PYTHONUNBUFFERED", None)

DATA = Path(__file__).parent / "data"
LOGS = DATA / "logs"

Log = bytes | str | Sequence[str]


def log_names() -> list[str]:
    """BUILD/MODEL/SCENARIO of every recording."""
    return sorted(path.relative_to(LOGS).as_posix().removesuffix(".log.gz") for path in LOGS.glob("*/*/*.log.gz"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "log_name" in metafunc.fixturenames:
        metafunc.parametrize("log_name", log_names())


def as_bytes(log: Log) -> bytes:
    """A log given as bytes, as text, or as lines without their newlines."""
    if isinstance(log, bytes):
        return log
    text = log if isinstance(log, str) else "".join(line + "\n" for line in log)
    return text.encode("utf-8", "surrogateescape")


def analyse_log(log: Log, *, pieces: Iterable[bytes] | None = None) -> Analysis:
    """The analysis of a log in memory, which comes in as ``pieces`` if they are given."""
    source = Source("server.log")
    feeder, analyzer = Feeder(source), Analyzer()
    analyzer.begin(source)
    for piece in pieces if pieces is not None else (as_bytes(log),):
        for chunk in feeder.feed(piece):
            analyzer.feed(chunk)
    for chunk in feeder.finish():
        analyzer.feed(chunk)
    analyzer.finish()
    return Analysis(analyzer)


@dataclass(frozen=True)
class Recorded:
    """A recorded log and what the client of that server saw."""

    name: str

    @cached_property
    def data(self) -> bytes:
        return gzip.decompress((LOGS / f"{self.name}.log.gz").read_bytes())

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @cached_property
    def lines(self) -> list[str]:
        lines = self.text.split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    @cached_property
    def truth(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(gzip.decompress((LOGS / f"{self.name}.truth.json.gz").read_bytes()))
        return found

    @cached_property
    def analysis(self) -> Analysis:
        return analyse_log(self.data)

    @property
    def report(self) -> Report:
        return self.analysis.report

    @property
    def build(self) -> int:
        return int(self.name.split("/")[0][1:])

    @property
    def model(self) -> str:
        return self.name.split("/")[1]

    def turn(self, task: int) -> TurnRecord:
        """The one turn of that task."""
        (found,) = (turn for turn in self.report.turns if turn.task == task)
        return found


@cache
def _recorded(name: str) -> Recorded:
    return Recorded(name)


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], Recorded]:
    """``recorded("b11549/hybrid/lv4")``: a recording, analysed once a session."""
    return _recorded


@pytest.fixture(scope="session")
def analyse() -> Callable[..., Analysis]:
    """``analyse(log, pieces=None)``: see ``analyse_log``."""
    return analyse_log


#: where a line stands, and what stood on it: a wrapper or a fence moves and changes both
_PLACES = frozenset({"lines", "line", "fate_line"})
_FORM = frozenset({"path", "lines", "bytes", "encoding", "compression", "wrapper", "format"})


def plain_report(report: Report, *, places: bool = True) -> Any:
    """A report as JSON types, without what describes the file; without ``places`` also without lines and quotes."""
    found = msgspec.to_builtins(report)
    for source in found["sources"]:
        for name in _FORM:
            del source[name]
    return found if places else _without_places(found)


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        quote = "says" in value
        return {
            key: _without_places(inner)
            for key, inner in value.items()
            if key not in _PLACES and not (quote and key == "text")
        }
    if isinstance(value, list | tuple):
        return [_without_places(inner) for inner in value]
    return re.sub(r"\bline \d+", "line N", value) if isinstance(value, str) else value


def differences(one: Any, two: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """The places where two JSON values differ."""
    if isinstance(one, dict) and isinstance(two, dict):
        return [d for key in {**one, **two} for d in differences(one.get(key), two.get(key), f"{path}.{key}")]
    if isinstance(one, list | tuple) and isinstance(two, list | tuple) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{path}[{i}]")]
    return [] if one == two else [(path, one, two)]


@pytest.fixture(scope="session")
def changed() -> Callable[..., list[tuple[str, Any, Any]]]:
    """``changed(report, other, places=True)``: where two reports differ, apart from the file's own facts."""

    def compare(one: Report, two: Report, *, places: bool = True) -> list[tuple[str, Any, Any]]:
        return differences(plain_report(one, places=places), plain_report(two, places=places))

    return compare


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, bytes], None]:
    """Compare with ``golden/NAME`` beside the test, byte for byte, so that a reviewer sees a report as a report.

    ``CKPTLOG_UPDATE_GOLDEN=1 pytest FOLDER`` writes it anew, to be read in the diff.
    """

    def check(name: str, actual: bytes) -> None:
        path = request.path.parent / "golden" / name
        if os.environ.get("CKPTLOG_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(actual)
        assert path.exists(), f"no golden file {name}; make it with CKPTLOG_UPDATE_GOLDEN=1"
        assert actual.decode() == path.read_bytes().decode(), f"{name} changed"

    return check
