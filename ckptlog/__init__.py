"""ckptlog: reads llama-server logs and says, turn by turn, what went wrong and why.

``ckptlog.analyze(paths)`` is the public call; it gives an :class:`Analysis` (docs/python.md).
Both names are loaded on first use: ``import ckptlog`` and ``ckptlog --help`` pay for neither
Polars nor Lark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckptlog.analysis.analysis import Analysis
    from ckptlog.analysis.analyze import analyze

__version__ = "0.1.0"

__all__ = ["Analysis", "__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """The public names that cost an import of Polars."""
    if name in ("analyze", "Analysis"):
        from ckptlog import analysis

        return getattr(analysis, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
