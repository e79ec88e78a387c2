"""Errors of a policy or a baseline file: which key, on which line, and what was probably meant."""

from __future__ import annotations

from ckptlog.errors import UsageError


class PolicyError(UsageError):
    """A policy that can't be used.

    ``key`` is the dotted path of the key (``gate.check[1].expr``), ``line`` its 1-based line in
    ``file`` as far as it can be told, ``details`` lines to show under the sentence (an expression with
    a caret).
    """

    def __init__(
        self, reason: str, file: str, key: str = "", line: int | None = None, details: tuple[str, ...] = ()
    ) -> None:
        self.reason = reason
        self.file = file
        self.key = key
        self.line = line
        self.details = details
        place = file if line is None else f"{file}, line {line}"
        super().__init__(f"{place}: {key}: {reason}" if key else f"{place}: {reason}")


class BaselineError(UsageError):
    """A baseline file that can't be read, is none, or has nothing on a log."""
