"""The Rich console that results are written with: into memory, as text and never as markup."""

from __future__ import annotations

import io
import os

from rich.console import Console


def memory_console(width: int, *, terminal: bool) -> Console:
    """For what goes to a ``terminal`` or elsewhere: colour only there, and without ``NO_COLOR``."""
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="auto" if colour else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
