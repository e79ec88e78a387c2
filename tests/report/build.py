"""Reports built by hand, as an analysis would make them: what the renderers are tested on."""

from __future__ import annotations

from typing import Any

from ckptlog.analysis.to_records import summarize
from ckptlog.records import (
    FAILURES,
    SCHEMA,
    CheckpointSettings,
    Evidence,
    Fix,
    MismatchRecord,
    Report,
    RunRecord,
    ShiftRecord,
    SourceRecord,
    Tool,
    TurnCheckpoints,
    TurnRecord,
)


def a_source(path: str = "server.log", **changes: Any) -> SourceRecord:
    fields = {"lines": 2511, "bytes": 180_000, "format": "prefixed", **changes}
    return SourceRecord(path=path, **fields)


def a_run(run: int = 0, source: int = 0, **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "lines": (1, 2511),
        "build_min": 10865,
        "arch": "qwen35",
        "memory": "hybrid",
        "n_slots": 1,
        "n_ctx_slot": 65536,
        "checkpoints": CheckpointSettings(enabled=True, max=2, min_step=8192),
        "verbosity": 4,
        "slots_debug": True,
    }
    return RunRecord(run=run, source=source, **{**fields, **changes})


def a_turn(
    line: int = 172, n_prompt: int | None = 9012, n_cached: int | None = 8640, **changes: Any
) -> TurnRecord:
    """A healthy turn that reused all it could, unless told otherwise."""
    n_processed = None if n_prompt is None or n_cached is None else n_prompt - n_cached
    fields: dict[str, Any] = {
        "source": 0,
        "run": 0,
        "slot": 0,
        "task": line,
        "child_of": None,
        "lines": (line, line + 40),
        "t_start": float(line),
        "t_end": line + 3.5,
        "ended": "release",
        "outcome": "reused",
        "severity": None,
        "failed": False,
        "also": [],
        "variant": None,
        "trigger": None,
        "cause": None,
        "confidence": "observed",
        "n_prompt": n_prompt,
        "n_common": n_cached,
        "n_common_slot": n_cached,
        "n_common_range": None,
        "n_known": n_cached,
        "n_cached": n_cached,
        "n_processed": n_processed,
        "n_generated": 120,
        "n_lost": None if n_cached is None else 0,
        "truncated": False,
        "prompt_ms": None if n_processed is None else n_processed * 1.44,
        "generation_ms": 2400.0,
        "lost_ms": 0.0,
        "basis": {},
        "mismatch": None,
        "checkpoints": TurnCheckpoints(before=[8623], after=[8623]),
        "shifts": [],
        "evidence": [],
        "fixes": [],
    }
    unknown = changes.keys() - {*fields, "headline", "explanation", "not_fixes", "missing"}
    assert not unknown, f"no such field: {unknown}"
    turn = TurnRecord(**{**fields, **changes})
    if "failed" not in changes:
        turn.failed = turn.outcome in FAILURES and turn.severity != "harmless"
    return turn


def an_evicted_turn(number: int, line: int, n_prompt: int = 9138, **changes: Any) -> TurnRecord:
    """A new session that can't resume because the system prompt's checkpoint was pushed out."""
    n_lost = 8623
    fields: dict[str, Any] = {
        "outcome": "checkpoint-reprefill",
        "severity": "costly",
        "variant": "full",
        "trigger": "shrunk",
        "cause": "checkpoint-evicted",
        "n_common": n_lost,
        "n_common_slot": n_lost,
        "n_known": n_lost,
        "n_lost": n_lost,
        "lost_ms": n_lost * 1.44,
        "checkpoints": TurnCheckpoints(before=[30112, 31200], invalidated=[30112, 31200], after=[9134]),
        "mismatch": MismatchRecord(pos=n_lost, old="Fix the test", new="Write a story"),
        "headline": (
            "The prompt was processed again from the beginning: 8,623 tokens (12.4 s) that the server had held."
        ),
        "explanation": (
            "The checkpoint at the end of your system prompt (token 8,623) had been pushed out by turn 2 "
            f"(line 241) when turn {number} needed it. Nothing before the point where the prompts part was left."
        ),
        "evidence": [
            Evidence(
                0,
                241,
                "0.09.227.302 W slot create_check: id  0 | task 18 | erasing old context checkpoint "
                "(pos_min = 8622, pos_max = 8622, n_tokens = 8623, size = 37.500 MiB)",
                "the only one that a new session could have resumed from",
            ),
            Evidence(
                0,
                line + 2,
                "1.00.593.884 I slot   operator(): id  0 | task 881 | checking checkpoint with [30112, 30112] "
                "against 8623...",
                "both that were left lie beyond the point where the prompts part",
            ),
            Evidence(
                0,
                line + 4,
                "1.00.593.929 I slot   operator(): id  0 | task 881 | forcing full prompt re-processing due to "
                "lack of cache data (likely due to SWA or hybrid/recurrent memory, see "
                "https://github.com/ggml-org/llama.cpp/pull/13194#issuecomment-2868343055)",
                "",
            ),
        ],
        "fixes": [
            Fix(
                "more-checkpoints",
                "Keep 4 checkpoints a slot: at most 75 MiB more host RAM (2 x 37.5 MiB), no VRAM.",
                ["--ctx-checkpoints", "4"],
            ),
            Fix("keep-session", "or keep one session open: plain appends never need it"),
        ],
        "not_fixes": [
            Fix("swa-full", "--swa-full: this memory has no sliding window to keep whole.", ["--swa-full"]),
            Fix("larger-context", "A larger -c: nothing overflowed; 31,200 of 65,536 were in use.", ["-c"]),
        ],
    }
    return a_turn(line, n_prompt, 0, **{**fields, **changes})


def a_rejection(line: int = 900, n_prompt: int = 72_000, **changes: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "outcome": "arrival-rejection",
        "variant": "near-miss",
        "n_common": None,
        "n_common_slot": None,
        "n_known": None,
        "n_processed": 0,
        "n_generated": 0,
        "n_lost": None,
        "lost_ms": None,
        "prompt_ms": None,
        "generation_ms": None,
        "ended": "error",
        "checkpoints": None,
        "headline": f"A prompt of {n_prompt:,} tokens did not fit a slot of 65,536.",
        "evidence": [
            Evidence(
                0,
                line + 3,
                f"2.10.000.001 E srv    send_error: task id = 77, error: request ({n_prompt} tokens) exceeds the "
                "available context size (65536 tokens), try increasing it",
                "the server's own figures",
            )
        ],
        "fixes": [Fix("larger-context", "holds this prompt and an answer of 2,000 tokens", ["-c", "73728"])],
    }
    return a_turn(line, n_prompt, 0, **{**fields, **changes})


def a_shift(line: int = 1200, **changes: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "outcome": "context-shift",
        "variant": "head",
        "truncated": True,
        "n_generated": 400,
        "shifts": [ShiftRecord(line + 9, 1, 65531, 32765, (1, 32766), "head")],
        "headline": "The first 32,765 tokens after BOS, your system prompt among them, were deleted.",
        "evidence": [
            Evidence(
                0,
                line + 9,
                "3.00.000.001 W slot   operator(): id  0 | task 99 | slot context shift, n_keep = 1, n_left = "
                "65531, n_discard = 32765",
                "the hole begins at token 1",
            )
        ],
        "fixes": [Fix("keep", "the client sends n_keep; the system prompt then stays", ["--keep", "8623"])],
    }
    return a_turn(line, 65_000, 64_900, **{**fields, **changes})


def a_limit_stop(line: int = 1300, **changes: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "outcome": "limit-stop",
        "truncated": True,
        "confidence": "derived",
        "n_generated": 535,
        "headline": "The answer ended at token 65,535 of 65,536; the client saw only finish_reason: length.",
        "fixes": [Fix("larger-context", "leaves room for the answer", ["-c", "131072"])],
    }
    return a_turn(line, 65_000, 64_900, **{**fields, **changes})


def a_report(
    turns: list[TurnRecord], runs: list[RunRecord] | None = None, sources: list[SourceRecord] | None = None
) -> Report:
    """A whole report around ``turns``, with the summary that an analysis would make of them."""
    return Report(
        schema=SCHEMA,
        tool=Tool("ckptlog", "0.0.0"),
        sources=[a_source()] if sources is None else sources,
        runs=[a_run()] if runs is None else runs,
        turns=turns,
        checkpoints=[],
        summary=summarize(turns),
    )


def evicted() -> Report:
    """52 turns: one long session, and three new ones that start from zero."""
    turns = [a_turn(172, 8640, 0, outcome="cold", n_common=0)]
    n_prompt = 8640
    for number in range(2, 53):
        line = 172 + number * 48
        if number in (40, 47, 52):
            turns.append(an_evicted_turn(number, line, 9100 + number))
            n_prompt = 9100 + number
        else:
            turns.append(a_turn(line, n_prompt + 700, n_prompt))
            n_prompt += 700
    turns[39].missing = turns[46].missing = turns[51].missing = [
        "the text around the divergence (run with LLAMA_SERVER_SLOTS_DEBUG=1 LLAMA_SERVER_SLOTS_N_DIFF=20)"
    ]
    return a_report(turns)


def healthy() -> Report:
    turns = [a_turn(100, 1000, 0, outcome="cold", n_common=0)]
    turns += [a_turn(100 + 40 * n, 1000 + 100 * n, 900 + 100 * n) for n in range(1, 12)]
    turns.append(
        a_turn(
            900,
            2200,
            4,
            outcome="checkpoint-reprefill",
            severity="harmless",
            variant="full",
            cause="other-conversation",
            n_common=26,
            n_lost=22,
            lost_ms=31.0,
        )
    )
    return a_report(turns)


def low_level() -> Report:
    """The default level of a new build: no checkpoint line; the rest is arithmetic."""
    turns = [
        a_turn(100 + 20 * n, 1000 + 100 * n, 900 + 100 * n, checkpoints=None, confidence="derived")
        for n in range(10)
    ]
    turns.append(
        a_turn(
            400,
            2000,
            0,
            outcome="checkpoint-reprefill",
            variant="silent",
            severity="costly",
            cause="unknown",
            confidence="inferred",
            n_common=None,
            n_common_range=(1899, 1901),
            n_lost=None,
            lost_ms=None,
            checkpoints=None,
            headline="Turn 11 processed its whole prompt although about 1,900 tokens were in the slot.",
            missing=["why the server could not resume: checkpoint lines are hidden at -lv 3"],
        )
    )
    run = a_run(verbosity=3, checkpoints=None, memory="unknown", build_min=10423, slots_debug=False)
    return a_report(turns, [run])


def many(n: int = 10_000) -> Report:
    """A log of ten thousand turns on four slots, a failure here and there."""
    turns = []
    for number in range(n):
        line = 100 + number * 30
        if number % 97 == 96:
            turns.append(an_evicted_turn(number + 1, line, 9000 + number, slot=number % 4))
        elif number % 2 == 0:
            turns.append(a_turn(line, 9000 + number % 500, 8000, slot=number % 4))
        else:
            turns.append(
                a_turn(line, 9000, 8000, outcome="restored", n_common=8040, n_lost=40, slot=number % 4)
            )
    return a_report(turns, [a_run(n_slots=4)], [a_source(lines=400_000, drifted_lines=3)])


def everything() -> Report:
    """All failures, several logs, a router's child, unknown and cancelled turns."""
    turns = [
        a_turn(100, 8640, 0, outcome="cold", n_common=0),
        an_evicted_turn(2, 400),
        a_rejection(),
        a_shift(),
        a_limit_stop(),
        a_turn(1500, 1000, 900, outcome="cancelled", ended="cancel"),
        a_turn(1600, None, None, outcome="unknown", checkpoints=None, n_generated=None, n_common=None),
        a_turn(50, 700, 600, source=1, run=1, slot=3, also=[]),
        a_turn(90, 800, 700, source=1, run=1, slot=3, outcome="error", ended="error"),
    ]
    runs = [
        a_run(),
        a_run(
            1,
            1,
            memory="swa",
            n_swa=512,
            arch="gemma3",
            port=42027,
            n_slots=4,
            build="b11549",
            build_min=11549,
        ),
    ]
    return a_report(turns, runs, [a_source(), a_source("logs/child.log", lines=120, unknown_slot_lines=2)])


#: what a hostile client can get into a log: escapes, markup, bidi, wide and broken text
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 [bold red]boo[/] <script>alert(1)</script> `code` | pipe | *x* _y_ "
    "\u202eevil\u202c \x9b31m \r\n# heading ![img](http://a.example/x) @someone 日本語 🦙 \ufffd \x00 ```"
)


def nasty() -> Report:
    """:func:`everything` with hostile text wherever a log's text can come through."""
    report = everything()
    report.sources[0].path = f"/tmp/{HOSTILE}/server.log"
    report.runs[0].model = f"/models/{HOSTILE}.gguf"
    report.runs[0].arch = "qwen\x1b[31m35"
    for turn in report.turns:
        if turn.failed:
            turn.headline = f"It happened because of {HOSTILE}"
            turn.explanation = f"The slot held {HOSTILE}"
            turn.missing = [f"what {HOSTILE} was"]
            turn.mismatch = MismatchRecord(pos=17, old=HOSTILE, new=HOSTILE[::-1])
            turn.fixes = [Fix("hostile", HOSTILE, ["--chat-template", HOSTILE])]
            turn.evidence = [
                Evidence(
                    0, turn.lines[0], f"0.01.000.000 W slot operator(): id  0 | task 1 | {HOSTILE}", HOSTILE
                ),
                Evidence(0, turn.lines[0] + 1, "old: ... " + "A" * 5000 + " | " + HOSTILE, ""),
                Evidence(9, 1, "B" * 2_000_000, "a source that is not there"),
            ]
    return report
