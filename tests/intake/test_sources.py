"""Arguments to sources: files, directories, globs, standard input; what can't be read is said."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ckptlog.errors import InputError, UsageError
from ckptlog.intake.sources import expand, in_reading_order


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "server.log",
        "server.log.1",
        "server.log.2.gz",
        "server.log.10.gz",
        "b10.log",
        "b9.log",
        "notes.md",
        "run.truth.json",
        ".hidden.log",
        "sub/deep.txt",
        "sub/.cache/x.log",
        "dated.log-20261130.zst",
        "out.jsonl",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("x\n")
    return tmp_path


def names(folder: Path, *args: str) -> list[str]:
    return [os.path.relpath(source.path, folder) for source in expand(args)]


def test_directory_in_natural_order_rotated_sets_oldest_first(folder: Path) -> None:
    assert names(folder, str(folder)) == [
        "b9.log",
        "b10.log",
        "dated.log-20261130.zst",
        "out.jsonl",
        "server.log.10.gz",
        "server.log.2.gz",
        "server.log.1",
        "server.log",
        "sub/deep.txt",
    ]


def test_glob_and_several_each_once(folder: Path) -> None:
    assert names(folder, f"{folder}/b*.log") == ["b9.log", "b10.log"]
    assert names(folder, f"{folder}/b10.log", f"{folder}/b*.log") == ["b10.log", "b9.log"]
    assert names(folder, f"{folder}/**/*.txt") == ["sub/deep.txt"]


def test_a_name_with_glob_characters_is_a_name_first(tmp_path: Path) -> None:
    (tmp_path / "run[1].log").write_text("x")
    assert names(tmp_path, f"{tmp_path}/run[1].log") == ["run[1].log"]


def test_standard_input() -> None:
    (source,) = expand(["-"])
    assert source.is_stdin
    assert source.name == "standard input"
    with pytest.raises(UsageError, match="only once"):
        expand(["-", "-"])
    with pytest.raises(UsageError, match="no log given"):
        expand([])


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arg, message in {
        "gone.log": "no such file: .*gone.log",
        "*.nothing": "no file matches .*nothing",
        "empty": "no log file in the directory .*empty",
    }.items():
        with pytest.raises(InputError, match=message) as caught:
            expand([f"{tmp_path}/{arg}"])
        assert caught.value.exit_code == 2
        assert "\n" not in str(caught.value)


def test_no_file_no_pipe(tmp_path: Path) -> None:
    path = tmp_path / "socket.log"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(InputError, match="neither a file nor a pipe"):
            expand([str(path)])
    (tmp_path / "dangling.log").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"can't read .*no such file"):
        expand([f"{tmp_path}/dangling.log"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.log"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(InputError, match="permission denied"):
        expand([str(path)])


def test_order_of_rotated_with_compression() -> None:
    given = ["a.log", "a.log.1", "a.log.2.gz", "a2.log", "a10.log"]
    assert in_reading_order(reversed(given)) == ["a.log.2.gz", "a.log.1", "a.log", "a2.log", "a10.log"]
