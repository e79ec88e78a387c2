"""What to do: each fix with the flag that this log's build knows, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ckptlog.records import Fix
from ckptlog.replay.from_timeline import cell_mib
from ckptlog.server.builds import flag_exists, options
from ckptlog.server.rules import rules_for
from ckptlog.timeline.model import Run

#: of --swa-full: more memory than this is not the first thing to advise
DEAR_MIB = 1024.0
#: said of the first flag where a user can't set it
OLLAMAS_FLAGS = "(Ollama sets llama-server's flags itself; this is one for a llama-server of your own.)"


def newer_or_report(lines: str) -> str:
    """What is left to do about a fault of the server that no table knows, told by those lines of the log."""
    return f"A newer build may have it mended; else look for {lines} among llama.cpp's issues, and report it there."


def listed(found: Sequence[Fix], run: Run) -> list[Fix]:
    """Fixes as a list of alternatives: the first, which many readers see alone, is no "Or" to anything."""
    fixes = sorted(found, key=lambda fix: _is_dear(fix, run))
    if fixes and fixes[0].text.startswith("Or "):
        text = fixes[0].text.removeprefix("Or ")
        fixes[0] = replace(fixes[0], text=text[:1].upper() + text[1:])
    at = next((i for i, fix in enumerate(fixes) if fix.flags), None)
    if run.ollama and at is not None:
        fixes[at] = replace(fixes[at], text=f"{fixes[at].text} {OLLAMAS_FLAGS}")
    return fixes


def known_flag(run: Run, *names: str) -> str | None:
    """The first of these flags that the run's builds know (or may know)."""
    maybe = None
    for name in names:
        exists = flag_exists(name, run.build_min or None, run.build_max)
        if exists:
            return name
        if exists is None and maybe is None:
            maybe = name
    return maybe


def count_flag(run: Run) -> str:
    return known_flag(run, "--ctx-checkpoints", "--swa-checkpoints") or "--ctx-checkpoints"


def spacing_flag(run: Run) -> str | None:
    return known_flag(run, "--checkpoint-min-step", "--checkpoint-every-n-tokens")


def ram_mib(run: Run, extra: int) -> str:
    """What ``extra`` more checkpoints a slot cost in host RAM, from the sizes in this log."""
    if not run.cp_size_mib:
        return "host RAM for each checkpoint, no VRAM"
    slots = run.n_slots or 1
    total = run.cp_size_mib * extra * slots
    amount = f"{total:,.0f}" if total >= 10 else f"{total:.2f}"
    slot_words = f" x {slots} slots" if slots > 1 else ""
    return f"at most {amount} MiB more host RAM ({extra} x {run.cp_size_mib:.3g} MiB{slot_words}), no VRAM"


def raise_count(run: Run, needed: int | None) -> Fix:
    """Keep more checkpoints; ``needed`` comes from a replay where there is one."""
    flag = count_flag(run)
    cap = run.checkpoints_max
    if needed is not None:
        extra = max(1, needed - (cap or 0))
        return Fix("raise-checkpoint-count", f"Keep {needed} checkpoints a slot: {ram_mib(run, extra)}.", [flag, str(needed)])
    if cap is None:
        # the level hides the setting: less than the default would be no help where nothing was set
        default = default_count(run)
        target = 2 * default
        text = (
            f"Keep more checkpoints a slot: {target}, or twice what is set now, which this log does not show "
            f"({default} is the default): {ram_mib(run, target)}."
        )
    else:
        target = max(4, 2 * cap)
        text = (
            f"Keep more checkpoints a slot, {target} to begin with: {ram_mib(run, target - cap)}. "
            "How many are needed can't be computed from this log."
        )
    return Fix("raise-checkpoint-count", text, [flag, str(target)])


def default_count(run: Run) -> int:
    """How many checkpoints a slot keeps if nothing is set, of the newest build that the log may be of."""
    return rules_for(run.build_min or None, run.build_max)[-1].default_max


def enable_checkpoints(run: Run) -> Fix:
    flag = count_flag(run)
    default = default_count(run)
    return Fix("enable-checkpoints", f"Switch checkpoints on again; {default} is the default.", [flag, str(default)])


#: flags of llama.cpp that forks, and builds of 2024, do not have
_NOT_OF_FORKS = frozenset(
    {"--checkpoint-min-step", "--checkpoint-every-n-tokens", "--no-kv-unified", "--swa-full", "--cache-reuse"}
)


def for_this_server(run: Run, found: Sequence[Fix]) -> list[Fix]:
    """A fork's user can follow no build number of llama.cpp, nor give a flag that the fork lacks."""
    if run.fork is None:
        return list(found)
    return [fix for fix in found if fix.name != "upgrade-server" and not _NOT_OF_FORKS.intersection(fix.flags)]


def fork_interval(run: Run) -> Fix:
    """What ik_llama.cpp has in place of the spacing: it makes checkpoints in mid-prompt only if it is told to."""
    return Fix(
        "smaller-spacing",
        "Let ik_llama.cpp make a checkpoint at least every so many tokens, also while it processes a prompt (there once a "
        "batch at most). --ctx-checkpoints says how many it keeps: the older ones go, so both must fit the conversation."
        + (f" Each takes {run.cp_size_mib:.3g} MiB of host RAM." if run.cp_size_mib else ""),
        ["--ctx-checkpoints-interval", "512"],
    )


def smaller_step(run: Run, step: int | None, at: int | None = None) -> Fix | None:
    """``at``: a place at which this turn could then resume, as far as the log shows such places."""
    flag = spacing_flag(run)
    if flag is None:
        return None
    value = str(step if step is not None else 256)
    gain = f"this turn could then resume at {at:,} at least" if at is not None else "more of them fit a change"
    return Fix("smaller-spacing", f"Let checkpoints lie closer together: {gain}.", [flag, value])


def stop_rewriting_head() -> Fix:
    # (at the system prompt's end they would still stand before all of the conversation)
    return Fix(
        "keep-the-head-stable",
        "Make the client send the beginning of the prompt unchanged: move clocks, random ids, file lists and "
        "memories out of the system prompt, into the last user message.",
    )


def shorter_messages() -> Fix:
    return Fix(
        "split-long-messages",
        "Send what stays the same (documents, files) as messages of their own, before what changes: a checkpoint can "
        "only lie where a user message begins.",
    )


def use_chat_endpoint(run: Run) -> Fix:
    if run.ollama:
        return Fix(
            "use-chat-endpoint",
            "Ollama makes the prompt itself, and its llama-server does not learn where messages begin. Run llama-server "
            "itself and send the conversation to its /v1/chat/completions: that one knows.",
        )
    text = "Send the conversation to /v1/chat/completions: the server then knows where user messages begin"
    if flag_exists("message_delimiters", run.build_min or None, run.build_max):
        text += ", or name the delimiters in the request (message_delimiters)"
    cap, default = run.checkpoints_max, default_count(run)
    if cap is not None and cap < default:
        # (where each message may begin with one, a few are soon pushed out)
        text += f". Give it room for a checkpoint at each of them, too: {count_flag(run)} {default} (the default; {cap} now)"
    return Fix("use-chat-endpoint", text + ".")


def name_delimiters(run: Run) -> Fix | None:
    if not flag_exists("message_delimiters", run.build_min or None, run.build_max):
        return None
    return Fix(
        "name-delimiters",
        "Or name what ends the unchanging part of the system prompt as a message delimiter in the request "
        "(message_delimiters): the server can then make a checkpoint there.",
    )


def upgrade(build: int, what: str) -> Fix:
    return Fix("upgrade-server", f"Upgrade llama-server to b{build} or later: {what}.")


def more_slots(run: Run) -> Fix:
    flags, room = _slots(run, (run.n_slots or 1) + 1)
    now = run.n_slots or "unknown"
    text = f"Run with a slot for each conversation that goes on at the same time (now {now}); {room}"
    return Fix("give-each-conversation-a-slot", text, flags)


def _slots(run: Run, n: int) -> tuple[list[str], str]:
    """The flags for so many slots, and what becomes of their context."""
    flags = ["--parallel", str(n)]
    if run.kv_unified is False and run.n_ctx_slot is not None:
        flags += ["-c", str(n * run.n_ctx_slot)]
        return flags, f"with this -c each keeps its {run.n_ctx_slot:,} tokens."
    return flags, "where the slots split -c, give it more room too."


def slot_for_each_lora(run: Run) -> Fix:
    text = (
        "Give each set of adapters a slot of its own: the same id_slot in all requests that name the same "
        '"lora" list. Or let all requests name the same one.'
    )
    if (run.n_slots or 1) > 1:
        return Fix("give-each-lora-a-slot", text)
    flags, room = _slots(run, 2)
    return Fix("give-each-lora-a-slot", f"{text} Two slots or more for that; {room}", flags)


def send_cache_prompt(server_wide: bool) -> Fix:
    """``server_wide``: the build has a flag that forbids reuse for all requests."""
    unless = ", unless the server was started with --no-cache-prompt" if server_wide else ""
    return Fix(
        "send-cache-prompt",
        f'Let the client send "cache_prompt": true, or leave the field out (true is the default{unless}).',
    )


def free_slot_choice() -> Fix:
    return Fix(
        "free-slot-choice", "Let the client leave out id_slot: the server then takes the slot that shares most."
    )


def lower_similarity(share: float) -> Fix:
    """``share``: how much of the prompt the better slot held, between 0 and 1."""
    value = "0.1" if share > 0.1 else f"{max(0.001, share * 0.9):.2g}"
    return Fix(
        "lower-slot-similarity",
        "Let a slot be used again for prompts that are less alike (0.1 is the default).",
        ["--slot-prompt-similarity", value],
    )


def larger_ram_cache(run: Run) -> Fix | None:
    """Null where the build has no such cache, or one without a limit."""
    if flag_exists("--cache-ram", run.build_min or None, run.build_max) is False:
        return None
    now = run.prompt_cache_mib
    if run.prompt_cache_enabled and now is None:
        return None
    if now and not run.prompt_cache_dropped and (run.verbosity or 0) >= 4:
        return None  # nothing was ever let go for want of room
    default = options()["--cache-ram"].default or 0
    told = f"now {now:,.0f} MiB" if now else "now off" if now is not None else f"{default:,} MiB is the default"
    return Fix(
        "larger-prompt-cache",
        f"Give the RAM prompt cache more room ({told}): a conversation that loses its slot then comes back from host RAM.",
        ["--cache-ram", str(2 * default if now is None else int(now * 2) or default)],
    )


def no_shift(run: Run) -> Fix:
    """Up to b6300 the server shifts unless it is told not to."""
    if run.ollama:
        return Fix(
            "no-shift",
            "Or let the client be told that the context is full: Ollama starts llama-server with --context-shift, and newer "
            'versions of it take "shift": false in a request.',
        )
    asked_for = flag_exists("--context-shift", run.build_min or None, run.build_max)
    if asked_for is False:
        return Fix("no-shift", "Or refuse instead of deleting.", ["--no-context-shift"])
    if asked_for is None:
        return Fix(
            "no-shift",
            "Or refuse instead of deleting: builds up to b6300, which this log may be of, shift unless they are told "
            "not to; later ones only with --context-shift, which is to be left out then.",
            ["--no-context-shift"],
        )
    return Fix(
        "no-shift",
        "Or start the server without --context-shift: then the client is told that the context is full.",
    )


def split_cache(run: Run) -> Fix:
    """What gives each slot cells of its own; older builds unify where they are told to, or not told how many slots."""
    text = "Or split the cache, so that a slot can't take another's cells"
    if flag_exists("--no-kv-unified", run.build_min or None, run.build_max) is not False:
        return Fix("split-cache", f"{text}.", ["--no-kv-unified"])
    slots = [] if run.n_slots is None else ["--parallel", str(run.n_slots)]
    return Fix("split-cache", f"{text}: leave --kv-unified out, and say how many slots there are to be.", slots)


def swa_full(run: Run) -> Fix | None:
    if run.memory != "swa" or run.swa_full:
        return None
    price_of = _swa_price(run)
    if price_of is None:
        price = "the full context's memory for those layers, which this log does not tell (it may be many GiB)"
    else:
        each, n_ctx = price_of
        cost = each * n_ctx
        amount = f"{cost / 1024:,.0f} GiB" if cost >= 10 * 1024 else f"{cost:,.0f} MiB"
        which = "" if run.n_ctx is not None or run.n_slots == 1 else " of a slot"
        price = (
            f"about {amount} more{' a slot' if which else ''} for those layers ({each:.2g} MiB x {n_ctx:,} tokens{which}), "
            "in VRAM where they lie on a GPU"
        )
    stored = any(rules.stores_window_only for rules in rules_for(run.build_min or None, run.build_max))
    text = f"Or keep the whole sliding-window cache: every prefix can be resumed without checkpoints, at the price of {price}."
    if stored and run.prompt_cache_mib != 0:
        text += f" {ONLY_THE_WINDOW}"
    return Fix("swa-full", text, ["--swa-full"])


#: what of a conversation is in the RAM prompt cache
ONLY_THE_WINDOW = (
    "(Not in a conversation that came back from the RAM prompt cache, which keeps only the window: give it a slot of its own.)"
)


def _swa_price(run: Run) -> tuple[float, int] | None:
    """MiB of a token in the layers of the sliding window, at least, from the sizes of this log's checkpoints; and the
    tokens of the context. Null where one is not in the log."""
    found = (cell_mib(run, rules) for rules in rules_for(run.build_min or None, run.build_max))
    each = min((each for each in found if each is not None), default=None)
    n_ctx = run.n_ctx or run.n_ctx_slot
    return None if each is None or n_ctx is None else (each, n_ctx)


def _is_dear(fix: Fix, run: Run) -> bool:
    """Does it cost more memory than a fix should that stands first, or nobody knows how much?"""
    if fix.name != "swa-full":
        return False
    price = _swa_price(run)
    return price is None or price[0] * price[1] > DEAR_MIB


# ------------------------------------------------------------------ what would not help


def not_swa_full(run: Run, *, came_back: bool = False) -> Fix | None:
    """``came_back``: the prompts part within what had come back from the RAM prompt cache."""
    if came_back and not run.swa_full:
        text = "--swa-full: this conversation had come back from the RAM prompt cache, which keeps only the window even so."
        return Fix("swa-full", text, ["--swa-full"])
    if run.memory in ("hybrid", "recurrent"):
        return Fix("swa-full", "--swa-full: this memory has no sliding window to keep whole.", ["--swa-full"])
    return None


def not_larger_context(run: Run, most: int | None) -> Fix | None:
    if run.n_ctx_slot is None:
        return None
    used = f"; {most:,} of {run.n_ctx_slot:,} tokens were in use" if most else ""
    return Fix("larger-context", f"A larger -c: in this turn nothing overflowed{used}.", ["-c"])


def not_cache_reuse(run: Run) -> Fix | None:
    if run.memory in ("swa", "hybrid", "recurrent"):
        return Fix("cache-reuse", "--cache-reuse: the server switches it off for this memory.", ["--cache-reuse"])
    return None
