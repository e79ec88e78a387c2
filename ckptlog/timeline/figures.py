"""A turn's figures: what was printed, what follows exactly from it, what is left open.

``n_common`` is the hard one: the log seldom prints it, but several lines bound it (a threshold,
two rounded ratios, a reuse without a search). An integer is given only when one candidate is left.
"""

from __future__ import annotations

from math import ceil, floor

from ckptlog.records import Basis
from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.refusals import REFUSALS
from ckptlog.timeline.slot import SlotState

#: half of the last printed digit of a ``%.3f``, and a float's worth of slack
HALF_DIGIT = 0.0005 + 2e-7

#: up to this build the default level shows every checkpoint message
LAST_ALL_VISIBLE = 9829
#: the threshold subtracts one more (n_swa aside) in these builds
PLUS_ONE = range(9246, 9509)

#: a finished prompt of this many tokens makes a checkpoint in every build, if any are made at all
SURE_TO_CHECKPOINT = 192

Range = tuple[int, int]


def settle_figures(run: Run, state: SlotState | None, turn: Turn) -> None:
    """Fill in every figure that the turn's lines allow; called once, when the turn is over."""
    turn.list_visible = list_visible(run, turn)
    _ended(run, turn)
    if refused(turn):
        _refused_figures(turn)
        _common(run, turn)
        return
    if turn.is_child:
        _child_figures(turn)
        return
    if turn.empty_prompt:
        _empty_figures(turn)
    _cached_and_prompt(turn)
    _partial_work(turn)
    _common(run, turn)
    _without_impossible_reuse(turn)
    if turn.list_visible and _given_by_age(run, turn):
        run.slots_not_compared = True
    if turn.prompt_ms is not None:
        run.n_timed += 1
    if turn.list_visible and turn.prompt_done and (turn.n_prompt or 0) >= SURE_TO_CHECKPOINT:
        run.n_prompts_shown += 1


def evaluated(turn: Turn) -> bool:
    """Does a line show that anything of the prompt was evaluated?"""
    return bool(turn.batch_starts or turn.created) or turn.prompt_done or turn.sampled or turn.prompt_ms is not None


def refused(turn: Turn) -> bool:
    """Was the request refused at admission (nothing evaluated for it)?"""
    return turn.error_reason in REFUSALS and not turn.batch_starts


def list_visible(run: Run, turn: Turn) -> bool:
    """Would the log show checkpoint messages of this turn, had there been any?

    Up to b9828 the default level shows them; from b9830 they are trace, as "new prompt" and
    "cached n_tokens" are (formats: matrix, "Visible at which -lv").
    """
    if turn.batch_starts or turn.created or turn.checks or turn.forced or turn.restored:
        return True
    if turn.new_prompt_line is not None:
        return True
    if run.build_max is not None and run.build_max <= LAST_ALL_VISIBLE:
        return run.verbosity is None or run.verbosity >= 3
    return False


def _ended(run: Run, turn: Turn) -> None:
    if turn.ended in ("cut", "restart"):
        if turn.error is not None:
            turn.ended = "error"
        elif turn.cancel is not None:
            turn.ended = "cancel"
        return
    if turn.error is not None:
        turn.ended = "error"
    elif turn.cancel is not None and turn.n_generated is None and not error_missing(run, turn):
        turn.ended = "cancel"


def error_missing(run: Run, turn: Turn) -> bool:
    """Was a turn with a cancel (perhaps) ended by an error that is not in the log?

    A client's leaving is told before the slot is released; the cancel behind a release is the server's own, and
    follows an error (which may be a refusal). So does one behind a failed batch, of a prompt of which no batch was
    begun (a cancel is looked at between batches), or where the context was full.
    """
    cancel, release = turn.cancel, turn.release_quote
    if turn.error is not None or cancel is None:
        return False
    if release is None:
        return turn.end_missed and not turn.batch_starts and not turn.prompt_done
    unprocessed = turn.new_prompt_line is not None and not turn.batch_starts
    limit = turn.n_ctx_slot or run.n_ctx_slot
    full = limit is not None and turn.n_released is not None and turn.n_released + 1 >= limit
    return cancel.line > release.line or "decode" in turn.error_fields or unprocessed or full


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


def prompt_start_seen(turn: Turn) -> bool:
    """Is the beginning of the turn in the log (which may begin, or lack lines, in its middle)?"""
    return turn.new_prompt_line is not None or turn.start_seen


def _discarded(turn: Turn) -> int:
    return sum(shift.n_discard for shift in turn.shifts)


def _cached_and_prompt(turn: Turn) -> None:
    if turn.n_prompt is None and turn.selection is not None:
        _set(turn, "n_prompt", turn.selection.n_prompt, "observed")
    if turn.batch_starts and (prompt_start_seen(turn) or turn.batch_starts[0] == 0):
        _set(turn, "n_cached", turn.batch_starts[0], "observed")
    elif turn.forced is not None:
        _set(turn, "n_cached", 0, "derived")
    elif turn.restored is not None:
        _set(turn, "n_cached", _restored_n_past(turn), "derived")
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
    most = turn.n_prompt if turn.n_prompt is not None else turn.n_cached
    if turn.n_cached is not None and most is not None and not 0 <= turn.n_cached <= most:
        # the equation's premise fails (lines of two turns mixed in a damaged log)
        turn.n_cached = None
        turn.basis.pop("n_cached", None)
        if turn.basis.get("n_prompt") == "derived":
            turn.n_prompt = None
            turn.basis.pop("n_prompt", None)


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
        if sim is not None and sim > HALF_DIGIT and common is not None and not _empty(common):
            low = max(low, ceil(common[0] / (sim + HALF_DIGIT) - 1e-6))
            high = min(high, floor(common[1] / (sim - HALF_DIGIT) + 1e-6))
    return low, high


def _partial_work(turn: Turn) -> None:
    """Figures of turns that print no timing: cancelled, failed, or of another kind."""
    if turn.ended == "error" and turn.released and turn.n_released == 0 and not turn.batch_starts:
        # failed before anything was in the slot
        _set(turn, "n_cached", 0, "derived")
        _set(turn, "n_processed", 0, "derived")
    if turn.n_processed is None and turn.n_cached is not None:
        finished = turn.prompt_done or (
            turn.n_prompt is not None and turn.n_released is not None and turn.n_released >= turn.n_prompt
        )
        if turn.n_prompt is not None and finished:
            _set(turn, "n_processed", turn.n_prompt - turn.n_cached, "derived")
        elif turn.n_prompt is None:
            pass  # (how much of what it ended with is the answer is open)
        elif turn.n_released is not None and turn.n_released >= turn.n_cached and turn.released:
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
            _set(turn, "n_generated", extra + 1, "derived")
        elif extra < 0:
            _set(turn, "n_generated", 0, "derived")


# ------------------------------------------------------------------ the common prefix


def ratio_range(ratio: float, whole: int) -> Range:
    """The integers k for which k / whole prints as ``ratio`` with three decimals."""
    low = ceil((ratio - HALF_DIGIT) * whole - 1e-6)
    high = floor((ratio + HALF_DIGIT) * whole + 1e-6)
    return max(0, low), min(whole, high)


def meet(a: Range | None, b: Range | None) -> Range | None:
    """The intersection; null only if both are null. An empty one comes back with low > high."""
    if a is None:
        return b
    if b is None:
        return a
    return max(a[0], b[0]), min(a[1], b[1])


def _empty(r: Range | None) -> bool:
    return r is not None and r[0] > r[1]


def _common(run: Run, turn: Turn) -> None:
    slot_exact, slot_range = _common_slot(turn)
    exact, basis = _common_at_search(run, turn)
    if exact is not None and _unseen_file(run, turn, exact):
        _came_from_file(turn)
    searched, turn.n_common_range = turn.n_common_range, None
    swapped = turn.cache_loaded or _load_failed(turn)
    if searched is not None and not swapped:
        met = meet(slot_range, searched)
        slot_range = searched if _empty(met) else met
    if not swapped:
        if slot_exact is not None:
            exact = slot_exact
            basis = "observed"
        elif exact is None and slot_range is not None:
            exact, slot_range, basis = _narrow(run, turn, slot_range)
            if exact is not None:
                slot_exact = exact
        elif exact is not None and slot_range is not None and _against(turn, exact, slot_range):
            # nothing was reused, and nothing looked for: the request forbade it (or asked for another LoRA)
            exact, slot_range, basis = _narrow(run, turn, slot_range)
            slot_exact = exact
        elif exact is not None:
            if slot_range is not None and not slot_range[0] <= exact <= slot_range[1] and basis == "inferred":
                exact = None
            elif not _choice_lost(run, turn):
                slot_exact = exact
            elif turn.selection is not None or run.prompt_cache_mib != 0:
                # what was swapped in is not what the slot was known to hold
                turn.n_held, turn.previous, turn.user_starts = None, None, []
        common_range = slot_range
    else:
        common_range = _loaded_range(turn)
        if searched is not None:
            met = meet(common_range, searched)
            common_range = searched if _empty(met) else met
        if exact is None and common_range is not None:
            exact, common_range, basis = _narrow(run, turn, common_range)
    if slot_exact is not None:
        turn.n_common_slot = slot_exact
        turn.basis["n_common_slot"] = basis if slot_exact == exact else "observed"
    elif slot_range is not None:
        turn.n_common_slot_range = slot_range
    if exact is not None and _more_than_the_slot(turn, exact):
        # a saved prompt was swapped in, or (plain memory only) pieces were moved: the level hides which
        n_cached = turn.n_cached or 0
        least = n_cached if run.memory in ("swa", "hybrid", "recurrent") else exact
        exact, common_range = None, (least, max(n_cached, turn.n_prompt or 0))
    if exact is not None:
        turn.n_common = exact
        turn.basis["n_common"] = basis
    elif common_range is not None and not _empty(common_range):
        turn.n_common_range = common_range
    _known(turn)


def _unseen_file(run: Run, turn: Turn, n_common: int) -> bool:
    """Had the prompt more in common with the slot than what its last turn left there, and no saved prompt came in?

    Up to b11434 no line tells that a slot file is loaded (formats: policy, section 5).
    """
    if turn.cache_loaded or _load_failed(turn) or not turn.list_visible or turn.n_held_slot is None:
        return False
    # a slot asked for by number goes without a line, and without a look into the RAM cache, in older builds
    older = run.build_max is not None and run.build_max < CHOICES_TOLD_SINCE
    by_number = turn.selection is None and turn.start_seen and older
    return (run.prompt_cache_mib == 0 or by_number) and n_common > turn.n_held_slot


def _against(turn: Turn, exact: int, slot_range: Range) -> bool:
    """Was nothing reused without a search, though the slot's choice shows that something was in common?"""
    return exact == turn.n_cached == 0 < slot_range[0] <= slot_range[1]


#: from here on every choice of a slot is told ("selected slot by id" too)
CHOICES_TOLD_SINCE = 9725


def _choice_lost(run: Run, turn: Turn) -> bool:
    """Are the lines before the launch missing, which would show a prompt swapped in from the RAM cache?"""
    selection, n_prompt = turn.selection, turn.n_prompt or 0
    if selection is not None:
        # a slot taken by age has little in common, unless a swap is not shown
        alike = turn.n_cached is not None and turn.n_cached > ALIKE * n_prompt > 0
        return selection.how == "lru" and alike and run.prompt_cache_mib != 0 and not run.slots_not_compared
    return not turn.start_seen or run.build_min >= CHOICES_TOLD_SINCE or (turn.no == 1 and not run.start_seen)


def _more_than_the_slot(turn: Turn, n_common: int) -> bool:
    """Was more reused than the slot had in common, without a piece moved or a swap shown?"""
    if turn.list_visible or turn.cache_loaded or turn.chunk_moves or turn.n_cached is None:
        return False
    return turn.basis.get("n_cached") == "derived" and turn.n_cached > n_common + 1


def _load_failed(turn: Turn) -> bool:
    return turn.selection is not None and turn.selection.load_failed_line is not None


def _common_slot(turn: Turn) -> tuple[int | None, Range | None]:
    """Common prefix with what the slot held when it was chosen: exact, or a range."""
    selection, held, n_prompt = turn.selection, turn.n_held_slot, turn.n_prompt
    if held == 0 and _searched(turn):
        # a search is made only where something is in common: the slot was filled without a line
        _came_from_file(turn)
        held = None
    if selection is None:
        if held == 0 and not turn.n_cached:
            return 0, None
        return None, None
    if turn.slot is not None and turn.slot in selection.slot_lcp:
        exact = selection.slot_lcp[turn.slot]
        if _contradicts(exact, held, selection.f_keep):
            _came_from_file(turn)
        return exact, None
    if selection.lcs_len is not None:
        return selection.lcs_len, None
    if selection.base_f_keep is not None and selection.base_f_keep < 0:
        return 0, None
    sims = [s for s in (selection.sim, selection.base_sim) if s is not None]
    keeps = [k for k in (selection.f_keep, selection.base_f_keep) if k is not None]
    by_prompt: Range | None = None
    by_held: Range | None = None
    if n_prompt is not None:
        for s in sims:
            by_prompt = meet(by_prompt, ratio_range(s, n_prompt))
    if held:
        for k in keeps:
            by_held = meet(by_held, ratio_range(k, held))
    both = meet(by_prompt, by_held)
    if _empty(both):
        both = by_prompt
        _came_from_file(turn)
    if held == 0 and not any(sims):
        return 0, None
    if held == 0 and any(sims):
        _came_from_file(turn)
        both = by_prompt
    if both is not None and not _empty(both):
        if both[0] == both[1]:
            return both[0], both
        return None, both
    return None, None


def _searched(turn: Turn) -> bool:
    """Were checkpoints looked for (formats: policy, section 2: only with n_past > 0)?"""
    if turn.cache_loaded or (turn.memory_state is not None and turn.memory_state[0] == 0):
        return False
    return bool(turn.checks) or turn.forced is not None or turn.restored is not None


def _contradicts(common: int, held: int | None, f_keep: float | None) -> bool:
    """Can a slot of ``held`` tokens not have had this common prefix, or not this f_keep = common / held?"""
    if held is None:
        return False
    if common > held:
        return True
    return bool(f_keep) and held > 0 and abs(common / held - (f_keep or 0)) > 2 * HALF_DIGIT


def _came_from_file(turn: Turn) -> None:
    """The slot's content is not what its last turn left: a slot file was loaded, without a line."""
    if turn.content_from == "slot":
        turn.content_from = "slot-file"
    if turn.n_held == turn.n_held_slot and not turn.cache_loaded:
        turn.n_held = turn.previous = None
    turn.n_held_slot = None


def _effective_window(run: Run, turn: Turn) -> int | None:
    """The window that the threshold subtracts (formats: policy, section 2, step 2)."""
    if turn.memory_state is not None and turn.memory_state[3] is not None:
        return turn.memory_state[3]
    n_swa = run.n_swa
    if n_swa is None:
        if run.memory in ("hybrid", "recurrent"):
            n_swa = 0
        else:
            return None
    if run.build_max is not None and run.build_max < 8672:
        return max(1, n_swa)
    if run.swa_full and run.build_min > 8672:
        return 0
    return n_swa


def _common_at_search(run: Run, turn: Turn) -> tuple[int | None, Basis]:
    """n_common from what the search printed (after a cache load), or from a reuse without one."""
    if turn.memory_state is not None:
        return turn.memory_state[0], "observed"
    n_prompt, n_cached = turn.n_prompt, turn.n_cached
    if turn.checks:
        threshold = turn.checks[0].thold
        window = _effective_window(run, turn)
        if threshold > 0 and window is not None:
            common = threshold + window
            low, high = run.build_min, run.build_max
            if low >= PLUS_ONE.start and high is not None and high < PLUS_ONE.stop:
                return common + 1, "derived"
            if high is not None and high < PLUS_ONE.start:
                return common, "derived"
            if low < PLUS_ONE.stop:
                # the bracket holds builds of both kinds
                turn.n_common_range = (common, common + 1)
                return None, "derived"
            # one more is subtracted only when the whole prompt is in common
            if n_prompt is not None and common == n_prompt - 1:
                exact = _whole_or_one_less(turn, n_prompt)
                if exact is None:
                    turn.n_common_range = (common, n_prompt)
                return exact, "derived"
            return common, "derived"
        if threshold == 0 and window is not None:
            # no more in common than the window, and the one token that is subtracted in some cases
            turn.n_common_range = (1, window + 1)
        return None, "derived"
    if turn.restored is not None or turn.forced is not None or turn.chunk_moves:
        return None, "derived"
    if _emptied(turn):
        return None, "derived"
    if turn.new_prompt_line is not None and n_cached is not None and turn.basis.get("n_cached") == "observed":
        # every line between "new prompt" and the first batch would be there: there was no search
        if turn.need_one_token is not None and n_prompt is not None:
            return n_prompt, "derived"
        if n_cached == 0 and _not_compared(run, turn):
            # no search is made either where the request forbids reuse, and nothing else tells the two apart
            turn.n_common_range = (0, min(n_prompt or 0, turn.n_held or 0))
            return None, "derived"
        return n_cached, "derived"
    if turn.need_one_token is not None and n_prompt is not None:
        return n_prompt, "derived"
    return None, "derived"


def _emptied(turn: Turn) -> bool:
    """Did the server empty the slot after the choice, for another LoRA? What is in common then says the choice."""
    return any(why == "lora" for why, _, _ in turn.list_lost)


#: a free slot that holds more than this share of the prompt is never given by age, whatever the build's default
ALIKE = 0.5


def _given_by_age(run: Run, turn: Turn) -> bool:
    """Did the slot come by its age, though it held much of the prompt?"""
    selection = turn.selection
    if selection is None or selection.how != "lru" or turn.cache_loaded or not turn.n_held_slot:
        return False
    if run.prompt_cache_mib != 0 and (run.build_min < COMPARES_SINCE or selection.slot_lcp):
        return False  # or a saved prompt was swapped in, by lines that are missing
    return (turn.n_cached or 0) > ALIKE * (turn.n_prompt or 0) > 0


#: from here on every free slot that holds something is compared with the prompt, a line each at the level of
#: "new prompt"
COMPARES_SINCE = 10178


def _not_compared(run: Run, turn: Turn) -> bool:
    """Was a used slot taken without a look at what it holds (--slot-prompt-similarity 0)?"""
    selection = turn.selection
    if selection is None or selection.how != "lru" or not turn.n_held_slot or turn.cache_loaded:
        return False
    return run.slots_not_compared or (run.build_min >= COMPARES_SINCE and not selection.slot_lcp)


def _whole_or_one_less(turn: Turn, n_prompt: int) -> int | None:
    """Both n_prompt and n_prompt - 1 give this threshold: the ratios must decide."""
    selection = turn.selection
    ranged: Range | None = None
    if turn.cache_loaded:
        ranged = _loaded_range(turn)
    elif selection is not None:
        if turn.slot in selection.slot_lcp:
            return selection.slot_lcp[turn.slot] if turn.slot is not None else None
        ranged = _common_slot(turn)[1]
    windowed = _window_range(turn, n_prompt)
    if windowed is not None:
        met = meet(ranged, windowed)
        ranged = ranged if _empty(met) else met
    fits = [n for n in (n_prompt - 1, n_prompt) if ranged is None or ranged[0] <= n <= ranged[1]]
    return fits[0] if len(fits) == 1 else None


def _window_range(turn: Turn, n_prompt: int) -> Range | None:
    """What the two rows of token ids around the mismatch say: does one of the two token lists end there?"""
    if len(turn.mismatch_ids) != 2:
        return None
    old, new = turn.mismatch_ids
    if bool(old) != bool(new):
        return None  # a damaged row
    if any(a != b for a, b in zip(old, new, strict=False)):
        return 0, n_prompt - 1
    if turn.n_held is None:
        return None
    return min(turn.n_held, n_prompt), min(turn.n_held, n_prompt)


def _loaded_range(turn: Turn) -> Range | None:
    """Common prefix with the loaded cache entry."""
    if turn.cache_lcp is not None:
        return turn.cache_lcp, turn.cache_lcp
    selection = turn.selection
    if selection is None or selection.found is None:
        return None
    f_keep, sim = selection.found
    ranged: Range | None = None
    if turn.n_prompt is not None:
        ranged = ratio_range(sim, turn.n_prompt)
    if turn.n_held:
        ranged = meet(ranged, ratio_range(f_keep, turn.n_held))
    return ranged


def _narrow(run: Run, turn: Turn, ranged: Range) -> tuple[int | None, Range, Basis]:
    """What else bounds the common prefix: the reuse point, and a memory that always resumes there."""
    low, high = ranged
    n_cached = turn.n_cached
    if n_cached is not None and not turn.chunk_moves and turn.restored is None:
        low = max(low, min(n_cached, high))
    if turn.n_prompt is not None:
        high = min(high, turn.n_prompt)
    if low > high:
        return None, ranged, "derived"
    if low == high:
        return low, (low, high), "derived"
    plain = run.memory == "plain" and not turn.chunk_moves and not (n_cached == 0 and _not_compared(run, turn))
    if plain and n_cached is not None and low <= n_cached <= high:
        if turn.n_prompt is not None and n_cached == turn.n_prompt - 1 and high >= turn.n_prompt:
            return None, (n_cached, turn.n_prompt), "derived"
        return n_cached, (n_cached, n_cached), "derived"
    return None, (low, high), "derived"


def _known(turn: Turn) -> None:
    """The best common prefix with anything the server held that the log shows."""
    values = [value for value in (turn.n_common, turn.n_common_slot) if value is not None]
    if turn.selection is not None:
        values += turn.selection.slot_lcp.values()
        values += [lcp for _, lcp, _, _ in turn.selection.candidates]
    if not values:
        return
    best = max(values)
    # (b8156 goes on one token behind what is in common; pieces that were moved are no prefix)
    if not turn.chunk_moves and turn.n_cached is not None and turn.n_cached > best + 1:
        return  # it was held where the log does not show
    if turn.n_common_range is None or best >= turn.n_common_range[0]:
        turn.n_known = best
        turn.basis["n_known"] = "observed"
