"""The filter language and the flat tables it speaks about.

``compile_filter`` serves ``--where`` and the TUI, ``compile_check`` the gate. Polars and Lark are
imported when one of them is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ckptlog.query.columns import TURN_COLUMNS
from ckptlog.query.errors import QueryError

if TYPE_CHECKING:
    from ckptlog.query.compile import CompiledCheck, CompiledFilter

__all__ = ["TURN_COLUMNS", "QueryError", "compile_check", "compile_filter"]


def compile_filter(text: str) -> CompiledFilter:
    """See ``ckptlog.query.compile.compile_filter``."""
    from ckptlog.query.compile import compile_filter as compile_

    return compile_(text)


def compile_check(text: str) -> CompiledCheck:
    """See ``ckptlog.query.compile.compile_check``."""
    from ckptlog.query.compile import compile_check as compile_

    return compile_(text)
