"""A turn's figures: what was printed, what follows exactly from it, what is left open."""

from __future__ import annotations

from math import ceil, floor

from ckptlog.records import Basis
from ckptlog.timeline.common_prefix import given_by_age, settle_common
from ckptlog.timeline.course import (
    ALWAYS_MADE_SINCE,
    checkpoints_filtered,
    created_missing,
    error_missing,
    list_visible,
    prompt_start_seen,
    refused,
)
from ckptlog.timeline.model import FailedBatch, Run, Turn
from ckptlog.timeline.ranges import HALF_DIGIT, Range, is_empty, meet, ratio_range
from ckptlog.timeline.slot import SlotState

#: of a share that is printed with two digits
HALF_PERCENT = 0.005

#: a finished prompt of this many tokens makes a checkpoint in every build, if any are made at all
SURE_TO_CHECKPOINT = 192


def settle_figures(run: Run, state: SlotState | None, turn: Turn) -> None:
    """Fill in every figure that the turn's lines allow; called once, when the turn is over."""
    turn.cut_silently = created_missing(run, turn)
    if turn.cut_silently:
        run.n_cut_silently += 1
        if state is not None and (run.build_min >= ALWAYS_MADE_SINCE or checkpoints_filtered(run)):
            state.list_known = False
    turn.list_visible = list_visible(run, turn)
    _ended(run, turn)
    if refused(turn):
        _refused_figures(turn)
        settle_common(run, turn)
        return
    if turn.is_child:
        _child_figures(turn)
        return
    if turn.empty_prompt:
        _empty_figures(turn)
    if turn.timings_unnamed:
        _without_foreign_timings(turn)
    _without_foreign_choice(turn)
    _cached_and_prompt(run, turn)
    _partial_work(turn)
    _all_kept(turn)
    settle_common(run, turn)
    _left_in_mid_prompt(turn)
    _without_impossible_reuse(turn)
    if turn.list_visible and given_by_age(run, turn):
        run.slots_not_compared = True
    if turn.prompt_ms is not None:
        run.n_timed += 1
    if turn.list_visible and turn.prompt_done and (turn.n_prompt or 0) >= SURE_TO_CHECKPOINT:
        run.n_prompts_shown += 1


def _ended(run: Run, turn: Turn) -> None:
    if turn.ended in ("cut", "restart"):
        if turn.error is not None:
            turn.ended = "error"
        elif turn.cancel is not None:
            turn.ended = "cancel"
        return
    if turn.error is not None:
        turn.ended = "error"
        return
    broken_off = turn.decode_cancelled is not None or (turn.cancel is not None and not error_missing(run, turn))
    if broken_off and turn.n_generated is None:
        turn.ended = "cancel"


def _set(turn: Turn, name: str, value: int | None, basis: Basis) -> None:
    if value is not None and getattr(turn, name) is None:
        setattr(turn, name, value)
        turn.basis[name] = basis


def _refused_figures(turn: Turn) -> None:
    n_prompt = turn.error_fields.get("n_prompt")
    if isinstance(n_prompt, int):
        _set(turn, "n_prompt", n_prompt, "observed")
    for name in ("n_cached", "n_processed", "n_generated"):
        setattr(turn, name, 0)
        turn.basis[name] = "derived"


def _empty_figures(turn: Turn) -> None:
    """Nothing was asked: what the release and (in older builds) the timing show is the turn's before."""
    for name in ("n_prompt", "n_cached", "n_processed", "n_generated"):
        setattr(turn, name, 0)
        turn.basis[name] = "derived"
    turn.prompt_ms = turn.generation_ms = None


def _child_figures(turn: Turn) -> None:
    """A child shares its parent's prompt: nothing is evaluated for it."""
    # its timing repeats what the parent evaluated, which is less than the prompt where something was reused
    if turn.n_released is not None and turn.n_generated is not None:
        _set(turn, "n_prompt", turn.n_released - turn.n_generated + 1, "derived")
    turn.n_processed = 0
    turn.basis["n_processed"] = "derived"
    turn.n_cached = turn.n_prompt
    turn.basis["n_cached"] = "derived"
    turn.prompt_ms = None


def _discarded(turn: Turn) -> int:
    return sum(shift.n_discard for shift in turn.shifts)


def _cached_and_prompt(run: Run, turn: Turn) -> None:
    if turn.n_prompt is None and turn.selection is not None:
        _set(turn, "n_prompt", turn.selection.n_prompt, "observed")
    if turn.batch_starts and (prompt_start_seen(turn) or turn.batch_starts[0] == 0) and not _first_batch_lost(run, turn):
        _set(turn, "n_cached", turn.batch_starts[0], "observed")
    elif turn.forced is not None:
        _set(turn, "n_cached", 0, "derived")
    elif turn.restored is not None:
        _set(turn, "n_cached", _restored_n_past(turn), "derived")
    elif turn.need_one_token is not None and turn.memory_cleared is None and turn.n_prompt is not None:
        _set(turn, "n_cached", turn.n_prompt - 1, "derived")
    held_end = _slot_end(turn)
    if turn.n_prompt is None and held_end is not None:
        _set(turn, "n_prompt", held_end, "derived")
    elif turn.n_prompt is None and turn.has_draft:
        _behind_drafts(turn)
    if turn.n_prompt is not None and turn.n_processed is not None:
        _set(turn, "n_cached", turn.n_prompt - turn.n_processed, "derived")
    elif turn.n_cached is not None and turn.n_processed is not None:
        _set(turn, "n_prompt", turn.n_cached + turn.n_processed, "derived")
    _without_lost_batch(turn)
    if turn.input_truncated is not None and turn.basis.get("n_prompt") == "derived":
        turn.n_prompt = None  # what was processed is what the cut had left
        turn.basis.pop("n_prompt")
    most = turn.n_prompt if turn.n_prompt is not None else turn.n_cached
    if turn.n_cached is not None and most is not None and not 0 <= turn.n_cached <= most:
        # the equation's premise fails (lines of two turns mixed in a damaged log)
        turn.n_cached = None
        turn.basis.pop("n_cached", None)
        if turn.basis.get("n_prompt") == "derived":
            turn.n_prompt = None
            turn.basis.pop("n_prompt", None)


def _without_foreign_timings(turn: Turn) -> None:
    """Timings that name no slot and tell of less work than the batches do are another turn's."""
    if turn.n_prompt is None or turn.n_processed is None or not turn.batch_starts or turn.input_truncated is not None:
        return
    if turn.n_prompt - turn.n_processed > turn.batch_starts[0]:
        for name in ("n_processed", "n_generated"):
            setattr(turn, name, None)
            turn.basis.pop(name, None)
        turn.prompt_ms = turn.generation_ms = None


def _without_foreign_choice(turn: Turn) -> None:
    """Where the launch is missing, the choice of a slot may be another turn's."""
    selection = turn.selection
    if selection is None or selection.n_prompt is None:
        return
    if turn.new_prompt_line is not None:
        if selection.n_prompt != turn.n_prompt:
            turn.selection = None
    elif not turn.start_seen:
        selection.n_prompt, selection.slot_lcp = None, {}


def _first_batch_lost(run: Run, turn: Turn) -> bool:
    """Does the first batch that is in the log begin behind the place from which the prompt was evaluated?

    The search says so; or lines of the turn are missing that others have in this log, and no timing tells.
    """
    if turn.swapped is not None or not turn.batch_starts:
        return False
    first = turn.batch_starts[0]
    if turn.forced is not None:
        return first > 0
    said = turn.restored_at[1] if turn.restored_at is not None else None
    if said is not None:
        return first > said
    if first == 0 or run.fork is not None or (turn.n_prompt is not None and turn.n_processed is not None):
        return False
    untimed = turn.ended == "release" and turn.n_processed is None and run.n_timed > 0 and not run.embeds
    unannounced = turn.new_prompt_line is None and run.n_new_prompts > 0
    return untimed or unannounced or turn.n_held == 0


def _without_lost_batch(turn: Turn) -> None:
    """Where the first batch's line is missing, a later one gives a reuse point that is too high."""
    if turn.n_prompt is None or turn.n_processed is None or not turn.batch_starts or turn.swapped is not None:
        return
    rest = turn.n_prompt - turn.n_processed
    if turn.n_cached == turn.batch_starts[0] and 0 <= rest < turn.n_cached and turn.input_truncated is None:
        turn.n_cached, turn.basis["n_cached"] = rest, "derived"


def _without_impossible_reuse(turn: Turn) -> None:
    """More reused than there was in common: the lines of the first batches are missing."""
    if turn.n_common is None or turn.n_cached is None or turn.n_cached <= turn.n_common or turn.chunk_moves:
        return
    if turn.basis.get("n_common") != "observed" or turn.n_cached not in turn.batch_starts:
        return
    if turn.basis.get("n_processed") == "observed" and turn.n_cached + (turn.n_processed or 0) == turn.n_prompt:
        # the timing says so too
        if turn.n_cached > turn.n_common + 1 and not turn.cache_loaded:
            # a saved prompt was swapped in, and the lines that say so are missing (only "slot" lines were kept)
            turn.n_common = None
            turn.basis.pop("n_common", None)
            turn.n_common_range = (turn.n_cached, turn.n_prompt)
        return  # (b8156 goes on one token behind the common prefix after a restore)
    if not turn.cache_loaded and turn.n_cached > turn.n_common + 1:
        # or the lines are missing that show how a saved prompt was swapped in
        turn.n_common_range = (turn.n_common, max(turn.n_cached, turn.n_prompt or 0))
        turn.n_common = None
        turn.basis.pop("n_common", None)
    for name in ("n_cached", "n_processed", "n_generated"):
        if name == "n_cached" or turn.basis.get(name) == "derived":
            setattr(turn, name, None)
            turn.basis.pop(name, None)


def _restored_n_past(turn: Turn) -> int | None:
    """The reuse point after a restore (formats: policy, section 2, step 5)."""
    checkpoint, at = turn.restored, turn.restored_at
    if checkpoint is None or at is None:
        return None
    if at[1] is not None:
        return at[1]
    # builds that don't print it: n_past = min(n_past, max(pos_min + 1, pos_max))
    if checkpoint.pos_max is None:
        return None
    reach = max((checkpoint.pos_min or 0) + 1, checkpoint.pos_max)
    if turn.memory_state is not None:
        return min(reach, turn.memory_state[0])
    return reach


def _slot_end(turn: Turn) -> int | None:
    """n_prompt from the slot's end: it holds the prompt and all but the last sampled token.

    ``n_tokens = n_prompt + n_generated - 1`` less what shifts threw away; drafted tokens may
    stay behind it, so not with speculation (formats: questions, B.1).
    """
    if turn.n_released is None or turn.n_generated is None or turn.has_draft or turn.ended != "release":
        return None
    if turn.disturbed is not None:
        return None  # a saved prompt may have been loaded into the slot while it was at work
    n_prompt = turn.n_released - turn.n_generated + 1 + _discarded(turn)
    return n_prompt if n_prompt > 0 else None


def _behind_drafts(turn: Turn) -> None:
    """n_prompt, or what n_cached lies between, where drafted tokens may stay in the slot behind the answer's end.

    They can be no more than were accepted; and the two ratios of the slot's choice must fit the prompt's length.
    """
    n_released, n_generated, n_processed = turn.n_released, turn.n_generated, turn.n_processed
    if n_released is None or n_generated is None or n_processed is None or turn.ended != "release" or turn.shifts:
        return
    high = n_released - n_generated + 1
    low = max(n_processed, high - (turn.n_accepted or 0))
    if turn.no == 1 and turn.n_held_slot == 0:
        high = min(high, n_processed)  # nothing was there to be reused
    low, high = _fitting_the_choice(turn, low, high)
    if low == high:
        _set(turn, "n_prompt", low, "derived")
    elif low < high:
        turn.n_cached_range = (low - n_processed, high - n_processed)


def _fitting_the_choice(turn: Turn, low: int, high: int) -> Range:
    """The lengths of a prompt for which some common prefix gives the ratios that were printed at the slot's choice."""
    selection, held = turn.selection, turn.n_held_slot
    if selection is None or not held:
        return low, high
    common: Range | None = None
    for keep in (selection.f_keep, selection.base_f_keep):
        if keep is not None and keep >= 0:
            common = meet(common, ratio_range(keep, held))
    for sim in (selection.sim, selection.base_sim):
        if sim is not None and sim > HALF_DIGIT and common is not None and not is_empty(common):
            low = max(low, ceil(common[0] / (sim + HALF_DIGIT) - 1e-6))
            high = min(high, floor(common[1] / (sim - HALF_DIGIT) + 1e-6))
    return low, high


def _partial_work(turn: Turn) -> None:
    """Figures of turns that print no timing: cancelled, failed, or of another kind."""
    if turn.ended == "error" and turn.released and turn.n_released == 0 and not turn.batch_starts:
        # failed before anything was in the slot
        _set(turn, "n_cached", 0, "derived")
        _set(turn, "n_processed", 0, "derived")
    if turn.failed_batch is not None and turn.ended == "error":
        _before_failed_batch(turn, turn.failed_batch)
        return
    if turn.n_processed is None and turn.n_cached is not None:
        finished = turn.prompt_done or (
            turn.n_prompt is not None and turn.n_released is not None and turn.n_released >= turn.n_prompt
        )
        if turn.n_prompt is not None and finished:
            _set(turn, "n_processed", turn.n_prompt - turn.n_cached, "derived")
        elif turn.n_prompt is None:
            pass  # (how much of what it ended with is the answer is open)
        elif turn.n_released is not None and turn.n_released >= turn.n_cached and turn.released:
            if turn.ended != "release":  # else what ended it is not in the log: perhaps a batch that failed
                _set(turn, "n_processed", turn.n_released - turn.n_cached, "derived")
            _set(turn, "n_generated", 0, "derived")
        elif turn.progress_end is not None and turn.progress_end >= turn.n_cached and not turn.released:
            pass
    if (
        turn.n_generated is None
        and turn.ended in ("cancel", "error")
        and turn.n_released is not None
        and turn.n_prompt is not None
        and not turn.has_draft
        and turn.released
    ):
        extra = turn.n_released + _discarded(turn) - turn.n_prompt
        if extra >= 0 and turn.prompt_done:
            _set(turn, "n_generated", extra if _threw(turn) else extra + 1, "derived")
        elif extra < 0:
            _set(turn, "n_generated", 0, "derived")


def _threw(turn: Turn) -> bool:
    """Was the last token sampled never an answer's, because sampling it threw (a grammar without a way on)?"""
    return str(turn.error_fields.get("text", "")).startswith("got exception")


def _before_failed_batch(turn: Turn, failed: FailedBatch) -> None:
    """A batch that can't be evaluated is in the slot already: what it holds ends with that batch's tokens.

    It may have been tried in smaller parts, of which the first went well.
    """
    if turn.n_released is None or turn.n_prompt is None or turn.has_draft:
        return
    if not (turn.batch_starts or turn.prompt_done or turn.sampled or turn.progress):
        if turn.n_released == turn.n_held_slot:  # the old content: the prompt was not begun
            _set(turn, "n_processed", 0, "derived")
            _set(turn, "n_generated", 0, "derived")
        return
    extra = turn.n_released + _discarded(turn) - turn.n_prompt
    if extra > 0:
        _set(turn, "n_generated", extra, "derived")
        if turn.n_cached is not None:
            _set(turn, "n_processed", turn.n_prompt - turn.n_cached, "derived")
        return
    _set(turn, "n_generated", 0, "derived")
    if failed.off == 0 and turn.batch_starts and turn.n_cached is not None:
        _set(turn, "n_processed", turn.batch_starts[-1] - turn.n_cached, "derived")


def _left_early(turn: Turn) -> bool:
    """Was the turn cancelled, or did it fail, without a line that shows its prompt's end, or another's tokens?"""
    disturbed = turn.disturbed is not None or turn.cache_loaded or bool(turn.chunk_moves)
    return turn.ended in ("cancel", "error") and not (turn.prompt_done or turn.sampled or disturbed)


def _all_kept(turn: Turn) -> None:
    """n_cached of a turn that left early, where the last progress and the release show that all held was kept."""
    if turn.n_cached is not None or turn.n_released is None or not turn.progress or not _left_early(turn):
        return
    keep = turn.selection.f_keep if turn.selection is not None else None
    held = turn.n_held_slot
    if held and keep is not None and keep > 1 - HALF_DIGIT and turn.n_released - turn.progress[-1][0] == held:
        _set(turn, "n_cached", held, "derived")


def _left_in_mid_prompt(turn: Turn) -> None:
    """The work of a turn that left early, of a prompt whose length is not in the log."""
    if not _left_early(turn):
        return
    if turn.n_common == 0:
        _set(turn, "n_cached", 0, "derived")
    n_cached, n_released = turn.n_cached, turn.n_released
    if turn.n_prompt is not None or n_cached is None or n_released is None or turn.failed_batch is not None:
        return
    if not turn.progress or turn.n_processed is not None:
        return
    done, share = turn.progress[-1]
    if n_cached + done <= n_released < (n_cached + done) / (share + HALF_PERCENT):
        # the prompt was longer than what the slot held at the end
        _set(turn, "n_processed", n_released - n_cached, "derived")
        _set(turn, "n_generated", 0, "derived")
