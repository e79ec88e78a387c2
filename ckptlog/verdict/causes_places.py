"""Causes that lie in where checkpoints are made, and where the prompt was changed."""

from __future__ import annotations

from ckptlog.records import Basis, Fix
from ckptlog.replay.loss import NOTHING_CACHED
from ckptlog.timeline.course import searched
from ckptlog.timeline.model import Run, Turn
from ckptlog.verdict import faults, fixes
from ckptlog.verdict.case import Case, rules_of
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import new_session, not_helping, present, quote_search, whole_window
from ckptlog.verdict.triggers import RELATED_TOKENS, cuts_every_user_start, first_user_start, may_be_another


def _searched(turn: Turn) -> bool:
    """Did the server look for a checkpoint? Where it did not, what it would have found is not why nothing was reused."""
    return searched(turn) or turn.memory_state is not None


class NoUserBoundary(CauseRule):
    """Checkpoints appear only near the end of each prompt

    What happened: from b9310 on the server makes checkpoints where user messages begin, but only for requests
    through the chat endpoints with a template whose boundaries it knows. Raw /completion prompts, unknown
    templates and images get only the two checkpoints near the prompt's end, which an edit further back
    can't use.

    How to see it: every "created context checkpoint" lies within a batch of the end of its prompt.

    What to do: send the conversation to /v1/chat/completions, or name the boundaries in the request
    (message_delimiters), or send prompts whose changes stay near the end.

    Example: a raw prompt cut back to the second message: checkpoints at 1,932 and 1,996 only, the change at 900.
    """

    name = "no-user-boundary"
    by_policy = True

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if run.build_min < 9306 or case.common is None or not turn.list_visible or not turn.before_known:
            return None
        if turn.starts.user or turn.starts.first_born is None or not turn.starts.seen or not _searched(turn):
            return None
        if may_be_another(turn, case.common[1]):
            return None
        if not turn.starts.complete or not turn.starts.sure:
            return None
        if turn.starts.first_born <= case.common[0] or case.perhaps_nothing_common:
            return None
        quote_search(case)
        return Finding(
            self.name,
            "Checkpoints were made only near the end of each prompt (the first at token "
            f"{turn.starts.first_born:,}): the server does not know where this conversation's messages begin, as with raw "
            "/completion prompts or an unknown template.",
            "inferred",
            [fixes.use_chat_endpoint(run)],
            not_helping(case),
        )


class BeforeFirstBoundary(CauseRule):
    """The prompt was changed before the first place where a checkpoint can exist

    What happened: the new prompt parts from the old one before the first user message (or the first place
    where the server could save anything): in the system prompt or the tool list. No checkpoint can lie
    before that point, so no flag helps.

    How to see it: the common prefix is smaller than the position of every checkpoint ever made of this
    conversation, the first user message's included.

    What to do: keep the beginning of the prompt the same from request to request. Clocks, session ids,
    directory listings and memories belong in the last user message, tools in the same order each time. Gemma's
    template puts the system prompt into the first user message, so the first boundary is token 1: there a new chat
    with the same system prompt can't be resumed either.

    With only a few tokens in common the log can't tell a rewritten beginning from another conversation that
    begins with the same words; the lengths decide which is told first, and the text names both.

    Example: "Current time: 10:02:17" in the first line of a 9,000-token system prompt: 23 tokens match.
    """

    name = "before-first-boundary"

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or not turn.list_visible or turn.starts.first_born is None or not turn.before_known:
            return None
        if not _searched(turn):
            return None
        if not turn.starts.complete:
            return None  # the content is older than the log: checkpoints of it may have come and gone unseen
        high = case.common[1]
        if turn.starts.first_born <= high or may_be_another(turn, high):
            return None
        start = first_user_start(run, turn)
        folded = start is not None and start <= NOTHING_CACHED
        if folded:
            start = next((u for u in turn.starts.user if u > NOTHING_CACHED), None)
            if start is not None and start <= high:
                return None
        elif start is None:
            # where messages begin is not seen (or only the last one): only a change near the very beginning is sure
            if turn.n_held is None or high > max(RELATED_TOKENS, turn.n_held / 10):
                return None
        elif start <= high:
            return None
        quote_search(case)
        first = min(x for x in (start, turn.starts.first_born) if x is not None)
        basis: Basis = case.common_basis if start is not None else "inferred"
        if high <= RELATED_TOKENS or case.perhaps_nothing_common:
            basis = "inferred"
            text = (
                f"The prompt parts from what the slot held at {case.parting}, before the first place where a checkpoint could "
                f"be ({first:,}). If it is the same conversation, its beginning was changed there{case.perhaps}, "
                "and no checkpoint flag helps; if it is another one, there was nothing to keep."
            )
        else:
            text = (
                f"The prompt was changed at {case.parting}, before the first place where a checkpoint could be ({first:,}). "
                "No checkpoint flag helps."
            )
        todo = [fixes.stop_rewriting_head(), *present(whole_window(case))]
        if folded:
            text += (
                f" The first user message begins at token {turn.starts.user[0]} already: this chat template puts the system "
                "prompt inside it, so that not even a new conversation with the same system prompt can be resumed."
            )
            todo = [*present(whole_window(case), fixes.name_delimiters(run)), fixes.stop_rewriting_head()]
            basis = case.common_basis
        return Finding(self.name, text, basis, todo, not_helping(case))


class CheckpointsSparse(CauseRule):
    """Checkpoints lie too far apart

    What happened: nothing before the divergence could be resumed from, or only something far before it,
    although a checkpoint could have been there: it was closer than the spacing to the one before, or the build
    makes them in few places (up to b9305 near the end of a prompt and every N tokens; up to b9763 also where
    the last user message begins; from b9771 on where any user message begins). The server resumed far back,
    or from 0.

    How to see it: the nearest checkpoint at or before the divergence is far from it, and none between was
    ever erased.

    What to do: a smaller --checkpoint-min-step (b9310 and later) or --checkpoint-every-n-tokens (b8352 to b9305),
    with enough --ctx-checkpoints to hold them; on older builds an upgrade.

    Example: spacing 8,192, user messages at 2,000, 4,100 and 6,300: an edit at 6,000 resumes from 2,000.
    """

    name = "checkpoints-sparse"
    by_policy = True

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or not turn.list_visible or not turn.before_known or not _searched(turn):
            return None
        if run.memory == "plain" or turn.starts.first_born is None or may_be_another(turn, case.common[1]):
            return None
        if case.best_dead is not None or not (turn.starts.complete or turn.restored is not None):
            return None  # there was one, and the line that says how it went is missing; or there may have been one
        if case.perhaps_nothing_common:
            return None
        n_cached, low = turn.n_cached or 0, case.common[0]
        # (with a sliding window evaluation goes on a token before the checkpoint's end)
        resumed = max(n_cached, NOTHING_CACHED, turn.restored.n_tokens if turn.restored is not None else 0)
        missed = [u for u in turn.starts.user if resumed < u <= low and _too_close(case, u)]
        few_places = not cuts_every_user_start(run)
        # does most of what lies between belong to where a message's start would not show?
        unseen = sum(max(0, min(high, low) - max(at, resumed)) for at, high in turn.starts.hidden)
        hidden = not missed and not few_places and unseen * 2 > low - resumed
        if not missed and not few_places and not (turn.restored is not None and n_cached > NOTHING_CACHED):
            return None
        quote_search(case)
        text = f"The prompt was changed at {case.parting}; {_nearest(case)}."
        closer = _by_distance(case)
        if missed:
            spacing = run.checkpoints_min_step
            text += f" A message begins at {missed[-1]:,}, but no checkpoint was made there"
            text += f": the spacing is {spacing:,}." if spacing is not None else "."
            # a round number below the gap: a checkpoint needs more than the spacing behind the one before
            step = min(256, 1 << max(0, (missed[-1] - n_cached - 1).bit_length() - 1))
            closer = fixes.smaller_step(run, step, missed[-1])
        elif few_places:
            text += f" {_few_places(case)}"
        elif hidden:
            text += _perhaps_hidden(run, turn)
        elif not turn.starts.user:
            text += (
                " No place where a message begins is known in between, as with raw /completion prompts or an unknown "
                "template: there, checkpoints are made only near a prompt's end."
            )
        else:
            text += (
                " No message is known to begin in between, so there was no place for a checkpoint: the change lies deep "
                "inside one long message."
            )
        text += new_session(case)
        words, upgrade = faults.told(run, "near-end-spacing")
        if hidden and closer is None:
            closer = _closer(run)
        todo = present(closer, whole_window(case))
        if few_places:
            what = "checkpoints are made wherever a user message begins, which helps if one begins before the change"
            todo.append(fixes.upgrade(9981, what))
        else:
            text += f" {words}" if words else ""
            todo += upgrade
        if not missed and not few_places:
            better = fixes.shorter_messages() if turn.starts.user or hidden else fixes.use_chat_endpoint(run)
            todo.insert(0 if closer is None else 1, better)
        return Finding(self.name, text, "derived" if missed else "inferred", todo, not_helping(case))


def _nearest(case: Case) -> str:
    """Where the search found something to resume from, in words."""
    turn = case.turn
    if turn.n_cached:
        return f"the nearest usable checkpoint lay at {turn.n_cached:,}"
    if case.common is not None and any(c.n_tokens <= case.common[0] for c in turn.before or []):
        return "no checkpoint before it reaches back far enough"
    return "no checkpoint lay before it"


def _perhaps_hidden(run: Run, turn: Turn) -> str:
    """Where the log can't tell whether a message begins: the spacing would have kept a checkpoint from it."""
    spacing = f" ({run.checkpoints_min_step:,})" if run.checkpoints_min_step is not None else ""
    raw = "" if turn.starts.user else ", or the server was not told where messages begin (a raw /completion prompt)"
    return (
        f" No message is known to begin in between, but one within the spacing{spacing} of the checkpoint before it would "
        f"not show. If there is none, the change lies deep inside one long message{raw}."
    )


#: a smaller spacing than this is not advised where it is not known to help
LEAST_STEP = 64


def _closer(run: Run) -> Fix | None:
    """A smaller spacing, for messages that may begin where the log does not show them."""
    spacing, flag = run.checkpoints_min_step, fixes.spacing_flag(run)
    if flag is None or (spacing is not None and spacing <= LEAST_STEP):
        return None
    text = "Let checkpoints lie closer together: worth a try, for a message that begins in between would not show here."
    return Fix("smaller-spacing", text, [flag, str(max(LEAST_STEP, min(256, (spacing or 512) // 2)))])


def _too_close(case: Case, start: int) -> bool:
    """May the spacing be why no checkpoint was made there: is one, or the beginning, no further before it?"""
    spacing, turn = case.run.checkpoints_min_step, case.turn
    listed = (*(turn.before or ()), *turn.invalidated, *turn.dead)
    return spacing is None or start - max((c.n_tokens for c in listed if c.n_tokens < start), default=0) <= spacing


def _few_places(case: Case) -> str:
    """Where the builds of the bracket make checkpoints at all, in words (policy, section 3)."""
    first = case.turn.starts.first_born
    at = f" (here from token {first:,} on)" if first is not None and case.common and first > case.common[1] else ""
    made = {rules.create for rules in rules_of(case.run)}
    if made <= {"near-end", "near-end-n0"}:
        return (
            f"This build makes checkpoints near the end of each prompt{at} and every --checkpoint-every-n-tokens in "
            "between (where a batch begins), but not where messages begin."
        )
    if made <= {"prompt-done", "final-batch"}:
        return f"This build makes checkpoints only near the end of each prompt{at}."
    return (
        f"Builds up to b9763 make checkpoints only near the end of each prompt{at} and where the last user message "
        "begins, not where earlier ones do."
    )


def _by_distance(case: Case) -> Fix | None:
    """A smaller distance, where the build goes by it and a batch begins before the change (b8352 to b9305)."""
    run = case.run
    if case.common is None or any(rules.create not in ("near-end", "near-end-n0") for rules in rules_of(run)):
        return None
    n_batch = run.n_batch or 2048
    at = case.common[0] // n_batch * n_batch
    if at <= (case.turn.n_cached or 0):
        return None
    return Fix(
        "smaller-spacing",
        f"Let checkpoints come more often: with one at every batch of {n_batch:,} tokens this turn could resume at {at:,}.",
        ["--checkpoint-every-n-tokens", str(n_batch)],
    )
