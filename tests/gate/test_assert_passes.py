"""The gate inside someone's own tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ckptlog.errors import CkptlogError
from ckptlog.gate import assert_passes
from ckptlog.gate.errors import PolicyError

Log = Callable[[str], str]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_good_log_passes(log: Log) -> None:
    assert_passes(Path(log("b11549/hybrid/newconv_ck4_step8192")))


def test_a_bad_log_fails_with_the_gates_message(log: Log) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_passes(log("b11549/hybrid/newconv_ck2"))
    assert "x no checkpoint-reprefill: 2 turns" in str(raised.value)
    assert "checkpoint-evicted" in str(raised.value)


def test_a_policy_counts(log: Log, tmp_path: Path) -> None:
    (tmp_path / "lenient.toml").write_text("[gate]\nfail_on = []\n")
    assert_passes(log("b11549/hybrid/newconv_ck2"), policy=tmp_path / "lenient.toml")
    (tmp_path / "bad.toml").write_text("[gate]\nfailon = []\n")
    with pytest.raises(PolicyError):
        assert_passes(log("b11549/hybrid/newconv_ck2"), policy="bad.toml")


def test_a_log_without_a_turn_does_not_pass() -> None:
    Path("empty.log").write_bytes(b"")
    with pytest.raises(AssertionError, match=r"NOTHING TO JUDGE  empty\.log"):
        assert_passes("empty.log")
    with pytest.raises(CkptlogError):
        assert_passes("nowhere.log")
