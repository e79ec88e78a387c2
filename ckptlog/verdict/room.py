"""More context for a slot: which -c gives it, and where none does."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.timeline.model import Run

#: the first build that gives a slot no more than the model was trained for, whatever -c says
_CAPPED_FROM = 6901
#: tokens left for an answer, beside a prompt that was refused
ANSWER = 1024


def _capped(run: Run) -> bool:
    return run.build_max is None or run.build_max >= _CAPPED_FROM


def most_of_a_slot(run: Run) -> int | None:
    """The tokens beyond which no flag takes a slot; null where there is no such bound, or it is not in the log."""
    return run.n_ctx_train if _capped(run) else None


def larger_context(run: Run, per_slot: int, least: int, needed: int | None = None) -> Fix | None:
    """``per_slot`` tokens for each slot, or as many of them as the model takes, if that is ``least`` at least.

    ``needed``: what is known to be enough, or not to do with less; where nothing is, ``per_slot`` is a beginning.
    ``-c`` is shared between the slots unless the KV cache is unified.
    """
    most = most_of_a_slot(run)
    amount = f"at least {needed:,} tokens" if needed is not None else f"more, {per_slot:,} tokens to begin with"
    if most is not None and per_slot > most:
        if most < least:
            return None
        per_slot = most
        amount = f"{most:,} tokens, the most that this model was trained for"
    rounded = -(-per_slot // 1024) * 1024
    if run.ollama:
        text = f"Give the model a context of {amount.removeprefix('more, ')}: num_ctx {rounded} in Ollama's options (or its Modelfile)."
        return Fix("larger-context", text)
    if run.kv_unified and _held_below_its_share(run):
        flags = ["--kv-unified-per-slot", str(rounded)]
        if rounded > (run.n_ctx or rounded):
            flags += ["-c", str(rounded)]
        return Fix("larger-context", f"Give each slot {amount}: {' '.join(flags)}.", flags)
    slots = 1 if run.kv_unified else run.n_slots or 1
    total = str(rounded * slots)
    notes = []
    if slots > 1:
        notes.append(f" ({slots} slots share -c)")
    elif run.n_slots is None and not run.kv_unified:
        notes.append(" (for one slot; this log does not show how many share -c)")
    if most is None and _capped(run):
        notes.append(", if the model was trained for that many")
    return Fix("larger-context", f"Give each slot {amount}: -c {total}{''.join(notes)}.", ["-c", total])


def fewer_slots(run: Run, needed: int | None, limit: object) -> Fix | None:
    """Where ``needed`` tokens would fit into a slot's context if fewer slots shared it."""
    slots = 1 if run.kv_unified else run.n_slots or 1
    if needed is None or not isinstance(limit, int) or slots < 2:
        return None
    room = run.n_ctx or limit * slots
    if needed > min(room, most_of_a_slot(run) or room):
        return None
    return Fix(
        "fewer-slots",
        f"{slots} slots share the context: with fewer slots this request fits ({limit:,} tokens each now).",
        ["--parallel", str(max(1, room // (needed + ANSWER)))],
    )


def _held_below_its_share(run: Run) -> bool:
    """Whether --kv-unified-per-slot, and not the model, keeps a slot from taking more of the cache."""
    return (
        run.n_ctx_share is not None
        and run.n_ctx_slot is not None
        and run.n_ctx_slot < min(run.n_ctx_share, run.n_ctx_train or run.n_ctx_share)
    )


def no_more(run: Run, least: int) -> Fix | None:
    """That a larger -c would not help, where the slot would need ``least`` tokens and can't have them."""
    most = most_of_a_slot(run)
    if most is None or least <= most:
        return None
    return Fix(
        "larger-context",
        f"A larger -c: the model was trained for {most:,} tokens, and the server gives a slot no more.",
        ["-c"],
    )
