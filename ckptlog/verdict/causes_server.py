"""Causes that lie in how the server was set up, how it was asked, or in its build."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.replay.loss import NOTHING_CACHED
from ckptlog.server.builds import NEWEST, flag_exists
from ckptlog.timeline.course import lines_missing
from ckptlog.timeline.model import Quote, Run
from ckptlog.verdict import faults, fixes
from ckptlog.verdict.case import Case, rules_of
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import not_helping, present, quote_search, start_not_matched, whole_window

#: the first build that is known to make checkpoints (b6123 does not; formats: matrix)
WITH_CHECKPOINTS = 6301


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
        if turn_searched_for_nothing(case):
            return None  # no search was made, so no checkpoint would have been looked at
        if _is_before_checkpoints(run):
            return None  # there was nothing to switch off
        said = run.checkpoints_enabled is False
        # builds up to b9305 don't print the setting; none after finished prompts proves it as well
        silent = run.checkpoints_enabled is None and run.build_min <= 9305
        never = silent and run.n_created == 0 and run.n_prompts_shown > 0 and run.start_seen
        never = never and not run.n_cut_silently and not run.cp_equal and not run.cp_wide  # (one that is looked at or erased was made)
        if not (said or (never and case.turn.list_visible and run.memory in ("swa", "hybrid", "recurrent"))):
            return None
        quote_search(case)
        return Finding(
            self.name,
            "This server makes no context checkpoints (switched off), and this model's memory can't be rewound "
            "without one.",
            "observed" if said else "derived",
            [fixes.enable_checkpoints(run), *present(whole_window(case))],
            not_helping(case),
        )


def _is_before_checkpoints(run: Run) -> bool:
    """Can none of the builds that it may be make checkpoints?"""
    return run.build_max is not None and run.build_max < WITH_CHECKPOINTS


def turn_searched_for_nothing(case: Case) -> bool:
    """Was nothing reused and no search made, though there was something in common?

    What is in common is reused without a search, or a search is made (policy, section 2): neither happens only
    where the request forbade reuse.
    """
    turn = case.turn
    if not turn.list_visible or turn.n_cached != 0 or turn.basis.get("n_cached") != "observed":
        return False
    if turn.forced is not None or turn.restored is not None or turn.checks:
        return False
    if turn.new_prompt_line is None:
        return False  # (what the level shows was taken out of this log, perhaps the search, too)
    if turn.mismatch_seen or lines_missing(case.run, turn):
        return False  # (the texts are compared only where reuse is tried: the search's lines are missing)
    return case.common is not None and case.common[0] > NOTHING_CACHED and bool(turn.batch_starts)


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
        if not turn_searched_for_nothing(case) or case.common is None:
            return None
        q, choice = turn.selected_quote, turn.selection
        if turn.cache_loaded and choice is not None and choice.found_line is not None:
            case.quote(choice.found_line, choice.found_text, "a saved prompt with a common prefix came in")
        elif q is not None:
            case.quote(q.line, q.text, "the slot held a common prefix")
        flag = server_may_forbid(case)
        server_wide = ", or the server was started with --no-cache-prompt" if flag else ""
        return Finding(
            self.name,
            f"The slot held {case.common[0]:,} tokens of this prompt, and the server did not even look for a way to "
            f'reuse them: the request was sent with "cache_prompt": false{server_wide}.',
            "derived",
            [fixes.send_cache_prompt(flag)],
        )


def server_may_forbid(case: Case) -> bool:
    """Does the build have a flag that forbids reuse for all requests?"""
    newest = case.run.build_max or NEWEST
    return flag_exists("--no-cache-prompt", newest, newest) is True


class LoraChanged(CauseRule):
    """Another LoRA than before emptied the slot

    What happened: the request's "lora" list differs from that of the slot's last request. What was evaluated under
    other adapters can't be reused, so the server empties the slot (but for adapters that are only invoked, aLoRA).

    How to see it: "clearing cache for lora change" between the slot's choice and the launch (-lv 4; up to b9245 at
    the default level).

    What to do: a slot for each set of adapters (--parallel), and the same id_slot in each of its requests: the
    server chooses a slot by the text in common, whatever adapters made it.

    Example: two clients with an adapter each and the same system prompt take turns on one slot.
    """

    name = "lora-changed"

    def find(self, case: Case) -> Finding | None:
        turn = case.turn
        cleared = next((x for x in turn.list_lost if x[0] == "lora"), None)
        if cleared is None or turn.n_cached != 0 or case.common is None:
            return None
        q = turn.selected_quote
        if q is not None:
            case.quote(q.line, q.text, "the slot held a common prefix")
        case.quote(cleared[1], cleared[2], "and was emptied: what other adapters evaluated can't be reused")
        low, high = case.common
        held = f"{low:,}" if low == high else f"at most {high:,}"
        return Finding(
            self.name,
            f"The slot held {held} tokens of this prompt, evaluated under another LoRA (or another scale) than this "
            "request asks for, so the server emptied it.",
            "observed",
            [fixes.slot_for_each_lora(case.run)],
            [Fix("checkpoints", "Checkpoint flags: they go with the slot's content.")],
        )


def _whole_but_refused(case: Case) -> bool:
    """Was a prompt processed anew although the memory was whole, as --swa-full keeps it?"""
    run, turn = case.run, case.turn
    if run.memory != "swa" or not run.swa_full or turn.forced is None or turn.memory_state is None:
        return False
    return turn.memory_state[2] == 0 and not any(rules.swa_full_drops_window for rules in rules_of(run))


class ServerRule(CauseRule):
    """The build's own rule makes plain appends search

    What happened: the request only added to the conversation. Some builds look for a checkpoint all the
    same: on hybrid and recurrent models from b9246 to b9496; on sliding-window models (b8672 and later)
    as long as the common prefix is no longer than the window, and after a prompt came back from the RAM prompt
    cache, which keeps only the window. What they restore lies a little before the end; with nothing to restore
    they process everything again. And builds up to b8672 refuse a checkpoint that holds everything from
    token 0 while the common prefix is no longer than the window. Builds up to b6123 make no checkpoints at all.

    How to see it: the common prefix is all that the slot held, and yet there are "checking checkpoint" lines.

    And from b9479 on a prompt that comes back from the RAM prompt cache has only the window, with --swa-full as well: if
    the next request changes it further back, nothing can be resumed, for under --swa-full there are no checkpoints.

    And up to b9113 a prompt that is all that a hybrid or recurrent slot holds is not searched for: one token of it
    must be evaluated, the memory can't be cut back by one, and the server clears it.

    What to do: on hybrid models upgrade to b9509 or later. On sliding-window models it ends by itself once
    the conversation is longer than the window.

    Example: Gemma 3 (window 512), 426 tokens in common: "checking checkpoint with [0, 402] against 0".
    """

    name = "server-rule"

    def find(self, case: Case) -> Finding | None:
        if case.run.fork is None:
            return self._before_checkpoints(case) or self._by_policy(case)
        return self._before_checkpoints(case)  # (how a fork looks for them is its own affair)

    def _before_checkpoints(self, case: Case) -> Finding | None:
        run = case.run
        if not _is_before_checkpoints(run) or run.memory == "plain" or run.swa_full or turn_searched_for_nothing(case):
            return None
        quote_search(case)
        text = (
            "This build makes no context checkpoints at all (they came in August 2025), and this model's memory can't be "
            "rewound without one."
        )
        upgrade = fixes.upgrade(WITH_CHECKPOINTS, "it resumes from checkpoints")
        return Finding(self.name, text, "derived", [upgrade, *present(whole_window(case))], not_helping(case))

    def _by_policy(self, case: Case) -> Finding | None:
        run, turn = case.run, case.turn
        if case.common is None or turn.n_held is None or turn.shifts:
            return None
        if turn.memory_cleared is not None and turn.n_cached == 0 and case.common[0] == turn.n_prompt:
            return self._cleared_for_one_token(case, turn.memory_cleared)
        if _whole_but_refused(case):
            return self._window_still_counts(case)
        if run.swa_full and case.window_came_back and turn.forced is not None:
            return self._only_the_window_came_back(case)
        refused, mended = start_not_matched(case)
        if case.common[0] < turn.n_held:
            return self._start_refused(case, refused, mended) if refused else None
        if not (turn.checks or turn.forced):
            return None
        whole_prompt = turn.n_prompt is not None and case.common[0] >= turn.n_prompt
        if run.memory in ("hybrid", "recurrent") and not whole_prompt:
            return self._append_searched(case)
        if run.memory != "swa" or not run.n_swa or run.swa_full or run.build_min < 8353:
            return None
        if case.common[0] <= run.n_swa:
            return self._within_the_window(case, run.n_swa, refused, mended)
        if turn.cache_loaded and all(rules.stores_window_only for rules in rules_of(run)):
            return self._only_the_window_stored(case)
        return None

    def _cleared_for_one_token(self, case: Case, cleared: Quote) -> Finding:
        words, _ = faults.told(case.run, "full-match-clears", seen=True, about=False)
        upgrade = [fixes.upgrade(9509, "it is mended there (in b9246 to b9496 appends are searched instead)")]
        case.quote(cleared.line, cleared.text, "so the prompt was processed from token 0")
        text = (
            "The slot held all of this prompt, and one token of it must be evaluated for an answer. This model's "
            "memory can't be cut back by a token, and the server cleared it without a look at its checkpoints."
        )
        return Finding(self.name, f"{text} {words}".rstrip(), "observed", upgrade, not_helping(case))

    def _window_still_counts(self, case: Case) -> Finding:
        quote_search(case)
        text = (
            "The server's memory held everything from token 0 (pos_min = 0), so that it could have been cut back to "
            f"{case.parting}. But builds up to b8672 count the sliding window ({case.run.n_swa or 0:,}) also under "
            "--swa-full, and with it no checkpoints are made."
        )
        return Finding(self.name, text, "derived", [fixes.upgrade(8929, "the window no longer counts there")], not_helping(case))

    def _only_the_window_came_back(self, case: Case) -> Finding:
        quote_search(case)
        text = (
            "The conversation had come back from the RAM prompt cache, which keeps only the tokens inside the sliding "
            f"window, under --swa-full, too: the memory can't be cut back to {case.parting} then, and with --swa-full no "
            "checkpoints are made."
        )
        without = Fix(
            "without-swa-full",
            "Or leave --swa-full out: checkpoints are made then, and the RAM prompt cache keeps them with a prompt.",
        )
        return Finding(self.name, text, "derived", [fixes.more_slots(case.run), without], not_helping(case))

    def _start_refused(self, case: Case, refused: str, mended: list[Fix]) -> Finding:
        quote_search(case)
        text = f"A checkpoint that holds everything from token 0 lay before the place where the prompts part. {refused}"
        return Finding(self.name, text, "derived", [*mended, *present(whole_window(case))], not_helping(case))

    def _append_searched(self, case: Case) -> Finding | None:
        # only in these builds is a plain append of such a memory searched at all: the line is the proof
        words, upgrade = faults.told(case.run, "append-searches", seen=True)
        if not words:
            return None
        quote_search(case)
        text = f"The request only added to the conversation, and yet the server looked for a checkpoint. {words}"
        return Finding(self.name, text, "derived", upgrade, not_helping(case))

    def _within_the_window(self, case: Case, window: int, refused: str, mended: list[Fix]) -> Finding:
        assert case.common is not None
        quote_search(case)
        text = (
            f"The request only added to the conversation. As long as the common prefix ({case.common[0]:,}) is no "
            f"longer than the sliding window ({window:,}), the server looks for a checkpoint although its memory "
            f"is whole: its own rule, and it ends once the conversation is longer. {refused}"
        )
        todo = [*mended, *present(whole_window(case))]
        return Finding(self.name, text.rstrip(), "derived", todo, not_helping(case))

    def _only_the_window_stored(self, case: Case) -> Finding:
        quote_search(case)
        text = (
            "The request only added to the conversation, which had come back from the RAM prompt cache. On this "
            "model a saved prompt keeps only the tokens inside the sliding window, so that even an append must be "
            "resumed from a checkpoint."
        )
        return Finding(self.name, text, "derived", present(whole_window(case)), not_helping(case))
