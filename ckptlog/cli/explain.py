"""``ckptlog explain``: what the words of a report mean."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from ckptlog.cli.common import OutputOption, console, deliver, rendered
from ckptlog.errors import UsageError


def explain(
    name: Annotated[
        str | None, typer.Argument(help="An outcome, variant, cause, trigger, fix or other word of a report.", show_default=False)
    ] = None,
    output: OutputOption = None,
) -> None:
    """Explain an outcome, variant, cause, trigger, fix or other word; list them without NAME.

    \b
    Examples:
      ckptlog explain
      ckptlog explain checkpoint-evicted
    """
    from ckptlog.report.explain import render_entries, render_listing
    from ckptlog.verdict.catalogue import entries

    screen = console(output)
    catalogue = entries()
    if name is None:
        deliver(rendered(screen, render_listing(catalogue, screen.width)), output)
        return
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    # the same word may be an outcome and a cause: all that bear it are told
    found = [entry for entry in catalogue if entry.name == wanted]
    if not found:
        names = list(dict.fromkeys(entry.name for entry in catalogue))
        near = [each for each in names if wanted in each] or difflib.get_close_matches(wanted, names, n=1)
        hint = (
            f"; did you mean {' or '.join(near[:3])}?"
            if wanted and near
            else "; `ckptlog explain` lists them all"
        )
        raise UsageError(f"nothing is called {name!r}{hint}")
    deliver(rendered(screen, render_entries(found, screen.width)), output)
