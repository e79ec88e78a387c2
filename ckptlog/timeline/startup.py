"""What a server says of itself when it starts: each message sets a fact of the run."""

from __future__ import annotations

import re
from collections.abc import Callable

from ckptlog.events import Event
from ckptlog.timeline.model import Run


def _int(event: Event, name: str) -> int | None:
    value = event.f.get(name)
    return value if isinstance(value, int) else None


def _text(event: Event, name: str = "text") -> str | None:
    value = event.f.get(name)
    return None if value is None else str(value).strip()


def _build_info(run: Run, e: Event) -> None:
    text = _text(e) or ""
    number = _int(e, "number")
    if number is None and (match := re.match(r"b?(\d+)", text)):
        number = int(match.group(1))
    run.build_text = text or run.build_text
    if number:
        run.build = number


def _initializing_slots(run: Run, e: Event) -> None:
    run.n_slots = _int(e, "n_slots")
    run.n_ctx_slot = _int(e, "n_ctx_slot") or run.n_ctx_slot
    unified = _text(e, "kv_unified")
    if unified is not None:
        run.kv_unified = unified in ("true", "1")


def _prompt_cache_limit(run: Run, e: Event) -> None:
    run.prompt_cache_enabled = True
    limit = e.f.get("limit")
    if isinstance(limit, int | float):
        run.prompt_cache_mib = float(limit)
    elif limit is not None and (match := re.match(r"\s*(\d+(?:\.\d+)?)", str(limit))):
        run.prompt_cache_mib = float(match.group(1))


def _prompt_cache_disabled(run: Run, e: Event) -> None:
    run.prompt_cache_enabled = False
    run.prompt_cache_mib = 0.0


def _checkpoints_enabled(run: Run, e: Event) -> None:
    run.checkpoints_enabled = True
    run.checkpoints_max = _int(e, "max")
    run.checkpoints_min_step = _int(e, "min_step")


def _checkpoints_disabled(run: Run, e: Event) -> None:
    run.checkpoints_enabled = False


def _new_slot(run: Run, e: Event) -> None:
    run.n_ctx_slot = _int(e, "n_ctx") or run.n_ctx_slot
    if e.slot is not None:
        run.n_slots = max(run.n_slots or 0, e.slot + 1)


def _model(run: Run, e: Event) -> None:
    path = _text(e, "path") or _text(e)
    if path:
        run.model = run.model or path.strip("'")


def _general_name(run: Run, e: Event) -> None:
    run.model = run.model or _text(e)


def _listening(run: Run, e: Event) -> None:
    """llama-server's own program says it of itself, and when it stops, too; what embeds the server words both anew."""
    run.says_stops = e.of.func in ("llama_server", "main")
    run.loaded = True


def _n_swa(run: Run, e: Event) -> None:
    run.n_swa = _int(e, "n")


def _set(name: str, field: str = "n") -> Callable[[Run, Event], None]:
    def apply(run: Run, e: Event) -> None:
        value = _int(e, field)
        if value is not None:
            setattr(run, name, value)

    return apply


def _flag(name: str, value: bool = True) -> Callable[[Run, Event], None]:
    def apply(run: Run, e: Event) -> None:
        setattr(run, name, value)

    return apply


def _arch(run: Run, e: Event) -> None:
    run.arch = _text(e)


def _kv_unified(run: Run, e: Event) -> None:
    run.kv_unified = _text(e) in ("true", "1")


def _n_parallel_auto(run: Run, e: Event) -> None:
    """``-np auto``: the message is a constant, and its numbers are words of it."""
    run.n_slots, run.kv_unified = run.n_slots or 4, True


def _kv_unified_per_slot(run: Run, e: Event) -> None:
    """The server then allows a slot less than the whole of the cache that all share."""
    run.kv_unified = True
    if e.of.wording == "capping":
        run.n_ctx_share = run.n_ctx_share or _int(e, "n_ctx_slot")


def _n_ctx_train(field: str) -> Callable[[Run, Event], None]:
    """A draft model says the same of itself, and may have been trained for less: it caps nothing."""

    def apply(run: Run, e: Event) -> None:
        run.n_ctx_train = max(run.n_ctx_train or 0, _int(e, field) or 0) or None

    return apply


def _slot_ctx_capped(run: Run, e: Event) -> None:
    """The server's word that the training context is the most a slot gets."""
    run.n_ctx_share, run.n_ctx_train = _int(e, "n_ctx"), _int(e, "n_ctx_train")


def _slots_debug(run: Run, e: Event) -> None:
    run.slots_debug = bool(_int(e, "value"))


def _kv_cache_size(run: Run, e: Event) -> None:
    run.has_attention = True


def _shift_unsupported(run: Run, e: Event) -> None:
    run.shift_unsupported = True
    run.context_shift = False


def _swa_cells(run: Run, e: Event) -> None:
    run.has_swa_cache = True
    run.swa_cells = _int(e, "n")


def _nothing(run: Run, e: Event) -> None:
    return


#: kind -> what it says of the run. Any of these behind a turn begins a new run.
STARTUP: dict[str, Callable[[Run, Event], None]] = {
    "server_init": _nothing,
    "build_info": _build_info,
    "verbosity": _set("verbosity"),
    "loading_model": _model,
    "model_loaded": _flag("loaded"),
    "listening": _listening,
    "n_parallel_auto": _n_parallel_auto,
    "kv_unified_per_slot": _kv_unified_per_slot,
    "initializing_slots": _initializing_slots,
    "new_slot": _new_slot,
    "prompt_cache_limit": _prompt_cache_limit,
    "prompt_cache_disabled": _prompt_cache_disabled,
    "checkpoints_enabled": _checkpoints_enabled,
    "checkpoints_disabled": _checkpoints_disabled,
    "slots_debug": _slots_debug,
    "slots_n_diff": _nothing,
    "ctx_shift_unsupported": _shift_unsupported,
    "kv_shift_unsupported": _shift_unsupported,
    "no_partial_removal": _flag("no_partial_removal"),
    "spec_uses_checkpoints": _nothing,
    "embeddings_enabled": _flag("embeds"),
    "embeddings_required": _flag("embeds"),
    "arch": _arch,
    "general_name": _general_name,
    "n_swa": _n_swa,
    "n_batch": _set("n_batch"),
    "n_ubatch": _set("n_ubatch"),
    "n_ctx_seq": _set("n_ctx_slot"),
    "n_ctx_train": _n_ctx_train("n"),
    "n_ctx_seq_below_train": _n_ctx_train("n_train"),
    "n_ctx_seq_above_train": _n_ctx_train("n_train"),
    "slot_ctx_capped": _slot_ctx_capped,
    "kv_unified": _kv_unified,
    "swa_full_cache": _flag("swa_full"),
    "swa_cells": _swa_cells,
    "non_swa_cells": _nothing,
    "recurrent_size": _flag("has_recurrent"),
    "kv_cache_size": _kv_cache_size,
}

#: the first things a fresh process prints; others may also appear when a model is reloaded
FRESH = frozenset(
    {
        "server_init", "build_info", "verbosity", "loading_model", "arch", "initializing_slots", "n_parallel_auto",
        "embeddings_enabled",
    }
)  # fmt: skip
