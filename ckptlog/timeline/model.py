"""The timeline's own objects: runs, slots' checkpoints, turns. Mutable while a log is read."""

from __future__ import annotations

from typing import Any

import msgspec

from ckptlog.intake.writer import Writer
from ckptlog.records import Basis, Ended, Fate, Fork, IncidentKind, Memory, Origin
from ckptlog.timeline.starts import NO_STARTS, Starts


class Checkpoint(msgspec.Struct, eq=False):
    """A context checkpoint of one slot: state before token ``n_tokens``; birth and death by line."""

    n_tokens: int
    pos_min: int | None
    pos_max: int | None
    size_mib: float | None
    run: int
    slot: int | None
    task: int | None
    line: int | None
    text: str | None = None
    origin: Origin = "created"
    fate: Fate = "live"
    fate_line: int | None = None
    fate_text: str | None = None
    fate_task: int | None = None
    restored_by: list[int] = []
    #: index of the turn that made it (in the run's order), for "turn 2 made it"
    turn_no: int | None = None


class Check(msgspec.Struct):
    """One "checking checkpoint with [pos_min, pos_max] against thold" line."""

    line: int
    text: str
    pos_min: int
    pos_max: int
    thold: int


class Shift(msgspec.Struct):
    line: int
    text: str
    n_keep: int
    n_left: int
    n_discard: int
    t: int | None = None
    variant: str | None = None

    @property
    def hole(self) -> tuple[int, int]:
        return self.n_keep, self.n_keep + self.n_discard


class Batch(msgspec.Struct):
    """One batch that slots share, as far as the log shows what they put into it."""

    #: of prompts whose part's end is known; and how many parts' is not (yet)
    n_tokens: int = 0
    n_open: int = 0
    #: slots that generated beside them
    answers: int = 0


class Quote(msgspec.Struct):
    """A raw line kept because it may become evidence."""

    line: int
    text: str


class FailedBatch(msgspec.Struct):
    """A batch that could not be evaluated, from its ``off``-th token on; ``ret`` is llama_decode's (null: not printed)."""

    off: int | None = None
    ret: int | None = None
    quote: Quote | None = None


class LastWord(msgspec.Struct):
    """A line that tells of a process's crash; ``how`` is the grammar's wording."""

    line: int
    text: str
    how: str


class Incident(msgspec.Struct):
    """Something outside of any turn, once or several times alike; ``how`` is the grammar's wording where it tells more."""

    kind: IncidentKind
    line: int
    last_line: int
    #: the first line as it stands in the log
    text: str
    count: int = 1
    #: the server's own words, and the HTTP status that it answered with
    message: str | None = None
    status: int | None = None
    how: str | None = None
    #: of a crash
    words: list[LastWord] = []


class Held(msgspec.Struct):
    """What a slot or a saved prompt that was compared with a new prompt holds: tokens; the furthest checkpoint within
    what they have in common (0: none), and the furthest of those that were erased."""

    n_tokens: int
    resume: int
    resume_once: int


#: the slot of a choice of which only the RAM cache's messages are in the log
NO_SLOT = -1


class Selection(msgspec.Struct):
    """How the slot was chosen and what the RAM prompt cache did, before the task was launched."""

    slot: int
    line: int
    how: str = "unknown"  # lcp, lcs, lru, id
    sim: float | None = None
    f_keep: float | None = None
    lcs_len: int | None = None
    #: exact common prefix per slot from "checking sim = s (lcp/n)", and n_prompt from the same
    slot_lcp: dict[int, int] = {}
    #: where the checkpoints of such a slot, or of such a candidate (by place), are known
    held: dict[int, Held] = {}
    held_saved: list[Held | None] = []
    n_prompt: int | None = None
    #: what a similarity must exceed (--slot-prompt-similarity)
    thold: float | None = None
    #: base values of "looking for better prompt"
    base_f_keep: float | None = None
    base_sim: float | None = None
    candidates: list[tuple[int, int, float, float]] = []  # n_tokens, lcp, f_keep, f_sim
    found: tuple[float, float] | None = None
    found_line: int | None = None
    found_text: str | None = None
    load_failed_line: int | None = None
    load_failed_text: str | None = None
    text: str | None = None
    #: the turn that was still at work on the slot when another request asked for it by number
    busy: Turn | None = None
    #: where the slot's old content was saved before the choice took effect
    saved_line: int | None = None
    #: whether the cache was listed behind the load: what was loaded is not among the entries any more
    listed: bool = False

    @property
    def chosen(self) -> int | None:
        """Which of the candidates was loaded: each must be better than those before it in both ratios."""
        fitting = [i for i, (_, _, f_keep, sim) in enumerate(self.candidates) if (f_keep, sim) == self.found]
        return max(fitting, key=lambda i: (self.candidates[i][1], -i), default=None)


class Dropped(msgspec.Struct):
    """Content the server no longer holds anywhere: a cache entry evicted, or a slot overwritten unsaved."""

    n_tokens: int
    line: int
    text: str | None
    why: str  # the words of verdict.returning


class Turn(msgspec.Struct):
    """One task on one slot. Figures as in the contract; lists in log order unless said otherwise."""

    no: int  # 1-based number in the run's order of beginning
    run: int
    source: int
    slot: int | None
    task: int | None
    first_line: int
    last_line: int
    t_start: int | None = None
    t_end: int | None = None
    child_of: int | None = None
    is_child: bool = False
    ended: Ended = "cut"
    start_seen: bool = False
    released: bool = False
    finished: bool = False
    #: the slot went on to another turn, and no release of this one was seen: lines are missing
    end_missed: bool = False

    n_ctx_slot: int | None = None
    n_keep: int | None = None
    n_prompt: int | None = None
    n_common: int | None = None
    n_common_slot: int | None = None
    n_common_range: tuple[int, int] | None = None
    n_known: int | None = None
    n_cached: int | None = None
    #: where ``n_cached`` is null: what it must lie between
    n_cached_range: tuple[int, int] | None = None
    n_processed: int | None = None
    n_generated: int | None = None
    truncated: bool | None = None
    prompt_ms: float | None = None
    generation_ms: float | None = None
    basis: dict[str, Basis] = {}

    #: tokens in the slot when it was chosen / after a cache load / at release
    n_held_slot: int | None = None
    n_held: int | None = None
    n_released: int | None = None
    was_empty: bool | None = None
    selection: Selection | None = None
    cache_loaded: bool = False
    cache_lcp: int | None = None
    #: the common prefix at the search, where a fork prints it
    n_common_printed: int | None = None
    content_from: str = "slot"  # slot, prompt-cache, slot-file

    new_prompt_line: int | None = None
    checks: list[Check] = []
    memory_state: tuple[int, int, int, int | None] | None = None  # n_past, n_held, pos_min, n_swa
    memory_state_quote: Quote | None = None
    forced: Quote | None = None
    restored: Checkpoint | None = None
    restored_at: tuple[int | None, int | None] | None = None  # n_tokens, n_past of the line
    restored_quote: Quote | None = None
    restore_failed: Quote | None = None
    need_one_token: Quote | None = None
    #: the server could not cut its memory back to the reuse point, and cleared it
    memory_cleared: Quote | None = None
    #: messages of batches, checkpoints and shifts that were kept
    n_kept: int = 0
    chunk_moves: int = 0
    chunk_end: int | None = None
    input_truncated: Quote | None = None
    batch_starts: list[int] = []
    #: how many of them were seen before another slot at work at the same time, or an image, could cut them; null if
    #: none could
    n_alone: int | None = None
    #: the batches that the last of them began, from where others may share them
    batches: list[Batch] = []
    #: those of them at which an image was processed first; whether there was one at all
    media_starts: list[int] = []
    #: the prompt was cut where a checkpoint is made, and no line says that one was
    cut_silently: bool = False
    cut_by_media: bool = False
    progress: list[tuple[int, float]] = []  # n_tokens, fraction of "prompt processing"
    progress_end: int | None = None
    #: last "n_gen = N, tg = R t/s" before a shift: time in microseconds, tokens, tokens per second
    generation_mark: tuple[int, int, float] | None = None
    prompt_done: bool = False
    #: a sampler was set up or tokens were generated: a completion, whatever else is missing
    sampled: bool = False
    #: the timings are bare ones whose head, which names the slot, is missing
    timings_unnamed: bool = False
    has_draft: bool = False
    #: drafted tokens that were accepted, those behind the answer's end included
    n_accepted: int | None = None
    mismatch_seen: bool = False
    mismatch_old: str | None = None
    mismatch_new: str | None = None
    mismatch_ids: list[list[int]] = []
    stop_reason: str | None = None  # eos, limit, context (debug lines only)
    empty_prompt: bool = False

    shifts: list[Shift] = []
    #: what was said of the process's crash that ended the turn, what tells most first
    crash: list[LastWord] = []
    error: Quote | None = None
    error_reason: str | None = None
    error_fields: dict[str, Any] = {}
    #: the batch whose failure ended the turn
    failed_batch: FailedBatch | None = None
    cancel: Quote | None = None
    #: that the server was told to stop while the turn was open, and did before its answer was complete
    stopped: Quote | None = None
    #: that the router before this server had given up waiting for its answer
    router_gave_up: Quote | None = None
    #: the decoding was broken off, perhaps because another request was cancelled (ik_llama.cpp)
    decode_cancelled: Quote | None = None
    release_quote: Quote | None = None
    selected_quote: Quote | None = None
    #: another request asked for the slot by number meanwhile; and a saved prompt was loaded into it for that request
    disturbed: Quote | None = None
    swapped: Quote | None = None
    #: that came before the turn's own prompt was looked at: what was in common and reused is of the other prompt
    spoilt_start: bool = False

    #: checkpoint lists; null where the level hides them
    list_visible: bool | None = None
    before: list[Checkpoint] | None = None
    before_known: bool = False
    created: list[Checkpoint] = []
    evicted: list[Checkpoint] = []
    thinned: list[Checkpoint] = []
    superseded: list[Checkpoint] = []
    invalidated: list[Checkpoint] = []
    cleared: list[Checkpoint] = []
    after: list[Checkpoint] | None = None
    #: checkpoints that are gone but would fit the content this turn found, newest death last
    dead: list[Checkpoint] = []
    #: what happened to the slot's list before this turn: "shift", "slot-file", "cleared", ...
    list_lost: list[tuple[str, int | None, str | None]] = []
    #: content dropped from slots and cache so far that this prompt might have used
    dropped: list[Dropped] = []
    #: the turn that left what the slot held (after a cache load), for triggers
    previous: Turn | None = None
    #: of the content that this turn found, up to the common prefix and beyond
    starts: Starts = NO_STARTS
    #: tokens at the slot's beginning that came from a slot file without checkpoints
    bare_until: int = 0
    #: tokens at its beginning that came back from the RAM prompt cache before this turn
    came_back_until: int = 0
    #: what had replaced the content for which the restored checkpoint was made: ("shift" | "slot-file", line, text)
    stale: tuple[str, int, str | None] | None = None


class Cuts(msgspec.Struct):
    """What the prompts of a run have shown of the sizes of its batches so far (``batch_sizes``)."""

    #: distances from the end at which all were cut that are longer; null before the first
    distances: set[int] | None = None
    #: how much of a prompt was evaluated, at most: a cut further from its end would not have shown
    reach: int = 0
    #: n_ubatch is at most this: a batch that ended so far before the end made no checkpoint
    most: int | None = None
    #: full batches by size, and the largest step from one to the next
    full: dict[int, int] = {}
    largest: int = 0


#: builds by which the ends of a wording's range may be off: not every build was read
SLACK = 200


class Run(msgspec.Struct):
    """One server process, as far as the log describes it."""

    no: int
    source: int
    first_line: int
    last_line: int
    writer: Writer | None = None
    port: int | None = None
    t0: int | None = None
    build_text: str | None = None
    build: int | None = None
    build_min: int = 0
    build_max: int | None = None
    #: a slot was given by age although it held much of the prompt: --slot-prompt-similarity 0
    slots_not_compared: bool = False
    bracket_broken: bool = False
    fork: Fork | None = None
    model: str | None = None
    arch: str | None = None
    has_recurrent: bool = False
    has_attention: bool = False
    has_swa_cache: bool = False
    swa_full: bool = False
    n_swa: int | None = None
    swa_cells: int | None = None
    no_partial_removal: bool = False
    n_slots: int | None = None
    n_ctx_slot: int | None = None
    n_batch: int | None = None
    n_ubatch: int | None = None
    #: where the log does not print them: what they are learned from
    cuts: Cuts | None = None
    kv_unified: bool | None = None
    #: a slot's share of -c, where it gets less than that: the model was not trained for so much, or
    #: --kv-unified-per-slot says so
    n_ctx_share: int | None = None
    n_ctx_train: int | None = None
    checkpoints_enabled: bool | None = None
    checkpoints_max: int | None = None
    checkpoints_min_step: int | None = None
    prompt_cache_mib: float | None = None
    prompt_cache_enabled: bool | None = None
    #: prompts that it let go or did not take for want of room
    prompt_cache_dropped: int = 0
    context_shift: bool | None = None
    shift_unsupported: bool = False
    #: started with --embeddings: it then answers embedding, rerank and chat requests alike
    embeds: bool = False
    #: Ollama runs it, and sets its flags
    ollama: bool = False
    slots_debug: bool = False
    verbosity: int | None = None
    start_seen: bool = False
    prefixed: bool = False
    #: kinds of memory hints read from checkpoint lines
    cp_equal: int = 0  # checkpoint lines with pos_min == pos_max
    cp_wide: int = 0  # with pos_min < pos_max
    n_created: int = 0
    #: prompts cut for a checkpoint of which no line tells
    n_cut_silently: int = 0
    #: finished prompts (of a length that makes a checkpoint) whose list would have been shown
    n_prompts_shown: int = 0
    #: "new prompt" lines
    n_new_prompts: int = 0
    #: turns whose release, and whose timing, is in the log
    n_releases: int = 0
    n_timed: int = 0
    cp_size_mib: float | None = None
    #: the last lines that tell of a crash, and the line up to which the server spoke before them
    last_words: list[LastWord] = []
    spoke_until: int = 0
    #: the last line that tells of a stop that was asked for, and the first since the last turn began, the ``stop_turns``-th
    stopped: int | None = None
    stop: Quote | None = None
    stop_turns: int = 0
    #: whether it is a program that says so
    says_stops: bool = False
    #: what happened outside of turns; errors of a start that may yet go well, and whether the model was loaded
    incidents: list[Incident] = []
    start_errors: list[Incident] = []
    loaded: bool = False
    #: the last error of a slot's file
    file_error: Quote | None = None
    turns: list[Turn] = []
    checkpoints: list[Checkpoint] = []
    n_turns: int = 0

    @property
    def told_build(self) -> int | None:
        """The build as printed, unless it can't be: one of llama.cpp's that the wordings rule out is the number of a
        shallow clone (1), or of a copy with a history of its own. A fork's own number is told as it is."""
        build = self.build
        if build is None or self.fork is not None or self.bracket_broken:
            return build
        return build if self.build_min - SLACK <= build <= (self.build_max or build) + SLACK else None

    @property
    def n_ctx(self) -> int | None:
        """Tokens of all slots together; null where the log doesn't tell whether they share them."""
        if self.kv_unified is None or self.n_ctx_slot is None:
            return None
        share = self.n_ctx_share or self.n_ctx_slot
        if self.kv_unified:
            return share
        return self.n_slots * share if self.n_slots is not None else None

    @property
    def memory(self) -> Memory:
        """The memory kind, from libllama's lines, else from checkpoint positions; else unknown."""
        if self.has_recurrent:
            return "hybrid" if self.has_attention else "recurrent"
        if self.has_swa_cache or (self.n_swa or 0) > 0:
            return "swa"
        if self.n_swa == 0 and self.has_attention:
            return "plain"
        if self.no_partial_removal:
            return "hybrid"
        if self.cp_wide:
            return "swa"
        if self.cp_equal:
            return "hybrid"
        return "unknown"
