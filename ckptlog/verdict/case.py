"""What a rule looks at: one turn, its run, and the few numbers that every rule needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptlog.lazily import lazy
from ckptlog.records import Basis, Evidence, Mark
from ckptlog.replay.loss import NOTHING_CACHED, is_costly_loss
from ckptlog.server.rules import Rules, rules_for
from ckptlog.timeline.elsewhere import Place, best_elsewhere
from ckptlog.timeline.model import Checkpoint, Run, Turn


def rules_of(run: Run) -> tuple[Rules, ...]:
    """The sets of rules that the builds of the run's bracket may follow, oldest first."""
    return rules_for(run.build_min or None, run.build_max)


@dataclass
class Case:
    """One turn before the judge."""

    run: Run
    turn: Turn
    evidence: list[Evidence] = field(default_factory=list)

    def quote(self, line: int | None, text: str | None, says: str, mark: Mark | None = None) -> None:
        """Add a log line as evidence, once."""
        if line is None or not text:
            return
        if any(e.line == line for e in self.evidence):
            return
        self.evidence.append(Evidence(self.turn.source, line, text, says, mark))

    @lazy
    def common(self) -> tuple[int, int] | None:
        """The common prefix as a range (both ends equal when it is known); null if nothing bounds it."""
        turn = self.turn
        if turn.n_common is not None:
            return turn.n_common, turn.n_common
        return turn.n_common_range

    @lazy
    def perhaps_nothing_common(self) -> bool:
        """Is only an upper bound known, so that there may have been nothing of weight in common?"""
        return self.common is not None and self.common[0] <= NOTHING_CACHED < self.common[1]

    @lazy
    def parting(self) -> str:
        """Where the prompts part, in words, as far as that is known."""
        if self.common is None:
            return "a token that is not known"
        low, high = self.common
        if high - low > 1:
            return f"a token from {low:,} to {high:,}"
        return f"token {low:,}" if low == high else f"token {low:,} or {high:,}"

    @lazy
    def perhaps(self) -> str:
        """What may have changed at a prompt's beginning, in brackets; empty where the log shows the texts."""
        shown = self.turn.mismatch_old is not None and self.turn.mismatch_new is not None
        return "" if shown else " (a clock, an id)"

    @lazy
    def lost(self) -> tuple[int, int] | None:
        """``n_common - n_cached`` as a range, never negative."""
        n_cached = self.turn.n_cached
        least, most = (n_cached, n_cached) if n_cached is not None else self.turn.n_cached_range or (None, None)
        if self.common is None or least is None or most is None:
            return None
        return max(0, self.common[0] - most), max(0, self.common[1] - least)

    @lazy
    def costly(self) -> bool | None:
        """Was what the slot held lost at a cost? Null where the range does not decide."""
        if self.lost is None:
            return None
        low, high = (is_costly_loss(lost, self.turn.n_prompt) for lost in self.lost)
        return low if low == high else None

    @lazy
    def known_costly(self) -> bool:
        """Did the server hold more of this prompt elsewhere than the slot did, in a way that it could have been resumed
        from, at a cost?"""
        turn = self.turn
        if turn.n_known is None or turn.n_cached is None:
            return False
        here = max(self.common[1] if self.common is not None else 0, turn.n_cached)
        if not is_costly_loss(turn.n_known - here, turn.n_prompt):
            return False
        place = self.elsewhere
        return place is None or is_costly_loss(min(turn.n_known, place.resume_once) - here, turn.n_prompt)

    @lazy
    def elsewhere(self) -> Place | None:
        """Of the other slots and saved prompts that the server compared with this prompt, the one to resume most from."""
        selection = self.turn.selection
        return best_elsewhere(self.run, selection, self.turn.slot) if selection is not None else None

    @lazy
    def only_appends_unseen(self) -> bool:
        """Does the prompt only add to what the slot held, at a level that hides the search? No checkpoint of such a slot
        lies beyond its end, so that none that went can have been missed."""
        turn = self.turn
        if turn.list_visible or self.common is None or turn.n_held is None or self.common[0] < turn.n_held:
            return False
        if turn.content_from != "slot" or turn.list_lost or turn.has_draft or (turn.n_prompt or 0) <= self.common[0]:
            return False
        return turn.selection is not None and turn.selection.how == "lcp"

    @lazy
    def window_came_back(self) -> bool:
        """Do the prompts part where the slot's content had come back from the RAM prompt cache? Of memory with a sliding
        window that keeps the window alone, under --swa-full, too (policy, section 2; seen on b11549)."""
        turn = self.turn
        if self.run.memory != "swa" or self.common is None:
            return False
        until = (turn.n_held or 0) if turn.cache_loaded else turn.came_back_until
        return self.common[0] < until and any(rules.stores_window_only for rules in rules_of(self.run))

    @lazy
    def common_basis(self) -> Basis:
        turn = self.turn
        if turn.n_common is None:
            return "inferred"
        order: list[Basis] = ["observed", "derived", "inferred"]
        bases = [turn.basis.get("n_common", "derived"), turn.basis.get("n_cached", "derived")]
        return max(bases, key=order.index)

    def would_serve(self, checkpoint: Checkpoint) -> bool:
        """Could the server have resumed this turn from that checkpoint, had it lived?

        As the search does: it must lie within the common prefix, and reach back far enough
        (formats: policy, section 2, step 5; pos_min = 0 always does from b8929 on). Where the builds of
        the bracket differ, all of them must accept it.
        """
        if self.common is None:
            return False
        n_common = self.common[0]
        if checkpoint.n_tokens > n_common:
            return False
        if checkpoint.pos_min is None or self.run.memory in ("hybrid", "recurrent"):
            return True
        threshold = max(0, n_common - (self.run.n_swa or 0))
        return all(_accepts(rules.match, checkpoint.pos_min, threshold) for rules in rules_of(self.run))

    def gain(self, checkpoint: Checkpoint) -> int:
        """Tokens that resuming there would have saved."""
        return checkpoint.n_tokens - (self.turn.n_cached or 0)

    @lazy
    def best_dead(self) -> Checkpoint | None:
        """The dead checkpoint that would have served this turn best, if that is worth naming."""
        serving = [c for c in self.turn.dead if self.would_serve(c)]
        if not serving:
            return None
        best = max(serving, key=lambda c: (c.n_tokens, c.fate_line or 0))
        lost = self.lost[0] if self.lost is not None else 0
        return best if self.gain(best) >= max(1, lost // 4) and self.gain(best) > NOTHING_CACHED else None

    @lazy
    def ms_per_token(self) -> float | None:
        turn = self.turn
        if turn.prompt_ms is None or not turn.n_processed:
            return None
        return turn.prompt_ms / turn.n_processed


def _accepts(match: str, pos_min: int, threshold: int) -> bool:
    """The server's test of how far a checkpoint reaches back (builds.toml: match)."""
    if match == "at-most":
        return pos_min <= threshold
    return pos_min < threshold or (match == "below-or-start" and pos_min == 0)
