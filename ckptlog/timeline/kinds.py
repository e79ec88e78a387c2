"""Which of the grammar's kinds the timeline reads, and of which it keeps the raw line."""

from __future__ import annotations

from ckptlog.timeline.cache import CANDIDATE_FIELDS, ENTRY_FIELDS
from ckptlog.timeline.dialect import SAME_AS
from ckptlog.timeline.incidents import LOAD_ERROR, OF_FILES
from ckptlog.timeline.last_words import DIED, EXITED, GAVE_UP, LAST_WORDS, OF_CHILD, STOPPING, STOPS
from ckptlog.timeline.startup import STARTUP
from ckptlog.timeline.stream import OLLAMA, Stream

#: kinds that change the timeline's state: every other known message is passed over
NEEDED_KINDS = frozenset(
    {name[3:] for name in dir(Stream) if name.startswith("on_")}
    | set(STARTUP)
    | set(SAME_AS)
    | LAST_WORDS
    | OF_CHILD
    | OF_FILES
    | {OLLAMA}
)

#: kinds that come as listings: neighbouring lines are one event, with these fields a line
BLOCK_KINDS = {"cache_candidate": CANDIDATE_FIELDS, "cache_entry": ENTRY_FIELDS}

#: kinds whose lines may be quoted as evidence, by llama.cpp's names
_QUOTED = frozenset(
    {
        "cache_alloc_failed",
        "cache_already",
        "cache_found",
        "cache_making_room",
        "cache_restore_failed",
        "cache_size_limit",
        "cache_state_too_big",
        "cache_token_limit",
        "cancel_task",
        "checking_checkpoint",
        "clearing_prompt",
        "context_shift",
        "decode_cancelled",
        "decode_failed",
        "erased_invalidated",
        "erased_old",
        "erased_too_close",
        "exiting_sleep",
        "fork_decode_failed",
        "fork_input_truncated",
        "forcing_full",
        GAVE_UP,
        "got_exception",
        "input_truncated",
        EXITED,
        "lora_cache_clear",
        "memory_state",
        "need_one_token",
        DIED,
        LOAD_ERROR,
        "prompt_load_failed",
        "purging_slot",
        "release",
        "restore_failed",
        "restored_checkpoint",
        "restored_checkpoints_file",
        "selected_id",
        "selected_lcp",
        "selected_lcs",
        "selected_lru",
        "send_error",
        "start_error",
        STOPPING,
        STOPS,
        "swa_checkpoint_erase",
        "truncate_failed",
        "unauthorized",
    }
)

EVIDENCE_KINDS = _QUOTED | {tagged for tagged, (kind, _) in SAME_AS.items() if kind in _QUOTED}
