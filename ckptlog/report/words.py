"""Outcomes, confidence and numbers in the words the reports use for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ckptlog.records import Basis, RunRecord, SourceRecord, TurnRecord
from ckptlog.report.safe import safe_text

#: an outcome in a table's last column
LABELS = MappingProxyType(
    {
        "arrival-rejection": "refused",
        "limit-stop": "limit stop",
        "context-shift": "context shift",
        "checkpoint-reprefill": "re-prefill",
        "not-completion": "no completion",
    }
)

#: (outcome, variant) as the title of a finding: for one turn, for several; variant None: any other
_TITLES = MappingProxyType(
    {
        ("arrival-rejection", "near-miss"): (
            "A prompt just over the context was",
            "Prompts just over the context were",
            "refused",
        ),
        ("arrival-rejection", "oversized"): (
            "A prompt longer than the context was",
            "Prompts longer than the context were",
            "refused",
        ),
        ("arrival-rejection", "one-batch"): (
            "A request larger than one batch was",
            "Requests larger than one batch were",
            "refused",
        ),
        ("arrival-rejection", None): (
            "A request that was too long was",
            "Requests that were too long were",
            "refused",
        ),
        ("limit-stop", None): ("An answer was", "Answers were", "cut short: the context was full"),
        ("context-shift", "head"): (
            "The head of a prompt was",
            "The head of prompts was",
            "deleted (context shift)",
        ),
        ("context-shift", "history"): (
            "A part of a prompt was",
            "Parts of prompts were",
            "deleted (context shift)",
        ),
        ("context-shift", "generated"): (
            "A part of an answer was",
            "Parts of answers were",
            "deleted (context shift)",
        ),
        ("context-shift", "input"): (
            "A part of a prompt was",
            "Parts of prompts were",
            "cut out on arrival",
        ),
        ("context-shift", None): (
            "A part of the context was",
            "Parts of the context were",
            "deleted (context shift)",
        ),
        ("checkpoint-reprefill", "full"): ("A prompt was", "Prompts were", "processed again from the start"),
        ("checkpoint-reprefill", "partial"): (
            "A prompt was",
            "Prompts were",
            "processed again from far back",
        ),
        ("checkpoint-reprefill", None): ("A prompt was", "Prompts were", "processed again"),
        ("error", None): ("A request", "Requests", "ended in an error"),
    }
)

#: what the request did, as the end of a sentence that begins with "The request": only what the log shows, since
#: an edited message and a new conversation with the same beginning look alike
_TRIGGERS = MappingProxyType(
    {
        "appended": "only adds to the end of what the slot held",
        "edited": "keeps the beginning of what the slot held, then differs",
        "prefix-rewritten": "parts near the beginning from what the slot held",
        "reasoning-dropped": "parts where the last answer begins, as a rule because its reasoning is left out",
        "repeated": "repeats the prompt that the slot held",
        "shrunk": "is a beginning of what the slot held",
        "other-conversation": "has next to nothing of what the slot held, as another conversation would",
    }
)

_SURE = MappingProxyType(
    {
        "observed": "Sure: the server printed every figure used here.",
        "derived": "Sure: it follows exactly from figures the server printed.",
        "inferred": "Likely, not certain: estimated from the figures this log has.",
    }
)


def label(turn: TurnRecord) -> str:
    """A turn's outcome in one or two words."""
    return LABELS.get(turn.outcome, turn.outcome)


def title(outcome: str, variant: str | None, count: int) -> str:
    """What happened to ``count`` turns, as a heading."""
    words = _TITLES.get((outcome, variant)) or _TITLES.get((outcome, None))
    return f"{words[0 if count == 1 else 1]} {words[2]}" if words else outcome


def request_words(trigger: str) -> str:
    """What the request did (a turn's ``trigger``), as a sentence with the word itself."""
    did = _TRIGGERS.get(trigger)
    return f"The request {did} ({trigger})." if did else f"The request: {trigger}."


def how_sure(confidences: Iterable[Basis]) -> str:
    """One sentence for the confidence of a group of turns; the weakest counts, mixtures are told."""
    counts: dict[Basis, int] = {}
    for confidence in confidences:
        counts[confidence] = counts.get(confidence, 0) + 1
    weakest: Basis = "inferred" if "inferred" in counts else "derived" if "derived" in counts else "observed"
    if weakest == "inferred" and len(counts) > 1:
        sure = sum(counts.values()) - counts["inferred"]
        return f"Sure in {plural(sure, 'turn')}; in {counts['inferred']:,} estimated from the figures this log has."
    return _SURE[weakest]


#: an outcome as it stands behind a count of turns, where the bare word would not read
_STATES = MappingProxyType({"error": "with an error"})


def tally(fine: int, failed: int, others: Mapping[str, int]) -> list[str]:
    """``3 fine``, ``2 failed``, ``4 with an error``; "0 failed" is not said where there are errors."""
    parts = [f"{fine:,} fine"]
    if failed or "error" not in others:
        parts.append(f"{failed:,} failed")
    return parts + [f"{count:,} {_STATES.get(outcome, outcome)}" for outcome, count in others.items()]


def speed(tokens: int, ms: float) -> str:
    """``3.0 tok/s``, ``231 tok/s``."""
    rate = tokens / ms * 1000
    return f"{rate:,.0f} tok/s" if rate >= 10 else f"{rate:.1f} tok/s"


def sentence_case(words: str) -> str:
    """``words`` as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def plural(count: int, one: str, many: str | None = None) -> str:
    """``3 turns``, ``1 turn``, ``12,345 turns``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(ms: float) -> str:
    """Milliseconds as a person says them: ``850 ms``, ``37.2 s``, ``12 min 5 s``, ``3 h 12 min``."""
    seconds = ms / 1000
    if seconds < 0.9995:
        return f"{ms:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min"


def percent(share: float) -> str:
    """``91 %``; never 100 % for something less, nor 0 % for something more."""
    rounded = round(share * 100)
    if rounded == 100 and share < 1:
        return "over 99 %"
    if rounded == 0 and share > 0:
        return "under 1 %"
    return f"{rounded} %"


def listed(numbers: Sequence[int], limit: int = 6) -> str:
    """``40, 47 and 52``; a long list is cut: ``40, 47, 52 and 109 more``."""
    shown = [f"{number:,}" for number in numbers[:limit]]
    if len(numbers) > limit:
        return f"{', '.join(shown)} and {len(numbers) - limit:,} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def build_words(run: RunRecord) -> str | None:
    """A run's build, exact or bracketed: ``b11549``, ``b10865 or later``, ``b9830 to b10173``."""
    if run.build:
        return run.build
    low, high = run.build_min, run.build_max
    if low is not None and high is not None:
        return f"b{low}" if low == high else f"up to b{high}" if low == 0 else f"b{low} to b{high}"
    if low:
        return f"b{low} or later"
    if high is not None:
        return f"up to b{high}"
    return None


def source_name(source: SourceRecord) -> str:
    """The file as given; what a person calls ``-``."""
    return "standard input" if source.path == "-" else source.path


#: what else than llama.cpp of today a log may be of
_FORKS = MappingProxyType(
    {
        "ik_llama.cpp": "llama-server of ik_llama.cpp, a fork",
        "tagged": "llama-server of 2024, or of a fork that kept its form",
    }
)

#: kinds of memory that are known by another name than the record's
_MEMORIES = MappingProxyType({"swa": "sliding-window"})


def server_words(run: RunRecord) -> list[str]:
    """Which of several servers in one log it is."""
    name = [] if run.server is None else [safe_text(run.server)]
    return name if run.port is None else [*name, f"port {run.port}"]


def run_words(run: RunRecord) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A server process in two lines of phrases: what it is, and how it is set."""
    memory = None if run.memory == "unknown" else f"{_MEMORIES.get(run.memory, run.memory)} memory"
    if memory and run.n_swa and run.memory == "swa":
        memory += f", window {run.n_swa:,}"
    name = run.arch or (run.model and run.model.replace("\\", "/").rsplit("/", 1)[-1])
    what = [_FORKS.get(run.fork or "", "llama-server"), build_words(run) or "build unknown"]
    if memory or name:
        what.append(f"{memory} ({name})" if memory and name else memory or str(name))
    what += server_words(run)
    how = []
    if run.n_slots is not None and run.n_ctx_slot is not None:
        if run.kv_unified and run.n_slots > 1:
            how.append(f"{run.n_slots:,} slots sharing {run.n_ctx or run.n_ctx_slot:,} tokens")
            if run.n_ctx is not None and run.n_ctx_slot < run.n_ctx:
                how.append(f"at most {run.n_ctx_slot:,} each")
        else:
            how.append(f"{plural(run.n_slots, 'slot')} of {run.n_ctx_slot:,} tokens")
    elif run.n_ctx_slot is not None:
        how.append(f"{run.n_ctx_slot:,} tokens a slot")
    elif run.n_slots is not None:
        how.append(plural(run.n_slots, "slot"))
    settings = run.checkpoints
    if settings is not None and not settings.enabled:
        how.append("no checkpoints")
    elif settings is not None and settings.max is not None:
        spacing = f" at least {settings.min_step:,} apart" if settings.min_step else ""
        how.append(f"{plural(settings.max, 'checkpoint')} a slot{spacing}")
    if run.context_shift:
        how.append("context shift on")
    if run.verbosity is not None:
        how.append(f"-lv {run.verbosity}")
    return tuple(what), tuple(how)
