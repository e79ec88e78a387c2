"""Random conversations: Hypothesis makes up scenarios, and shrinks one on which ckptlog errs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tests.live import scenario as sc

CHATS = st.sampled_from("abc")


@st.composite
def _moves(draw: st.DrawFn) -> list[sc.AnyStep]:
    """One thing that a client does: a mutation of its history, if any, and the request after it."""
    chat = draw(CHATS)
    budget = draw(st.integers(1, 60))
    raw = draw(st.integers(0, 7)) == 7
    say = sc.Say(chat=chat, raw=raw, words=draw(st.integers(5, 220)), max_tokens=budget)
    kind = draw(
        st.sampled_from(
            (
                "say",
                "say",
                "say",
                "edit",
                "regenerate",
                "repeat",
                "fork",
                "compact",
                "rewrite",
                "full",
                "too long",
            )
        )
    )
    if kind == "edit":
        return [sc.Edit(chat=chat, turn=draw(st.integers(-3, -1)), at=draw(st.integers(0, 40))), say]
    if kind == "regenerate":
        return [sc.Undo(chat=chat), sc.Send(chat=chat, max_tokens=budget)]
    if kind == "repeat":
        return [sc.Repeat(chat=chat, max_tokens=budget, raw=raw)]
    if kind == "fork":
        return [
            sc.Fork(chat=chat, to=draw(CHATS.filter(lambda c: c != chat)), turns=draw(st.integers(1, 3))),
            say,
        ]
    if kind == "compact":
        return [sc.Compact(chat=chat), say]
    if kind == "rewrite":
        return [sc.Rewrite(chat=chat, line=f"Time {draw(st.integers(10, 99))}"), say]
    if kind == "full":
        return [sc.Say(chat=chat, words=10, max_tokens=draw(st.integers(100, 900)), full=True)]
    if kind == "too long":
        return [
            sc.Say(chat=chat, prompt_tokens=draw(st.sampled_from((1023, 1024, 2047, 2048, 5000)))),
            sc.Undo(chat=chat),
        ]
    return [say]


@st.composite
def scenarios(draw: st.DrawFn) -> sc.Scenario:
    """A scenario with one client at a time, on any model, with any flags."""
    model = draw(st.sampled_from(("hybrid", "swa", "recurrent", "plain")))
    flags: dict[str, sc.Flag] = {
        "ctx-size": draw(st.sampled_from((1024, 2048, 4096))),
        "parallel": draw(st.sampled_from((1, 1, 2, 3))),
        "batch-size": draw(st.sampled_from((64, 256))),
        "ubatch-size": draw(st.sampled_from((32, 64))),
        "ctx-checkpoints": draw(st.sampled_from((32, 0, 1, 2, 3, 4, 8))),
        "checkpoint-min-step": draw(st.sampled_from((0, 64, 256, 8192))),
        "cache-ram": draw(st.sampled_from((0, 1, 64))),
        "context-shift": draw(st.booleans()),
    }
    chats = {
        name: sc.ChatStart(system=draw(st.integers(20, 300)), seed=draw(st.integers(1, 2))) for name in "abc"
    }
    moves = draw(st.lists(_moves(), min_size=2, max_size=12))
    return sc.Scenario(
        name="random",
        doc="made up by tests/live/generator.py",
        models=[model],
        flags=flags,
        chats=chats,
        steps=[step for move in moves for step in move],
    )


class _TimeIsUp(BaseException):
    """Ends a run of Hypothesis; it catches nothing that is no Exception."""


def hunt(check: Callable[[sc.Scenario], None], *, seconds: float, first_seed: int) -> sc.Scenario | None:
    """Try random scenarios for ``seconds``; the smallest one on which ``check`` raises AssertionError.

    None if there is none. Once one is found, as much time again is spent on making it smaller.
    """
    start = time.monotonic()
    smallest: list[sc.Scenario] = []

    @seed(first_seed)
    @settings(
        max_examples=100_000,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios())
    def attempt(scenario: sc.Scenario) -> None:
        if time.monotonic() - start > seconds * (2 if smallest else 1):
            raise _TimeIsUp
        try:
            check(scenario)
        except AssertionError:
            smallest.append(scenario)
            raise

    # whatever Hypothesis makes of a failure (flaky, say), the scenario that showed it is kept
    with contextlib.suppress(_TimeIsUp, AssertionError, Flaky):
        attempt()
    return smallest[-1] if smallest else None
