"""Who writes into a log: the name that the wrapper gives a server."""

from __future__ import annotations

from typing import NamedTuple


class Writer(NamedTuple):
    """A server as the wrapper names it.

    ``program`` is the name without a process number: another process of it may be the same server, started anew.
    """

    name: str
    program: str
