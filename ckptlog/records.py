"""What ckptlog tells the world: the records behind the JSON report and the Polars frames.

Every figure may be null: a null is an honest "the log does not say". Token counts are
integers, times are seconds since the run's start, ``*_ms`` are milliseconds, ``*_mib`` are
MiB, line numbers are 1-based in the file as it is after decompression.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = 1

Outcome = Literal[
    "arrival-rejection",
    "limit-stop",
    "context-shift",
    "checkpoint-reprefill",
    "reused",
    "restored",
    "cold",
    "cancelled",
    "error",
    "not-completion",
    "unknown",
]
FAILURES: tuple[Outcome, ...] = (
    "arrival-rejection",
    "context-shift",
    "limit-stop",
    "checkpoint-reprefill",
)
HEALTHY: tuple[Outcome, ...] = ("reused", "restored", "cold")

Basis = Literal["observed", "derived", "inferred"]
#: what may happen outside of any turn
IncidentKind = Literal["start-failed", "request-failed", "slot-file-failed", "model-unloaded", "server-ended"]
Ended = Literal["release", "cancel", "error", "cut", "restart"]
#: a build of the form of 2024, and of forks that kept it, is "tagged" where no line tells which
Fork = Literal["ik_llama.cpp", "tagged"]
Memory = Literal["plain", "swa", "hybrid", "recurrent", "unknown"]
Fate = Literal["live", "evicted", "thinned", "superseded", "invalidated", "cleared"]
Origin = Literal["created", "prompt-cache", "slot-file", "copied"]


class Tool(msgspec.Struct):
    name: str
    version: str


class SourceRecord(msgspec.Struct):
    """One input file, as it was read."""

    path: str
    lines: int = 0
    bytes: int = 0
    encoding: str = "utf-8"
    compression: str | None = None
    wrapper: str | None = None
    format: Literal["prefixed", "legacy", "jsonl", "tagged", "mixed"] | None = None
    drifted_lines: int = 0
    unknown_slot_lines: int = 0


class CheckpointSettings(msgspec.Struct):
    enabled: bool
    max: int | None = None
    min_step: int | None = None


class IncidentRecord(msgspec.Struct):
    """Something that happened outside of any turn, once or several times alike."""

    kind: IncidentKind
    #: of the first and the last
    lines: tuple[int, int]
    count: int
    #: the HTTP status of the answer; the server's own words, where there are any; what it comes to, in sentences
    status: int | None
    message: str | None
    says: str
    #: the first line as it stands in the log
    text: str


class RunRecord(msgspec.Struct):
    """One server process."""

    run: int
    source: int
    lines: tuple[int, int]
    build: str | None = None
    build_min: int | None = None
    build_max: int | None = None
    model: str | None = None
    arch: str | None = None
    memory: Memory = "unknown"
    n_swa: int | None = None
    n_slots: int | None = None
    n_ctx_slot: int | None = None
    checkpoints: CheckpointSettings | None = None
    prompt_cache_mib: float | None = None
    context_shift: bool | None = None
    slots_debug: bool = False
    verbosity: int | None = None
    port: int | None = None
    #: what the log's wrapper calls the server, where several write into one file
    server: str | None = None
    #: whether all slots draw on one KV cache (``n_ctx_slot`` is then a slot's limit, not its share)
    kv_unified: bool | None = None
    #: tokens of all slots together, where ``kv_unified`` is known
    n_ctx: int | None = None
    #: prompts that the RAM prompt cache let go or did not take for want of room
    prompt_cache_dropped: int = 0
    #: whose build it is where it is not llama.cpp's of today; null: llama.cpp's, as far as the log shows
    fork: Fork | None = None
    #: what happened outside of turns
    incidents: list[IncidentRecord] = []


class MismatchRecord(msgspec.Struct):
    """Where the new prompt parts from what the slot held: token index and the texts behind the bar."""

    pos: int | None = None
    old: str | None = None
    new: str | None = None


class TurnCheckpoints(msgspec.Struct):
    """Checkpoint positions (n_tokens) around one turn, each list in order of n_tokens."""

    before: list[int] = []
    created: list[int] = []
    restored: int | None = None
    evicted: list[int] = []
    thinned: list[int] = []
    superseded: list[int] = []
    invalidated: list[int] = []
    cleared: list[int] = []
    after: list[int] = []


class ShiftRecord(msgspec.Struct):
    """One context shift; ``hole`` is the half-open range of deleted positions."""

    line: int
    n_keep: int
    n_left: int
    n_discard: int
    hole: tuple[int, int]
    variant: str | None = None


#: what a line of evidence shows that reports gather turns by, whatever their outcome
Mark = Literal["slot-swapped", "slept", "purged", "cleared", "client-gone", "broken-off", "server-stopped", "drafts-left-behind", "parted"]


class Evidence(msgspec.Struct, omit_defaults=True):
    """A quoted log line and, in words, what it shows; most have no ``mark``."""

    source: int
    line: int
    text: str
    says: str
    mark: Mark | None = None


class Fix(msgspec.Struct):
    """One thing to do; ``flags`` is what to add to the server's command line (may be empty)."""

    name: str
    text: str
    flags: list[str] = []


class TurnRecord(msgspec.Struct):
    """One task on one slot, from its launch (or rejection) to its release."""

    source: int
    run: int
    slot: int | None
    task: int | None
    child_of: int | None
    lines: tuple[int, int]
    t_start: float | None
    t_end: float | None
    ended: Ended
    outcome: Outcome
    severity: Literal["harmless", "costly"] | None
    failed: bool
    also: list[Outcome]
    variant: str | None
    trigger: str | None
    cause: str | None
    confidence: Basis
    n_prompt: int | None
    n_common: int | None
    n_common_slot: int | None
    n_common_range: tuple[int, int] | None
    n_known: int | None
    n_cached: int | None
    n_processed: int | None
    n_generated: int | None
    n_lost: int | None
    truncated: bool | None
    prompt_ms: float | None
    generation_ms: float | None
    lost_ms: float | None
    basis: dict[str, Basis]
    mismatch: MismatchRecord | None
    checkpoints: TurnCheckpoints | None
    shifts: list[ShiftRecord]
    evidence: list[Evidence]
    fixes: list[Fix]
    #: sentences for a person: what happened, what does not help, what would tell more
    headline: str = ""
    explanation: str = ""
    not_fixes: list[Fix] = []
    missing: list[str] = []


class CheckpointRecord(msgspec.Struct):
    """One context checkpoint, from birth to death."""

    run: int
    slot: int | None
    task: int | None
    line: int | None
    origin: Origin
    n_tokens: int
    pos_min: int | None
    pos_max: int | None
    size_mib: float | None
    fate: Fate
    fate_line: int | None
    fate_task: int | None
    restored_by: list[int]


class Summary(msgspec.Struct):
    turns: int = 0
    failed: int = 0
    by_outcome: dict[str, int] = {}
    by_cause: dict[str, int] = {}
    n_prompt: int = 0
    n_cached: int = 0
    n_processed: int = 0
    n_lost: int = 0
    lost_ms: float = 0.0
    #: n_cached / n_prompt over the turns in which both are known (rejections and children left out)
    reuse: float | None = None


class Report(msgspec.Struct):
    """The whole JSON report of ``ckptlog diagnose --format json``."""

    schema: int
    tool: Tool
    sources: list[SourceRecord]
    runs: list[RunRecord]
    turns: list[TurnRecord]
    checkpoints: list[CheckpointRecord]
    summary: Summary
    #: what was not read, or not kept, in sentences
    warnings: list[str] = []
    #: how many turns, runs, checkpoints ... a limit kept out (usually empty)
    left_out: dict[str, int] = {}
