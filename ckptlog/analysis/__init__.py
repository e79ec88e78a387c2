"""The one door: ``analyze(paths)`` gives an ``Analysis``; ``Analyzer`` is the same, fed piece by piece."""

from ckptlog.analysis.analysis import Analysis
from ckptlog.analysis.analyze import analyze
from ckptlog.analysis.analyzer import Analyzer

__all__ = ["Analysis", "Analyzer", "analyze"]
