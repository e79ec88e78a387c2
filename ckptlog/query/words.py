"""The closed word lists that filter expressions are checked against.

Outcomes and the like come from the records' own types. Variants, triggers and causes are open strings
in the records (a later version may add one without a new schema number), so they are listed here for
the check; a test holds them equal to what ``ckptlog explain`` knows.
"""

from __future__ import annotations

from typing import get_args

from ckptlog.records import Basis, Ended, Memory, Outcome

OUTCOMES: tuple[str, ...] = get_args(Outcome)
SEVERITIES: tuple[str, ...] = ("harmless", "costly")
BASES: tuple[str, ...] = get_args(Basis)
ENDS: tuple[str, ...] = get_args(Ended)
MEMORIES: tuple[str, ...] = get_args(Memory)

VARIANTS: tuple[str, ...] = (
    "near-miss",
    "oversized",
    "one-batch",
    "head",
    "history",
    "generated",
    "input",
    "full",
    "partial",
    "silent",
    "crash",
    "server-stopped",
)
TRIGGERS: tuple[str, ...] = (
    "appended",
    "edited",
    "prefix-rewritten",
    "reasoning-dropped",
    "repeated",
    "shrunk",
    "other-conversation",
)
CAUSES: tuple[str, ...] = (
    "checkpoints-disabled",
    "cache-off",
    "lora-changed",
    "server-rule",
    "restore-failed",
    "draft-left-behind",
    "slot-restored-bare",
    "cache-load-failed",
    "shift-cleared",
    "checkpoint-evicted",
    "checkpoint-thinned",
    "checkpoint-invalidated",
    "no-user-boundary",
    "before-first-boundary",
    "checkpoints-sparse",
    "slot-taken",
    "slot-swapped",
    "prompt-cache-evicted",
    "other-conversation",
    "unknown",
)
