"""The tagged dialect (builds of 2024, and forks that kept it): its messages under llama.cpp's own names."""

from __future__ import annotations

from typing import Any

from ckptlog.events import Event

#: tagged kind -> (kind, {field there: field here})
SAME_AS: dict[str, tuple[str, dict[str, str]]] = {
    "tagged_processing_task": ("processing_task", {}),
    "tagged_batch_start": ("fork_batch_start", {"p0": "n_tokens"}),
    "tagged_prompt_tokenized": ("new_prompt", {"n_ctx": "n_ctx_slot", "n_keep": "n_keep", "n_prompt": "n_prompt"}),
    "tagged_selected_lru": ("selected_lru", {"t_last": "t_last"}),
    "tagged_input_truncated": ("fork_input_truncated", {}),
    "tagged_empty_prompt": ("empty_prompt", {}),
    "tagged_context_shift": ("context_shift", {"n_keep": "n_keep", "n_left": "n_left", "n_discard": "n_discard"}),
    "tagged_release": ("release", {"n_past": "n_tokens", "truncated": "truncated"}),
    "tagged_decode_failed": ("fork_decode_failed", {}),
    "tagged_prompt_eval_time": ("prompt_eval_time", {"ms": "ms", "n_tokens": "n_tokens"}),
    "tagged_eval_time": ("eval_time", {"ms": "ms", "n_tokens": "n_tokens"}),
    "tagged_initializing_slots": ("initializing_slots", {"n_slots": "n_slots"}),
    "tagged_new_slot": ("new_slot", {"n_ctx_slot": "n_ctx"}),
    "tagged_model_loaded": ("model_loaded", {}),
    "tagged_listening": ("listening", {}),
}

#: printed by a fork alone
FORK_ONLY = frozenset({"fork_cache", "decode_cancelled"})
#: functions, as they stand in a line's head, that a fork alone has
FORK_FUNCTIONS = frozenset({"apply_checkp"})


def translate(e: Event) -> Event:
    """The same event under llama.cpp's name; unchanged if it has no tagged kind."""
    same = SAME_AS.get(e.kind)
    if same is None:
        return e
    kind, names = same
    fields: dict[str, Any] = {here: e.f.get(there) for there, here in names.items()}
    if "truncated" in fields:
        fields["truncated"] = fields["truncated"] in ("true", 1)
    e.kind, e.f = kind, fields
    return e
