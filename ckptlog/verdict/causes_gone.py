"""Causes that name what was there and is gone: a slot file's, a shift's, an erased checkpoint."""

from __future__ import annotations

from ckptlog.records import Fix
from ckptlog.timeline.model import Checkpoint
from ckptlog.verdict import faults, fixes
from ckptlog.verdict.case import Case, rules_of
from ckptlog.verdict.fixes import no_shift
from ckptlog.verdict.room import larger_context, no_more
from ckptlog.verdict.rule import CauseRule, Finding
from ckptlog.verdict.showing import new_session, not_helping, present, quote_search, whole_window


class SlotRestoredBare(CauseRule):
    """The slot file carried no checkpoints

    What happened: the slot's content came from a slot file (/slots/N?action=restore). Files written by builds
    up to b11434 hold tokens and memory, but no checkpoints: only a plain append can be resumed afterwards, and
    on sliding-window models (b9479 and later, whose files keep just the window) not even that.

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
        if any(c.line is None for c in (*turn.invalidated, *(turn.before or ()))):
            return None  # there were checkpoints, made by turns that are not in the log
        quote_search(case)
        text = "What the slot held came from a slot file, which carried no checkpoints. After such a restore "
        if case.run.memory == "swa" and all(rules.stores_window_only for rules in rules_of(case.run)):
            text += "a sliding-window model can't even resume a plain append: the file keeps only what lies in the window."
        else:
            text += "only a plain append can be resumed."
        words, _ = faults.told(case.run, "slot-file-bare", seen=True, about=False)
        return Finding(
            self.name,
            f"{text} {words}".rstrip(),
            "inferred",
            [fixes.upgrade(11549, "slot files carry the checkpoints there; save the slot again with it")],
            not_helping(case),
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


class RestoreFailed(CauseRule):
    """A checkpoint was found, but could not be loaded

    What happened: the search found a checkpoint that fits, and the server failed to put its state back. It then
    goes on as if there were none. Builds b9113 to b11434 end the process instead.

    How to see it: "failed to restore context checkpoint", or from b11549 on "failed to load context checkpoint
    restored from a slot file", then "forcing full prompt re-processing".

    What to do: after a slot file, save that slot again with the server and the flags of now. Otherwise look at the
    errors just before; no flag of the checkpoints is to blame. Report it with the lines around if it goes on.

    Example: a slot file of another build is loaded; the edited prompt finds its checkpoint at 228, and starts from 0.
    """

    name = "restore-failed"

    def find(self, case: Case) -> Finding | None:
        turn, failed = case.turn, case.turn.restore_failed
        if failed is None or turn.restored is not None:
            return None
        for check in turn.checks[-1:]:
            case.quote(check.line, check.text, "this checkpoint fits")
        case.quote(failed.line, failed.text, "but its state could not be put back")
        if turn.forced is not None:
            case.quote(turn.forced.line, turn.forced.text, "so the prompt was processed from token 0")
        if any(c.origin == "slot-file" for c in (*(turn.before or ()), *turn.invalidated)):
            todo = Fix("save-slot-again", "Save that slot again with the server and the flags of now.")
        else:
            todo = Fix("check-restore", "Look at the errors just before this line, and report it if it goes on.")
        text = "A checkpoint that fits was found, but its state could not be loaded, so the server went on without it."
        return Finding(self.name, text, "observed", [todo], not_helping(case))


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
        quote_search(case)
        size = (case.run.n_ctx_slot or case.turn.n_prompt or 4096) * 2
        return Finding(
            self.name,
            f"A context shift in an earlier turn (line {shift[1]}) deleted a slice of this conversation; the slot's "
            "checkpoints went with it.",
            "derived",
            present(larger_context(case.run, size, size // 2 + 1), no_shift(case.run)),
            present(no_more(case.run, size // 2 + 1), fixes.not_cache_reuse(case.run)),
        )


class DeadCheckpoint(CauseRule):
    """Base of the causes that name a checkpoint which would have served."""

    fate = ""

    def dead(self, case: Case) -> Checkpoint | None:
        if case.only_appends_unseen:
            return None
        best = case.best_dead
        return best if best is not None and best.fate == self.fate else None

    def quote_death(self, case: Case, dead: Checkpoint, says: str) -> None:
        case.quote(dead.fate_line, dead.fate_text, says)
        quote_search(case)

    @staticmethod
    def death(dead: Checkpoint) -> str:
        # turns are numbered anew by each report: the line is what stays
        return "by an earlier turn" + (f" (line {dead.fate_line})" if dead.fate_line is not None else "")


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
        says = f"the checkpoint at {dead.n_tokens:,}, which this turn could have resumed from"
        wrong = faults.fault_of(case.run, "erase-shows-newest")
        if wrong is not None and wrong[1]:
            says += " (builds up to b6628 print the numbers of the newest one here)"
        self.quote_death(case, dead, says)
        cap = f" (the list holds {case.run.checkpoints_max})" if case.run.checkpoints_max else ""
        return Finding(
            self.name,
            f"A checkpoint (a saved state to resume from) at token {dead.n_tokens:,} would have served. It had been pushed out {self.death(dead)} "
            f"to make room for newer ones{cap}.{new_session(case)}",
            case.common_basis,
            [fixes.raise_count(case.run, None), *present(whole_window(case))],
            not_helping(case),
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
            f"A checkpoint (a saved state to resume from) at token {dead.n_tokens:,} would have served. It had been thinned out {self.death(dead)}, "
            f"being closer than --checkpoint-min-step ({run.checkpoints_min_step or 8192:,}) to an earlier one."
            + new_session(case),
            case.common_basis,
            [*helps, *present(fixes.smaller_step(run, 256), whole_window(case))],
            not_helping(case),
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
        words: str = ""
        upgrade: list[Fix] = []
        if dead.fate_task is not None and dead.fate_task in dead.restored_by:
            # restored and swept away by the same turn: it lay beyond that turn's common prefix
            words, upgrade = faults.told(case.run, "restores-beyond-prefix", seen=True)
        return Finding(
            self.name,
            f"A checkpoint (a saved state to resume from) at token {dead.n_tokens:,} would have served. It had been erased {self.death(dead)}, when an "
            f"earlier prompt parted from the slot's content before it.{new_session(case)} {words}".rstrip(),
            case.common_basis,
            [*upgrade, fixes.more_slots(case.run), *present(fixes.larger_ram_cache(case.run))],
            not_helping(case),
        )
