"""The bundled sample logs show what their index says, and the index is the scenarios'."""

from __future__ import annotations

import tomllib

import pytest

import ckptlog
from tests.live import scenario as sc
from tests.live.samples import FOLDER, MAX_BYTES, index

INDEX = tomllib.loads((FOLDER / "index.toml").read_text())["sample"]


@pytest.mark.parametrize("sample", INDEX, ids=lambda s: s["name"])
def test_a_sample_shows_what_the_index_says(sample: dict[str, str]) -> None:
    path = FOLDER / sample["file"]
    assert path.stat().st_size <= MAX_BYTES
    analysis = ckptlog.analyze(path)
    wanted = {key: sample[key] for key in ("outcome", "variant", "cause") if key in sample}
    turns = [{key: getattr(turn, key) for key in wanted} for turn in analysis.report.turns]
    assert wanted in turns
    assert analysis.drift == []


def test_the_index_is_up_to_date() -> None:
    samples = {name: s for name, s in sc.load().items() if s.sample}
    assert (FOLDER / "index.toml").read_text() == index(samples)
