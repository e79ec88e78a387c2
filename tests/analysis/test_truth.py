"""Every recorded log against what the HTTP client of that server saw (the truth files)."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ckptlog
from ckptlog.records import TurnRecord

from .consistency import contradictions

Request = dict[str, Any]

VOLUME = Path(__file__).parents[1] / "data" / "volume" / "b11549-hybrid-volume"

COMPLETIONS = ("/v1/chat/completions", "/completion")
#: the end that the client saw, and the outcome that must tell of it
ENDS = {
    "rejected": "arrival-rejection",
    "limit stop": "limit-stop",
    "context shift": "context-shift",
    "cancelled": "cancelled",
    "error": "error",
}
#: outcomes that say that the answer did not end by itself
BROKEN_OFF = frozenset(ENDS.values())

#: the common prefix that the client reckons with is not the server's after a context shift: the slot's
#: content had lost a slice then (log, step)
LCP_NOT_KNOWN_TO_CLIENT = {
    ("b8672/plain/shift_keep_0", "next turn after the shift: history no longer matches the slot"),
    ("b8672/plain/shift_keep_m1", "next turn after the shift: history no longer matches the slot"),
    ("b8672/plain/shift_restore", "the chat before the shift, with another last message"),
}


def requests_of(truth: dict[str, Any]) -> list[Request]:
    return [r for r in truth["requests"] if r.get("endpoint") in COMPLETIONS]


def pairs(requests: list[Request], turns: list[TurnRecord]) -> Iterator[tuple[Request, TurnRecord | None]]:
    """Each request with the first turn of the same figures that is not taken yet."""
    free = [turn for turn in turns if turn.child_of is None]
    for request in requests:
        n_prompt = request.get("n_prompt") or request.get("n_prompt_client")
        cache_n, slot = request.get("cache_n"), request.get("slot")
        answered = request.get("status") == 200 and cache_n is not None

        def fits(
            turn: TurnRecord,
            n_prompt: int | None = n_prompt,
            cache_n: int | None = cache_n,
            slot: int | None = slot,
            answered: bool = answered,
        ) -> bool:
            if turn.n_prompt != n_prompt:
                return False
            return not answered or (turn.n_cached == cache_n and slot in (None, turn.slot))

        turn = next(filter(fits, free), None)
        if turn is not None:
            free.remove(turn)
        yield request, turn


def complaints(name: str, request: Request, turn: TurnRecord) -> list[str]:
    """Where a turn's figures are not what the client saw."""
    found = []
    if request.get("status") == 200 and request.get("cache_n") is not None:
        for field, key in (("n_processed", "prompt_n"), ("n_generated", "predicted_n"), ("truncated", "truncated")):
            ours, theirs = getattr(turn, field), request.get(key)
            if theirs is not None and ours != theirs:
                found.append(f"{field} {ours}, the server said {theirs}")
    lcp = request.get("lcp_slot")
    if lcp is not None and (name, request["step"]) not in LCP_NOT_KNOWN_TO_CLIENT:
        if turn.n_common_slot not in (None, lcp):
            found.append(f"n_common_slot {turn.n_common_slot}, it was {lcp}")
        between = turn.n_common_range
        if turn.n_common_slot is None and between is not None and not between[0] <= lcp <= between[1]:
            found.append(f"n_common_range {between}, it was {lcp}")
    end = ENDS.get(request["end"])
    if end is not None and turn.outcome != end:
        found.append(f"outcome {turn.outcome} of a request that ended by {request['end']!r}")
    if end is None and turn.outcome in BROKEN_OFF:
        found.append(f"outcome {turn.outcome} of a request that ended by {request['end']!r}")
    return [f"{request['step']}: {text}" for text in found]


def prefill_complaint(request: Request, turn: TurnRecord) -> str | None:
    """Is what the client saw of the reuse (truth: ``prefill``) the opposite of the outcome?"""
    prefill, lcp, cached = request.get("prefill"), request.get("lcp_slot"), request.get("cache_n")
    if lcp is None or cached is None or turn.outcome in BROKEN_OFF:
        return None
    wrong = {
        "reused": turn.outcome not in ("reused", "restored"),
        "part again": turn.outcome not in ("restored", "checkpoint-reprefill", "reused"),
        "all again": turn.outcome not in ("checkpoint-reprefill", "cold") or (turn.outcome == "cold" and lcp > 8),
        "cold": turn.outcome != "cold",
    }.get(prefill or "", False)
    if turn.outcome == "restored" and lcp - cached >= 128 and lcp - cached > lcp / 2:
        wrong = True
    return f"{request['step']}: outcome {turn.outcome} where the client saw {prefill!r}" if wrong else None


def test_figures_and_ends(log_name: str, recorded: Callable[[str], Any]) -> None:
    log = recorded(log_name)
    found = []
    missing = []
    paired: list[int] = []
    for request, turn in pairs(requests_of(log.truth), log.report.turns):
        if turn is not None:
            paired.append(id(turn))
            found += complaints(log_name, request, turn)
            if (log_name, request["step"]) not in LCP_NOT_KNOWN_TO_CLIENT:
                wrong = prefill_complaint(request, turn)
                found += [wrong] if wrong else []
        elif request.get("status") is not None:
            missing.append((request["step"], request["end"]))
    assert found == []
    assert missing == []
    # nobody asked for any other turn: only an embedding may have several inputs, and a choice is a child
    others = [turn for turn in log.report.turns if id(turn) not in paired and turn.child_of is None]
    embeddings = any(request["endpoint"] == "/v1/embeddings" for request in log.truth["requests"])
    assert {turn.outcome for turn in others} <= ({"not-completion", "arrival-rejection"} if embeddings else set())


def test_nothing_drifts(log_name: str, recorded: Callable[[str], Any]) -> None:
    (source,) = recorded(log_name).report.sources
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)


def test_the_run_is_the_server_that_wrote_it(log_name: str, recorded: Callable[[str], Any]) -> None:
    log = recorded(log_name)
    runs = log.report.runs
    assert len(runs) <= len(log.truth["servers"])
    if log_name.endswith("lv1"):
        return
    assert len(runs) == len(log.truth["servers"])
    for run, server in zip(runs, log.truth["servers"], strict=True):
        assert run.build is None  # these servers print b0
        assert (run.build_min or 0) <= log.build <= (run.build_max or log.build)
        hidden = log_name.rpartition("/")[2] in ("lv2", "lv3") and log.build > 9829
        model = {"gemma": "swa"}.get(log.model, log.model)
        assert run.memory == model or (hidden and run.memory == "unknown") or run.memory in ("unknown", model)
        if run.n_slots is not None:
            assert run.n_slots == server["used"]["n_parallel"]
        if run.checkpoints is not None and run.checkpoints.max is not None:
            assert run.checkpoints.max == server["params"]["n_ctx_checkpoints"]
            assert run.checkpoints.min_step in (None, server["params"].get("checkpoint_min_step"))


def test_figures_agree_with_each_other(log_name: str, recorded: Callable[[str], Any]) -> None:
    assert contradictions(recorded(log_name).report) == []


def test_checkpoint_lists_add_up(log_name: str, recorded: Callable[[str], Any]) -> None:
    """What a slot held, plus what was made, less what died, is what it holds: of every turn, and from turn to turn."""
    report = recorded(log_name).report
    for turn in report.turns:
        lists = turn.checkpoints
        if lists is None:
            continue
        before, after, made = Counter(lists.before), Counter(lists.after), Counter(lists.created)
        erased = Counter([*lists.evicted, *lists.thinned, *lists.superseded, *lists.invalidated])
        if lists.restored is not None:
            assert lists.restored in before
        assert erased <= before + made, (turn.task, "died without having lived")
        # what a cache entry displaced was cleared before the checkpoints were searched
        left = before + made - erased
        assert after <= left <= after + Counter(lists.cleared), turn.task
        for positions in (lists.before, lists.created, lists.after):
            assert positions == sorted(positions)
    for checkpoint in report.checkpoints:
        assert (checkpoint.fate == "live") <= (checkpoint.fate_line is None)
        assert checkpoint.line is None or checkpoint.fate_line is None or checkpoint.line <= checkpoint.fate_line


def test_the_common_prefix_is_seldom_unknown(log_name: str, recorded: Callable[[str], Any]) -> None:
    """A null is honest, but where the level shows the search it must stay the exception."""
    log = recorded(log_name)
    asked = [
        (request, turn)
        for request, turn in pairs(requests_of(log.truth), log.report.turns)
        if turn is not None and request.get("lcp_slot") is not None
    ]
    unknown = [request["step"] for request, turn in asked if turn.n_common_slot is None]
    assert len(unknown) <= (1 if log_name.endswith(("lv1", "lv2", "lv3", "slots2")) else 0), unknown


def test_two_thousand_turns_on_four_slots() -> None:
    """The large recording: several clients at a time, so the client can't know what each slot held."""
    truth = json.loads(gzip.decompress(VOLUME.with_name(VOLUME.name + ".truth.json.gz").read_bytes()))
    report = ckptlog.analyze(VOLUME.with_name(VOLUME.name + ".log.gz")).report
    requests = requests_of(truth)
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for request, turn in pairs(requests, report.turns):
        if turn is None:
            seen["missing"] += 1
            continue
        seen["paired"] += 1
        told = complaints("volume", request, turn)
        wrong += [text for text in told if "n_common" not in text]
        seen["common prefix"] += any("n_common" in text for text in told)
        if "deep edit" in request["step"] or "new chat" in request["step"]:
            seen["changed"] += turn.trigger != "other-conversation"
            seen["edited"] += turn.trigger == "edited"
            seen["rewritten"] += turn.trigger == "prefix-rewritten"
    assert wrong == []
    # the slots share batches, and few of these are full: where messages begin is seen all the same
    assert seen["edited"] > 0.95 * seen["changed"] > 350
    # a short new chat keeps the system prompt, though that is little of the long one that the slot held
    assert seen["rewritten"] == 0
    by_task = {turn.task: turn for turn in report.turns}
    # two saved prompts had 632 tokens: of the one that was loaded, the first message begins at 159
    assert (by_task[8996].trigger, by_task[8996].cause) == ("edited", "checkpoint-thinned")
    assert "at token 159 would have served" in by_task[8996].explanation
    assert by_task[29282].trigger == "edited"
    assert len(report.turns) == len(requests)
    assert seen["missing"] == 0
    assert seen["common prefix"] <= 6
    (source,) = report.sources
    assert (source.drifted_lines, source.unknown_slot_lines) == (0, 0)
    assert contradictions(report) == []
