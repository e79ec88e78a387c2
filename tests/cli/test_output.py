"""``-o``: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptlog.cli.common import write_file
from ckptlog.errors import CkptlogError


def test_missing_folders_are_made(tmp_path: Path) -> None:
    write_file(str(tmp_path / "a" / "b" / "report.json"), b"{}")
    assert (tmp_path / "a" / "b" / "report.json").read_bytes() == b"{}"


def test_an_old_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")
    target.chmod(0o600)
    write_file(str(target), "new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["report.txt"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        write_file(str(tmp_path / "x"), "")
    finally:
        os.umask(mask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_file(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_failed_write_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.txt"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CkptlogError, match=r"can't write .*report\.txt: No space left on device"):
        write_file(str(target), "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.txt"]


@pytest.mark.parametrize("name", ["folder", "file/below", "nul\0byte", "x" * 300])
def test_what_can_not_be_written_is_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(CkptlogError, match="can't write"):
        write_file(str(tmp_path / name), "x")


def test_a_device_is_written_to(tmp_path: Path) -> None:
    write_file(os.devnull, "x")
    assert not Path(os.devnull).is_file()
