"""``python -m ckptlog.cli``: the same as the ``ckptlog`` command."""

from __future__ import annotations

from ckptlog.cli import command

command()
