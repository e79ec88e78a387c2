"""The CI gate: a policy applied to logs. ``assert_passes`` is for tests of one's own."""

from __future__ import annotations

import os

__all__ = ["assert_passes"]


def assert_passes(
    log: str | os.PathLike[str],
    policy: str | os.PathLike[str] | None = None,
    baseline: str | os.PathLike[str] | None = None,
) -> None:
    """Raise ``AssertionError`` with the gate's own message unless ``log`` passes the gate.

    ``policy`` and ``baseline`` are files as for ``ckptlog gate``; without a policy that of the working
    directory counts, else the default one. A log or file that can't be used raises
    ``ckptlog.errors.CkptlogError``; a log without a turn does not pass.
    """
    from ckptlog.gate.baseline import read_baseline
    from ckptlog.gate.policy import find_policy
    from ckptlog.gate.run import run_gate
    from ckptlog.gate.text import render_text
    from ckptlog.intake.sources import expand

    # pytest leaves this frame out of a failure: the message says it all
    __tracebackhide__ = True
    chosen = find_policy(None if policy is None else os.fspath(policy))
    file = "" if baseline is None else os.fspath(baseline)
    paths = [source.path for source in expand([os.fspath(log)])]
    verdict, _ = run_gate(paths, chosen, read_baseline(file) if file else None, file)
    if not verdict.passed:
        raise AssertionError("\n".join(line.plain for line in render_text(verdict)))
