"""Why the server could not resume: one small class a cause, tried in the order of ``CAUSES``.

A cause is named only when the log proves it; where it does not, the answer is ``unknown`` with
what to capture next time.
"""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.timeline.model import Checkpoint
from ckptlog.verdict import fixes
from ckptlog.verdict.case import NOTHING_CACHED, Case, costly
from ckptlog.verdict.returning import returning_hint
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.triggers import is_other_conversation


def _present(*items: Fix | None) -> list[Fix]:
    return [item for item in items if item is not None]


def _quote_search(case: Case) -> None:
    """The lines of this turn that show that nothing could be resumed from."""
    turn = case.turn
    if turn.memory_state_quote is not None:
        q = turn.memory_state_quote
        case.quote(q.line, q.text, f"the prompts part at token {turn.memory_state[0] if turn.memory_state else '?'}")
    for check in turn.checks[-2:]:
        if check.pos_max > (case.common[1] if case.common else check.pos_max):
            says = "this checkpoint lies beyond the point where the prompts part"
        elif check is turn.checks[-1] and turn.restored is not None:
            says = "the first that could be used"
        else:
            says = "this checkpoint does not reach back far enough"
        case.quote(check.line, check.text, says)
    if turn.forced is not None:
        case.quote(turn.forced.line, turn.forced.text, "no checkpoint fitted: the prompt was processed from token 0")
    if turn.restored_quote is not None:
        says = f"evaluation went on from token {turn.n_cached:,}" if turn.n_cached is not None else "the one restored"
        case.quote(turn.restored_quote.line, turn.restored_quote.text, says)


def _not_helping(case: Case) -> list[Fix]:
    most = max((t for t in (case.turn.n_prompt, case.turn.n_held) if t is not None), default=None)
    run = case.run
    return _present(fixes.not_swa_full(run), fixes.not_larger_context(run, most), fixes.not_cache_reuse(run))


class NothingInCommon(CauseRule):
    """Another conversation had the slot

    What happened: the new prompt has (almost) nothing in common with what the slot held, so there was
    nothing to keep. The server may still print "forcing full prompt re-processing": with a common
    prefix of a few tokens (the template's first header) the line costs nothing.

    How to see it: the common prefix is a handful of tokens, or a small part of a much longer conversation
    that the slot held before.

    What to do: nothing, if conversations really change. If one conversation keeps losing its slot to
    another, give each its own slot (--parallel) or keep the RAM prompt cache on (--cache-ram).

    Example: a 250-token prompt arrives at a slot that held 2,611 tokens of something else; 4 tokens match.
    """

    name = "other-conversation"
    #: this early only the certain case; the weaker one is tried last
    certain_only = True

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        if case.common is None or case.known_costly:
            return None
        low, high = case.common
        held = turn.n_held
        if self.certain_only and high > NOTHING_CACHED:
            return None
        if not self.certain_only and not is_other_conversation(turn, high, held):
            return None
        _quote_search(case)
        what = "nothing" if high == 0 else f"only {high:,} token{'s' if high != 1 else ''}"
        text = f"The new prompt has {what} in common with the {held:,} tokens" if held else f"The prompt has {what} in common with what"
        text += " that the slot held: another conversation, so there was nothing to keep."
        text = " ".join(x for x in (text, returning_hint(case)) if x)
        confidence = "derived" if low == high else "inferred"
        return Finding(self.name, text, confidence)  # type: ignore[arg-type]


class OtherConversation(NothingInCommon):
    __doc__ = NothingInCommon.__doc__
    certain_only = False


class CheckpointsDisabled(CauseRule):
    """Context checkpoints are switched off

    What happened: the model's memory can't be rewound (sliding-window, hybrid or recurrent), so a changed
    prompt can be resumed only from a context checkpoint, and the server was told to make none.

    How to see it: "context checkpoints disabled" at start (-lv 4 from b9830 on), and a full re-prefill
    without one "checking checkpoint" line.

    What to do: leave --ctx-checkpoints at its default (32), or give it a number above 0.

    Example: --ctx-checkpoints 0 on a Qwen3-Next model: each edited message costs the whole prompt.
    """

    name = "checkpoints-disabled"

    def find(self, case: Case) -> Finding | None:
        run = case.run
        if run.memory == "plain" or run.swa_full:
            return None
        said = run.checkpoints_enabled is False
        # builds up to b9305 don't print the setting; none after finished prompts proves it as well
        never = run.checkpoints_enabled is None and run.n_created == 0 and run.n_prompts_shown > 0 and run.start_seen
        if not (said or (never and case.turn.list_visible and run.memory in ("swa", "hybrid", "recurrent"))):
            return None
        _quote_search(case)
        return Finding(
            self.name,
            "This server makes no context checkpoints (switched off), and this model's memory can't be rewound "
            "without one.",
            "observed" if said else "derived",
            [fixes.enable_checkpoints(run), *_present(fixes.swa_full(run))],
            _not_helping(case),
        )


class CacheOff(CauseRule):
    """The request asked for no reuse

    What happened: the request said "cache_prompt": false (or it was an embedding). The server then ignores
    everything it holds, whatever is in common.

    How to see it: a common prefix well above 0 at the slot's choice, 0 tokens reused, and neither a
    "checking checkpoint" nor a "forcing full prompt" line.

    What to do: let the client send "cache_prompt": true, or leave it out (true is the default).

    Example: 1,200 of 1,400 tokens match, the first batch starts at 0, and no search was made.
    """

    name = "cache-off"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        if not turn.list_visible or turn.n_cached != 0 or turn.basis.get("n_cached") != "observed":
            return None
        if turn.forced is not None or turn.restored is not None or turn.checks or turn.cache_loaded:
            return None
        if case.common is None or case.common[0] <= NOTHING_CACHED or not turn.batch_starts:
            return None
        # without a search, what is in common is always reused: unless the request forbade it
        q = turn.selected_quote
        if q is not None:
            case.quote(q.line, q.text, "the slot held a common prefix")
        return Finding(
            self.name,
            f"The slot held {case.common[0]:,} tokens of this prompt, and the server did not even look for a way to "
            'reuse them: the request was sent with "cache_prompt": false.',
            "derived",
            [
                Fix(
                    "send-cache-prompt",
                    'Let the client send "cache_prompt": true, or leave the field out (true is the default).',
                )
            ],
        )


class ServerRule(CauseRule):
    """The build's own rule makes plain appends search

    What happened: the request only added to the conversation. Some builds look for a checkpoint all the
    same: on hybrid and recurrent models from b9246 to b9496; on sliding-window models (b8672 and later)
    as long as the common prefix is no longer than the window. What they restore lies a little behind the end;
    with nothing to restore they process everything again.

    How to see it: the common prefix is all that the slot held, and yet there are "checking checkpoint" lines.

    What to do: on hybrid models upgrade to b9509 or later. On sliding-window models it ends by itself once
    the conversation is longer than the window.

    Example: Gemma 3 (window 512), 426 tokens in common: "checking checkpoint with [0, 402] against 0".
    """

    name = "server-rule"

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or turn.n_held is None or turn.shifts:
            return None
        appended = case.common[0] >= turn.n_held
        if not appended or not (turn.checks or turn.forced):
            return None
        if turn.content_from == "slot-file" and turn.n_held != case.common[0]:
            return None
        window = run.n_swa or 0
        in_bracket = run.build_min <= 9508 and (run.build_max is None or run.build_max >= 9114)
        sure_bracket = run.build_min >= 9246 and run.build_max is not None and run.build_max <= 9496
        whole_prompt = turn.n_prompt is not None and case.common[0] >= turn.n_prompt
        if run.memory in ("hybrid", "recurrent") and in_bracket and not whole_prompt and (
            sure_bracket or run.build_max is not None
        ):  # fmt: skip
            _quote_search(case)
            return Finding(
                self.name,
                "The request only added to the conversation. Builds b9246 to b9496 look for a checkpoint even then, "
                "on every turn of a hybrid or recurrent model: the server's rule, not the client's doing.",
                "derived" if sure_bracket else "inferred",
                [fixes.upgrade(9509, "plain appends resume at once there")],
                _not_helping(case),
            )
        if run.memory == "swa" and window and case.common[0] <= window and not run.swa_full and run.build_min >= 8353:
            _quote_search(case)
            return Finding(
                self.name,
                f"The request only added to the conversation. As long as the common prefix ({case.common[0]:,}) is no "
                f"longer than the sliding window ({window:,}), the server looks for a checkpoint although its memory "
                "is whole: its own rule, and it ends once the conversation is longer.",
                "derived",
                _present(fixes.swa_full(run)),
                _not_helping(case),
            )
        return None


class SlotRestoredBare(CauseRule):
    """The slot file carried no checkpoints

    What happened: the slot's content came from a slot file (/slots/N?action=restore). Files written by builds
    up to b11434 hold tokens and memory, but no checkpoints: only a plain append can be resumed afterwards.

    How to see it: a slot that this process had not used holds a common prefix, with an empty checkpoint list.

    What to do: upgrade to b11549 or later and save the slot again (old files stay without checkpoints), or
    send the conversation once more in full after a restore.

    Example: 391 tokens restored, the second message edited: all 392 processed again.
    """

    name = "slot-restored-bare"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        here = turn.content_from == "slot-file" and not any(c.origin == "slot-file" for c in turn.before or [])
        earlier = case.common is not None and 0 < case.common[1] <= turn.bare_until
        if not here and not earlier:
            return None
        if any(c.origin == "slot-file" for c in turn.dead) or turn.restored is not None:
            return None
        _quote_search(case)
        return Finding(
            self.name,
            "What the slot held came from a slot file, which carried no checkpoints: after such a restore only a "
            "plain append can be resumed.",
            "inferred",
            [fixes.upgrade(11549, "slot files carry the checkpoints there; save the slot again with it")],
            _not_helping(case),
        )


class CacheLoadFailed(CauseRule):
    """Loading the conversation from the RAM prompt cache failed

    What happened: the server found this conversation in its RAM prompt cache, but could not put the state
    back into the slot; it then cleared the slot.

    How to see it: "failed to restore state" and "failed to load prompt from cache" before the turn.

    What to do: look for errors about memory just before; a smaller context or fewer slots leave room.
    Report it with the lines around if it goes on.

    Example: "failed to load prompt from cache", then 8,000 tokens from 0.
    """

    name = "cache-load-failed"

    def find(self, case: Case) -> Finding | None:
        selection = case.turn.selection
        if selection is None or selection.load_failed_line is None:
            return None
        case.quote(selection.load_failed_line, selection.load_failed_text, "the saved prompt could not be loaded")
        return Finding(
            self.name,
            "The conversation was in the RAM prompt cache, but its state could not be loaded; the slot was cleared.",
            "observed",
            [Fix("check-cache-load", "Look at the errors just before this line; less context or fewer slots leave room.")],
        )


class ShiftCleared(CauseRule):
    """A context shift had thrown the checkpoints away

    What happened: in an earlier turn the context was full and the server deleted a slice (context shift).
    The positions behind the hole move, so all checkpoints of the slot go (from b10012 on, without a line).

    How to see it: a "slot context shift" line in an earlier turn of the slot, and an empty list after it.

    What to do: keep the conversation within the context: a larger -c, a shorter history from the client, or
    no --context-shift, so that the client learns that the context is full.

    Example: a shift in turn 7, the edited prompt of turn 8 starts from token 0.
    """

    name = "shift-cleared"

    def find(self, case: Case) -> Finding | None:
        shift = next((x for x in case.turn.list_lost if x[0] == "shift"), None)
        if shift is None:
            return None
        case.quote(shift[1], shift[2], "the shift that made the slot's checkpoints void")
        _quote_search(case)
        most = case.turn.n_prompt
        size = (case.run.n_ctx_slot or most or 4096) * 2 * (case.run.n_slots or 1)
        return Finding(
            self.name,
            f"A context shift in an earlier turn (line {shift[1]}) deleted a slice of this conversation; the slot's "
            "checkpoints went with it.",
            "derived",
            [fixes.larger_context(size)],
            _present(fixes.not_cache_reuse(case.run)),
        )


class DeadCheckpoint(CauseRule):
    """Base of the causes that name a checkpoint which would have served."""

    fate = ""

    def dead(self, case: Case) -> Checkpoint | None:
        best = case.best_dead
        return best if best is not None and best.fate == self.fate else None

    def quote_death(self, case: Case, dead: Checkpoint, says: str) -> None:
        case.quote(dead.fate_line, dead.fate_text, says)
        _quote_search(case)

    @staticmethod
    def death(dead: Checkpoint) -> str:
        where = f"line {dead.fate_line}" if dead.fate_line is not None else "an earlier turn"
        return f"in turn {dead.fate_turn_no} ({where})" if dead.fate_turn_no else f"in {where}"


class CheckpointEvicted(DeadCheckpoint):
    """The checkpoint that would have served had been pushed out

    What happened: a checkpoint existed at or before the point where the new prompt parts from the old one,
    but the slot's list was full and the oldest entry was dropped to make room for newer ones.

    How to see it: an "erasing old context checkpoint" line for it in an earlier turn; then "checking
    checkpoint" lines for the ones that were left, all beyond the divergence; then "forcing full prompt
    re-processing".

    What to do: raise --ctx-checkpoints (--swa-checkpoints up to b6628). The number in the finding comes from a
    replay of this log. The rule of thumb "conversation length / min-step + 1" is undefined at a spacing of 0
    and wrong where thinning keeps the oldest anyway.

    Example: the checkpoint at the end of the system prompt (8,623) was evicted in turn 2; the new session of
    turn 40 shares exactly that prefix and starts from 0.
    """

    name = "checkpoint-evicted"
    fate = "evicted"

    def find(self, case: Case) -> Finding | None:
        dead = self.dead(case)
        if dead is None:
            return None
        self.quote_death(case, dead, f"the checkpoint at {dead.n_tokens:,}, which this turn could have resumed from")
        cap = f" (the list holds {case.run.checkpoints_max})" if case.run.checkpoints_max else ""
        return Finding(
            self.name,
            f"A checkpoint at token {dead.n_tokens:,} would have served. It had been pushed out {self.death(dead)} "
            f"to make room for newer ones{cap}.",
            case.common_basis,
            [fixes.raise_count(case.run, None), *_present(fixes.swa_full(case.run))],
            _not_helping(case),
        )


class CheckpointThinned(DeadCheckpoint):
    """The checkpoint that would have served had been thinned out

    What happened: from b9981 on the server drops checkpoints of earlier turns that lie closer than
    --checkpoint-min-step (default 8192) behind an earlier one; the one this turn needed was among them.

    How to see it: an "erasing context checkpoint too close to an earlier one" line for it (-lv 4).

    What to do: a smaller --checkpoint-min-step keeps them (and needs a larger --ctx-checkpoints to hold them);
    from b10865 thinning starts only when the list is nearly full, so a larger count alone also helps.

    Example: checkpoints at 170, 252 and 304; the one at 252 goes, an edit at 260 resumes from 170.
    """

    name = "checkpoint-thinned"
    fate = "thinned"

    def find(self, case: Case) -> Finding | None:
        dead = self.dead(case)
        if dead is None:
            return None
        self.quote_death(case, dead, f"the checkpoint at {dead.n_tokens:,}, which this turn could have resumed from")
        run = case.run
        helps = [fixes.raise_count(run, None)] if run.build_min >= 10853 or run.build_max is None else []
        return Finding(
            self.name,
            f"A checkpoint at token {dead.n_tokens:,} would have served. It had been thinned out {self.death(dead)}, "
            f"being closer than --checkpoint-min-step ({run.checkpoints_min_step or 8192:,}) to an earlier one.",
            case.common_basis,
            [*helps, *_present(fixes.smaller_step(run, 256), fixes.swa_full(run))],
            _not_helping(case),
        )


class CheckpointInvalidated(DeadCheckpoint):
    """The checkpoint that would have served had been swept away by an earlier turn

    What happened: when a prompt parts from what the slot holds, the checkpoints beyond that point are erased.
    An earlier turn swept one away that this turn's prompt would have needed.

    How to see it: an "erased invalidated context checkpoint" line for it in an earlier turn.

    What to do: give the two conversations (or the two versions of it) a slot each, so that one does not
    sweep the other's checkpoints; keep the RAM prompt cache on.

    Example: a side request with another system prompt sweeps the list; the main chat then starts from 0.
    """

    name = "checkpoint-invalidated"
    fate = "invalidated"

    def find(self, case: Case) -> Finding | None:
        dead = self.dead(case)
        if dead is None:
            return None
        self.quote_death(case, dead, f"the checkpoint at {dead.n_tokens:,}, erased by an earlier turn's sweep")
        return Finding(
            self.name,
            f"A checkpoint at token {dead.n_tokens:,} would have served. It had been erased {self.death(dead)}, when an "
            "earlier prompt parted from the slot's content before it.",
            case.common_basis,
            [fixes.more_slots(case.run), *_present(fixes.larger_ram_cache(case.run))],
            _not_helping(case),
        )


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

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if run.build_min < 9306 or case.common is None or not turn.list_visible or not turn.before_known:
            return None
        if turn.user_starts or turn.first_born is None or not turn.boundaries_seen:
            return None
        if turn.first_born <= case.common[0]:
            return None
        _quote_search(case)
        return Finding(
            self.name,
            "Checkpoints were made only near the end of each prompt (the first at token "
            f"{turn.first_born:,}): the server does not know where this conversation's messages begin, as with raw "
            "/completion prompts or an unknown template.",
            "inferred",
            [fixes.use_chat_endpoint(run)],
            _not_helping(case),
        )


class BeforeFirstBoundary(CauseRule):
    """The prompt was changed before the first place where a checkpoint can exist

    What happened: the new prompt parts from the old one before the first user message (or the first place
    where the server could save anything): in the system prompt or the tool list. No checkpoint can lie
    before that point, so no flag helps.

    How to see it: the common prefix is smaller than the position of every checkpoint ever made of this
    conversation, the first user message's included.

    What to do: keep the beginning of the prompt the same from request to request. Clocks, session ids,
    directory listings, memories and reordered tool schemas belong at the end of the prompt, best in the last
    user message. Gemma's template puts the system prompt into the first user message, so the first boundary is
    token 1: there a new chat with the same system prompt can't be resumed either.

    Example: "Current time: 10:02:17" in the first line of a 9,000-token system prompt: 23 tokens match.
    """

    name = "before-first-boundary"

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or not turn.list_visible or turn.first_born is None or not turn.before_known:
            return None
        if turn.first_born <= case.common[1]:
            return None
        user_start = turn.user_starts[0] if turn.user_starts else None
        if user_start is not None and user_start <= case.common[1]:
            return None
        if run.build_min >= 9306 and user_start is None and turn.boundaries_seen:
            return None
        if run.build_max is not None and run.build_max < 9310 and run.build_max >= 8352 and _every_nt_helps(case):
            return None
        _quote_search(case)
        first = min(x for x in (user_start, turn.first_born) if x is not None)
        return Finding(
            self.name,
            f"The prompt was changed at token {case.common[0]:,}, before the first place where a checkpoint could be "
            f"({first:,}). No checkpoint flag helps.",
            case.common_basis,
            [fixes.stop_rewriting_head(), *_present(fixes.swa_full(run))],
            _not_helping(case),
        )


def _every_nt_helps(case: Case) -> bool:
    """Up to b9305 mid-prompt checkpoints come by distance: a smaller one reaches below the change."""
    return case.common is not None and case.common[0] > 512


class CheckpointsSparse(CauseRule):
    """Checkpoints lie too far apart

    What happened: a place where a checkpoint could have been made lies before the divergence, but none was,
    because it was closer than the spacing to the one before (or the build makes them only every N tokens).
    The server resumed far back, or from 0.

    How to see it: the nearest checkpoint at or before the divergence is far from it, and none between was
    ever erased.

    What to do: a smaller --checkpoint-min-step (b9310 and later) or --checkpoint-every-n-tokens (b8352 to b9305),
    with enough --ctx-checkpoints to hold them.

    Example: spacing 8,192, user messages at 2,000, 4,100 and 6,300: an edit at 6,000 resumes from 2,000.
    """

    name = "checkpoints-sparse"

    def find(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or not turn.list_visible or not turn.before_known:
            return None
        if run.memory == "plain" or turn.first_born is None:
            return None
        n_cached = turn.n_cached or 0
        low = case.common[0]
        missed = [u for u in turn.user_starts if n_cached < u <= low]
        by_distance = run.build_max is not None and 8352 <= run.build_max < 9310 and low - n_cached > 512
        if not missed and not by_distance and not (turn.restored is not None and n_cached > NOTHING_CACHED):
            return None
        _quote_search(case)
        spacing = run.checkpoints_min_step
        where = f"the nearest usable checkpoint lay at {n_cached:,}" if n_cached else "no checkpoint lay before it"
        text = f"The prompt was changed at token {low:,}; {where}."
        step = None
        if missed:
            text += f" A message begins at {missed[-1]:,}, but no checkpoint was made there"
            text += f": the spacing is {spacing:,}." if spacing is not None else "."
            step = max(1, min(256, (missed[-1] - n_cached) // 2))
        elif by_distance:
            text += " This build makes checkpoints by distance only, not where messages begin."
        else:
            text += (
                " No message is known to begin in between, so there was no place for a checkpoint: the change lies deep "
                "inside one long message."
            )
        closer = fixes.smaller_step(run, step) if missed or by_distance else None
        todo = _present(closer, fixes.swa_full(run))
        if closer is None:
            todo.insert(0, fixes.shorter_messages())
        return Finding(self.name, text, "derived" if missed else "inferred", todo, _not_helping(case))


class SlotTaken(CauseRule):
    """The conversation was held elsewhere

    What happened: the server held more of this prompt in another slot or in the RAM prompt cache than in the
    slot that was given to the request, and did not use it (the slot was busy or asked for by number, or the
    saved prompt keeps too little of itself: an entry is loaded only if at least a quarter of it is in common).

    How to see it: a better "checking sim" or "prompt with length ... lcp" line at the slot's choice.

    What to do: a slot for each conversation that goes on at the same time (--parallel), no fixed id_slot, and
    the RAM prompt cache on (--cache-ram).

    Example: 30,000 tokens saved, of which a new session shares the 8,600 of its system prompt: not loaded.
    """

    name = "slot-taken"

    def find(self, case: Case) -> Finding | None:
        turn, run = case.turn, case.run
        if not case.known_costly or turn.n_known is None:
            return None
        q = turn.selected_quote
        if q is not None:
            case.quote(q.line, q.text, "how the slot was chosen")
        in_cache = turn.selection is not None and any(
            lcp == turn.n_known for _, lcp, _, _ in turn.selection.candidates
        )
        where = "a prompt saved in the RAM prompt cache" if in_cache else "another slot"
        return Finding(
            self.name,
            f"{turn.n_known:,} tokens of this prompt were held by {where}, but the slot that was used shared only "
            f"{turn.n_common if turn.n_common is not None else 'part'} of them.",
            "derived",
            [fixes.more_slots(run), *_present(fixes.larger_ram_cache(run) if not in_cache else None)],
        )


class PromptCacheEvicted(CauseRule):
    """The conversation had been dropped from the RAM prompt cache

    What happened: the conversation had lost its slot and was saved in the RAM prompt cache, but the cache was
    full (or the conversation too big for it) and dropped it before it came back.

    How to see it: "removing oldest entry" or "exceeds cache size limit" between the two turns.

    What to do: raise --cache-ram (MiB), or give each conversation a slot.

    Example: --cache-ram 512 with conversations of 300 MiB each: every second turn starts from 0.
    """

    name = "prompt-cache-evicted"

    def find(self, case: Case) -> Finding | None:
        turn, selection = case.turn, case.turn.selection
        if not case.known_costly or selection is None or selection.removed is None:
            return None
        if not any(lcp == turn.n_known for _, lcp, _, _ in selection.candidates):
            return None
        case.quote(selection.removed.line, selection.removed.text, "the saved prompt was dropped to make room")
        return Finding(
            self.name,
            f"A saved prompt with {turn.n_known:,} tokens of this one was dropped from the RAM prompt cache to make room.",
            "inferred",
            _present(fixes.larger_ram_cache(case.run), fixes.more_slots(case.run)),
        )


class Unknown(CauseRule):
    """The log does not show why

    What happened: something in common was processed again, but the lines that would say why are missing: the
    log level hides them, the log begins too late, or lines were cut out.

    What to do: capture the next log with -lv 4 (and LLAMA_SERVER_SLOTS_DEBUG=1), whole, from the server's start.

    Example: a default-level log of b9830 or later: a full re-prefill leaves no line at all.
    """

    name = "unknown"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        _quote_search(case)
        if not turn.list_visible:
            text = "The log's level hides the checkpoint messages, so it can't tell why."
            missing = ["why the server could not resume (run with -lv 4)"]
        elif not turn.before_known:
            text = "The log begins after this slot's checkpoints were made (or lines are missing), so it can't tell why."
            text += self._nearest(case)
            missing = ["which checkpoints existed before the log begins (capture it from the server's start)"]
        else:
            text = "None of the known reasons fits what the log shows."
            missing = ["why the server could not resume (LLAMA_SERVER_SLOTS_DEBUG=1 shows the text at the divergence)"]
        todo = []
        if case.run.build_max is not None and case.run.build_max < 9771 and case.run.memory != "plain":
            todo.append(fixes.upgrade(9981, "checkpoints are made where user messages begin there, so edits find one"))
        return Finding(self.name, text, "inferred", todo, _not_helping(case), missing)

    @staticmethod
    def _nearest(case: Case) -> str:
        """What the search shows of the list: how far beyond the divergence its entries lie."""
        seen = [c.n_tokens for c in (case.turn.before or [])] + [c.n_tokens for c in case.turn.invalidated]
        beyond = [n for n in seen if case.common is not None and n > case.common[1]]
        if not beyond or case.common is None or len(beyond) != len(seen):
            return ""
        which = "The only checkpoint it shows lies" if len(set(seen)) == 1 else "The nearest checkpoint it shows lies"
        return (
            f" {which} at token {min(beyond):,}, {min(beyond) - case.common[0]:,} tokens beyond the point where the "
            "prompts part."
        )


#: in the order in which they are tried
CAUSES: tuple[type[CauseRule], ...] = (
    NothingInCommon,
    CheckpointsDisabled,
    CacheOff,
    ServerRule,
    SlotRestoredBare,
    CacheLoadFailed,
    ShiftCleared,
    CheckpointEvicted,
    CheckpointThinned,
    CheckpointInvalidated,
    OtherConversation,
    NoUserBoundary,
    BeforeFirstBoundary,
    CheckpointsSparse,
    PromptCacheEvicted,
    SlotTaken,
    Unknown,
)

_RULES = tuple(rule() for rule in CAUSES)


def find_cause(case: Case) -> Finding:
    """The first cause that the log proves; ``unknown`` always applies."""
    for rule in _RULES:
        finding = rule.find(case)
        if finding is not None:
            return finding
        case.evidence.clear()
    raise AssertionError("the last rule always answers")


__all__ = ["CAUSES", "costly", "find_cause"]
