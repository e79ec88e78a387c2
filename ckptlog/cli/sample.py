"""``ckptlog sample``: the bundled sample logs."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from ckptlog.cli.common import OutputOption, deliver
from ckptlog.errors import CkptlogError, UsageError

_PACKAGE = Path(__file__).resolve().parent.parent
#: the copy in an installed wheel, the folder of a source checkout
_PLACES = (_PACKAGE / "_data" / "sample_logs", _PACKAGE.parent / "sample_logs")


def sample_folder() -> Path:
    """The folder with the sample logs and their ``index.toml``."""
    for place in _PLACES:
        if (place / "index.toml").is_file():
            return place
    raise CkptlogError("the sample logs are not installed with ckptlog; install it again")


def samples() -> dict[str, dict[str, Any]]:
    """The index by name: ``file``, ``shows`` (a sentence) and what a diagnosis must find."""
    index = tomllib.loads((sample_folder() / "index.toml").read_text(encoding="utf-8"))
    return {row["name"]: row for row in index["sample"]}


def sample(
    name: Annotated[str | None, typer.Argument(help="A sample's name.", show_default=False)] = None,
    output: OutputOption = None,
) -> None:
    """List the bundled sample logs, or print one as the server wrote it.

    \b
    Examples:
      ckptlog sample
      ckptlog sample evicted-system-prompt | ckptlog diagnose -
      ckptlog sample healthy -o healthy.log
    """
    index = samples()
    if name is None:
        deliver(_listing(index), output)
        return
    if name not in index:
        near = difflib.get_close_matches(name, index, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `ckptlog sample` lists them"
        raise UsageError(f"there is no sample {name!r}{hint}")
    deliver((sample_folder() / index[name]["file"]).read_bytes(), output)


def _listing(index: dict[str, dict[str, Any]]) -> str:
    from ckptlog.report.page import Page

    page = Page(80)
    for name, row in index.items():
        page.line(name)
        page.para(row["shows"], first="    ")
    return "".join(f"{line.plain}\n" for line in page.lines)
