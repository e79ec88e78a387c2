"""How much of a turn's prompt the slot, and the server, held.

The log seldom prints it, but several lines bound it (a threshold, two rounded ratios, a reuse without a search). An
integer is given only when one candidate is left.
"""

from __future__ import annotations

from ckptlog.records import Basis
from ckptlog.server.builds import flag_exists
from ckptlog.timeline.course import lines_missing, searched
from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.ranges import HALF_DIGIT, Range, is_empty, meet, ratio_range, whole_of
from ckptlog.timeline.starts import UNSURE_STARTS

#: the threshold subtracts one more (n_swa aside) in these builds
PLUS_ONE = range(9246, 9509)


def settle_common(run: Run, turn: Turn) -> None:
    """Fill in ``n_common``, ``n_common_slot`` and ``n_known``, or the ranges that are left of them."""
    slot_exact, slot_range = _common_slot(run, turn)
    exact, basis = _common_at_search(run, turn)
    if exact is not None and _unseen_file(run, turn, exact):
        _came_from_file(turn)
    at_search, turn.n_common_range = turn.n_common_range, None
    swapped = turn.cache_loaded or _load_failed(turn)
    if at_search is not None and not swapped:
        met = meet(slot_range, at_search)
        slot_range = at_search if is_empty(met) else met
    if not swapped:
        if slot_exact is not None:
            exact = slot_exact
            basis = "observed"
        elif exact is None and slot_range is not None:
            exact, slot_range, basis = _narrow(run, turn, slot_range)
            if exact is not None:
                slot_exact = exact
        elif exact is not None and slot_range is not None and _against(turn, exact, slot_range):
            # less was reused, and nothing looked for: the request forbade it (or asked for another LoRA), or the search's
            # lines are missing
            exact, slot_range, basis = _narrow(run, turn, slot_range)
            slot_exact = exact
        elif exact is not None:
            if slot_range is not None and not slot_range[0] <= exact <= slot_range[1] and basis == "inferred":
                exact = None
            elif not _choice_lost(run, turn):
                slot_exact = exact
            elif turn.selection is not None or not _no_ram_cache(run):
                # what was swapped in is not what the slot was known to hold
                turn.n_held, turn.previous, turn.starts = None, None, UNSURE_STARTS
        common_range = slot_range
    else:
        common_range = _loaded_range(turn)
        if at_search is not None:
            met = meet(common_range, at_search)
            common_range = at_search if is_empty(met) else met
        if common_range is not None and (exact is None or _against(turn, exact, common_range)):
            exact, common_range, basis = _narrow(run, turn, common_range)
    if slot_exact is not None:
        turn.n_common_slot = slot_exact
        turn.basis["n_common_slot"] = basis if slot_exact == exact else "observed"
    if exact is not None and exact == slot_exact and _perhaps_swapped(run, turn):
        exact = None
    if exact is not None and _more_than_the_slot(turn, exact):
        # a saved prompt was swapped in, or (plain memory only) pieces were moved: the level hides which
        n_cached = turn.n_cached or 0
        least = n_cached if run.memory in ("swa", "hybrid", "recurrent") else exact
        exact, common_range = None, (least, max(n_cached, turn.n_prompt or 0))
    if exact is not None:
        turn.n_common = exact
        turn.basis["n_common"] = basis
    elif common_range is not None and not is_empty(common_range):
        turn.n_common_range = common_range
    _known(turn)


def _no_ram_cache(run: Run) -> bool:
    """Is there surely no RAM prompt cache: switched off, or a build from before there was one?"""
    return run.prompt_cache_mib == 0 or flag_exists("--cache-ram", run.build_min or None, run.build_max) is False


def _unseen_file(run: Run, turn: Turn, n_common: int) -> bool:
    """Had the prompt more in common with the slot than what its last turn left there, and no saved prompt came in?

    Up to b11434 no line tells that a slot file is loaded (formats: policy, section 5).
    """
    if turn.cache_loaded or _load_failed(turn) or not turn.list_visible or turn.n_held_slot is None:
        return False
    # a slot asked for by number goes without a line, and without a look into the RAM cache, in older builds
    older = run.build_max is not None and run.build_max < CHOICES_TOLD_SINCE
    by_number = turn.selection is None and turn.start_seen and older
    return (_no_ram_cache(run) or by_number) and n_common > turn.n_held_slot


def _against(turn: Turn, exact: int, shown: Range) -> bool:
    """Was less reused, without a search, than the slot's choice (or the saved prompt that came in) shows to have been
    in common?"""
    if turn.memory_state is not None or turn.n_common_printed is not None or turn.checks or turn.need_one_token is not None:
        return False
    return exact == turn.n_cached and exact < shown[0] <= shown[1]


#: a slot of which less is kept is given up for a saved prompt that fits better (formats: policy, section 6)
SWAPPED_BELOW = 0.5

#: from here on every choice of a slot is told ("selected slot by id" too)
CHOICES_TOLD_SINCE = 9725


def _choice_lost(run: Run, turn: Turn) -> bool:
    """Are the lines before the launch missing, which would show a prompt swapped in from the RAM cache?"""
    selection, n_prompt = turn.selection, turn.n_prompt or 0
    if selection is not None and selection.how == "unknown":
        return run.prompt_cache_mib != 0  # (only the RAM cache's messages are there)
    if selection is not None:
        # a slot taken by age has little in common, unless a swap is not shown
        alike = turn.n_cached is not None and turn.n_cached > ALIKE * n_prompt > 0
        return selection.how == "lru" and alike and not _no_ram_cache(run) and not run.slots_not_compared
    return not turn.start_seen or run.build_min >= CHOICES_TOLD_SINCE or (turn.no == 1 and not run.start_seen)


def _perhaps_swapped(run: Run, turn: Turn) -> bool:
    """May a saved prompt have been swapped in, at a level that hides it, where the timings that would tell are missing?"""
    if turn.n_cached is not None or turn.n_processed is not None or turn.list_visible or _no_ram_cache(run):
        return False
    if run.embeds or turn.no == 1:
        return False
    selection = turn.selection
    return selection is None or selection.how == "lru" or (selection.f_keep or 0) < SWAPPED_BELOW


def _more_than_the_slot(turn: Turn, n_common: int) -> bool:
    """Was more reused than the slot had in common, without a piece moved or a swap shown?"""
    if turn.list_visible or turn.cache_loaded or turn.chunk_moves or turn.n_cached is None:
        return False
    return turn.basis.get("n_cached") == "derived" and turn.n_cached > n_common + 1


def _load_failed(turn: Turn) -> bool:
    return turn.selection is not None and turn.selection.load_failed_line is not None


def _common_slot(run: Run, turn: Turn) -> tuple[int | None, Range | None]:
    """Common prefix with what the slot held when it was chosen: exact, or a range."""
    selection, held, n_prompt = turn.selection, turn.n_held_slot, turn.n_prompt
    if held == 0 and _searched_slot(turn):
        # a search is made only where something is in common: the slot was filled without a line
        _came_from_file(turn)
        held = None
    if selection is None:
        if held == 0 and not turn.n_cached and (run.build_min < CHOICES_TOLD_SINCE or not turn.task or turn.is_child):
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
    if is_empty(both):
        both = by_prompt
        _came_from_file(turn)
    if held == 0 and not any(sims):
        return 0, None
    if held == 0 and any(sims):
        _came_from_file(turn)
        both = by_prompt
    if both is not None and not is_empty(both):
        if both[0] == both[1]:
            return both[0], both
        return None, both
    return None, None


def _searched_slot(turn: Turn) -> bool:
    """Were checkpoints looked for (formats: policy, section 2: only with n_past > 0)?"""
    if turn.cache_loaded or (turn.memory_state is not None and turn.memory_state[0] == 0):
        return False
    return searched(turn)


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
    if turn.n_common_printed is not None:
        return turn.n_common_printed, "observed"
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
            if n_prompt is None:
                turn.n_common_range = (common, common + 1)
                return None, "derived"
            if common == n_prompt - 1:
                exact = _whole_or_one_less(run, turn, n_prompt)
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
        if turn.n_held != 0 and lines_missing(run, turn):
            return None, "derived"
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


def given_by_age(run: Run, turn: Turn) -> bool:
    """Did the slot come by its age, though it held much of the prompt?"""
    selection = turn.selection
    if selection is None or selection.how != "lru" or turn.cache_loaded or not turn.n_held_slot:
        return False
    if not _no_ram_cache(run) and (run.build_min < COMPARES_SINCE or selection.slot_lcp):
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


def _whole_or_one_less(run: Run, turn: Turn, n_prompt: int) -> int | None:
    """Both n_prompt and n_prompt - 1 give this threshold: the ratios must decide."""
    selection = turn.selection
    ranged: Range | None = None
    if turn.cache_loaded:
        ranged = _loaded_range(turn)
    elif selection is not None:
        if turn.slot in selection.slot_lcp:
            return selection.slot_lcp[turn.slot] if turn.slot is not None else None
        ranged = _common_slot(run, turn)[1]
    windowed = _window_range(turn, n_prompt)
    if windowed is not None:
        met = meet(ranged, windowed)
        ranged = ranged if is_empty(met) else met
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
    by_prompt = None if turn.n_prompt is None else ratio_range(sim, turn.n_prompt)
    if not turn.n_held:
        return by_prompt
    both = meet(by_prompt, ratio_range(f_keep, turn.n_held))
    if is_empty(both):
        # another entry came in than the one that was taken for it
        turn.n_held = None if by_prompt is None else whole_of(f_keep, by_prompt)
        turn.previous, turn.starts = None, UNSURE_STARTS
        return by_prompt
    return both


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
