"""The cause that speculation is: accepted drafts stay in the slot behind the answer's end."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.server.builds import Fault
from ckptlog.verdict import faults
from ckptlog.verdict.case import Case
from ckptlog.verdict.drafts import only_appended, seen_by_client
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import not_helping, quote_search


class DraftLeftBehind(CauseRule):
    """Drafted tokens stayed behind the answer

    What happened: with speculation (MTP, a draft model, n-grams) the tokens that were drafted and accepted come into
    the slot as a block, and those behind the token that ends the answer stay there. The client never saw them, so
    the next prompt, which only adds to the conversation, parts from the slot a token or two before its end. Memory that
    can't be cut back (hybrid, recurrent) must then resume from a checkpoint, and inside an answer there
    is none: the whole last answer is processed again, each turn.

    How to see it: "stop processing: n_tokens" is more than prompt + generated - 1, beside a "draft acceptance" line,
    and the next prompt shares at least prompt + generated - 1 tokens, but not all.

    What to do: nothing in the client. Switch speculation off for conversations of many long answers, or draft fewer
    tokens at a time. It is a fault of the server (llama.cpp issue 28049; pull request 28232 would mend it): no build
    up to b11549 is known to be without it.

    Example: 1,400 tokens of prompt, 1,499 of answer, 2,900 left in the slot: the next prompt parts at 2,899 and goes
    on from the checkpoint at 1,396.
    """

    name = "draft-left-behind"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        seen = seen_by_client(turn)
        if seen is None or case.common is None or not only_appended(turn, *case.common) or turn.n_held is None:
            return None
        release = turn.previous.release_quote if turn.previous is not None else None
        if release is not None:
            says = "more than the prompt and its answer stayed in the slot: drafted tokens behind the answer's end"
            case.quote(release.line, release.text, says, "drafts-left-behind")
        quote_search(case)
        extra = turn.n_held - seen
        tokens = f"{extra:,} drafted token{'s' if extra != 1 else ''}"
        resumed = f"token {turn.n_cached:,}" if turn.n_cached else "the beginning"
        text = (
            f"The client only added to the conversation: the prompt keeps all {seen:,} tokens of the last prompt and "
            f"answer. But {tokens} that had been accepted stayed in the slot behind the answer's end, where the client never saw them, and this "
            f"memory can't be cut back: the server went back to {resumed}, and the answer was processed again. It does so "
            f"each time a block of drafts runs past an answer's end ({draft_issue()})."
        )
        return Finding(self.name, text, "derived", _todo(), [_no_checkpoint(), *not_helping(case)])


def _fault() -> Fault:
    return faults.named("drafts-left-behind")


def draft_issue() -> str:
    """Where the server's fault is reported."""
    return f"llama.cpp issue {_fault().issue}"


def _todo() -> list[Fix]:
    fault = _fault()
    return [
        Fix(
            "no-speculation",
            "Switch speculation off where answers are long and conversations have many turns: each answer is then kept.",
        ),
        Fix(
            "fewer-drafts",
            f"Or draft fewer tokens at a time: blocks then run past the end less often. No build up to b{fault.last} is known to "
            f"mend it (llama.cpp pull request {fault.pull} would).",
        ),
    ]


def _no_checkpoint() -> Fix:
    return Fix(
        "checkpoints", "More or closer checkpoints: none can lie inside an answer.", ["--ctx-checkpoints", "--checkpoint-min-step"]
    )
