"""What is shown, to take away: a finding or the selected turns as Markdown, JSON or text."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from ckptlog.errors import CkptlogError, UsageError
from ckptlog.records import Report
from ckptlog.report.as_json import render_json
from ckptlog.report.digest import Selection
from ckptlog.report.markdown import render_markdown
from ckptlog.report.text import render_text

FORMATS = (".md", ".json", ".txt", ".svg")
_TEXT_WIDTH = 80


def cut_down(report: Report, numbers: Sequence[int]) -> tuple[Report, Selection | None]:
    """The report with only these turns, and which they are; unchanged if they are all."""
    if len(numbers) == len(report.turns):
        return report, None
    # imported here: with it comes Polars, which the first screen must not wait for
    from ckptlog.analysis.to_records import summarize

    turns = [report.turns[number - 1] for number in numbers]
    part = msgspec.structs.replace(report, turns=turns, summary=summarize(turns))
    return part, Selection(list(numbers), len(report.turns))


def as_markdown(report: Report, numbers: Sequence[int]) -> str:
    """These turns' report in Markdown."""
    return render_markdown(*cut_down(report, numbers))


def as_text(report: Report, numbers: Sequence[int], width: int = _TEXT_WIDTH) -> str:
    """These turns' report as ``ckptlog diagnose`` prints it without colour."""
    part, selection = cut_down(report, numbers)
    return "\n".join(line.plain.rstrip() for line in render_text(part, width, selection)) + "\n"


def exported(report: Report, numbers: Sequence[int], path: str) -> bytes:
    """The turns in the format that the file's name asks for.

    Raises UsageError for an ending that stands for none.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending == ".md":
        return as_markdown(report, numbers).encode("utf-8", "backslashreplace")
    if ending == ".json":
        data = render_json(cut_down(report, numbers)[0])
        return data if isinstance(data, bytes) else data.encode()
    if ending == ".txt":
        return as_text(report, numbers).encode("utf-8", "backslashreplace")
    raise UsageError(f"can't export to {path}: the name must end in {', '.join(FORMATS)}")


def write_new(path: str, data: bytes) -> None:
    """Write a file that isn't there yet; an existing one is never overwritten.

    Raises CkptlogError if it can't be written.
    """
    try:
        with open(os.path.expanduser(path), "xb") as file:
            file.write(data)
    except FileExistsError:
        raise CkptlogError(f"{path} is there already: give another name") from None
    except (OSError, ValueError) as error:
        raise CkptlogError(f"can't write {path}: {getattr(error, 'strerror', None) or error}") from None
