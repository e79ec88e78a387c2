"""What the lines of a turn show of its course: begun, evaluated, refused, ended by an error."""

from __future__ import annotations

from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.refusals import REFUSALS

#: up to this build the default level shows every checkpoint message
LAST_ALL_VISIBLE = 9829

#: so far from its end a prompt is cut, for a checkpoint that begins there; and since which build, and from which on
#: no spacing keeps the checkpoint away (formats: policy, section 3)
NEAR_END, CUT_THERE_SINCE, ALWAYS_MADE_SINCE = 4, 8352, 9981
#: older builds make none of so few tokens
LEAST_MADE = 64


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
    if turn.created or turn.checks or turn.restored:
        return True
    if checkpoints_filtered(run):
        return False
    if turn.batch_starts or turn.forced:
        return True
    if turn.new_prompt_line is not None:
        return True
    if run.build_max is not None and run.build_max <= LAST_ALL_VISIBLE:
        return run.verbosity is None or run.verbosity >= 3
    return False


def created_missing(run: Run, turn: Turn) -> bool:
    """Was the prompt cut where a checkpoint is made, and does no line say that one was?

    Memory that needs no checkpoints is not cut there, nor where they are switched off; another slot's tokens, an image
    or a full batch may end a batch anywhere. Asked once, when the turn is settled (``Turn.cut_silently``): what is
    known of batches grows, and foreign timings go.
    """
    starts = turn.batch_starts
    if len(starts) < 2 or turn.n_prompt is None or starts[-1] != turn.n_prompt - NEAR_END or turn.created:
        return False
    if turn.n_alone is not None or turn.cut_by_media or run.memory == "plain" or run.fork is not None:
        return False
    if not (turn.sampled or turn.prompt_ms) or (run.build_max is not None and run.build_max < CUT_THERE_SINCE):
        return False
    if run.build_min < ALWAYS_MADE_SINCE and not run.start_seen:
        return False
    if run.build_min < ALWAYS_MADE_SINCE and starts[-1] <= LEAST_MADE:
        return False
    step = starts[-1] - starts[-2]
    if run.n_batch is not None:
        return step != run.n_batch
    return step < 32 or step & (step - 1) != 0  # (a batch's size, where it is not in the log, is a power of two)


def checkpoints_filtered(run: Run) -> bool:
    """Have the messages of checkpoints been taken out of this log (``grep -v checkpoint``)?"""
    return run.n_cut_silently > 0 and run.n_created == 0


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
    return cancel.line > release.line or turn.failed_batch is not None or unprocessed or full


def prompt_start_seen(turn: Turn) -> bool:
    """Is the beginning of the turn in the log (which may begin, or lack lines, in its middle)?"""
    return turn.new_prompt_line is not None or turn.start_seen


def lines_missing(run: Run, turn: Turn) -> bool:
    """Does the turn lack a line that the server prints in every turn, so that what is not there proves nothing?

    Whoever greps a log keeps the launches or the batches, but seldom both and the line of the prompt's end.
    """
    if turn.new_prompt_line is None:
        return False
    if not turn.start_seen or checkpoints_filtered(run):
        return True
    if run.build_min >= ALWAYS_MADE_SINCE and turn.cut_silently:
        return True
    answered = turn.ended == "release" and turn.released and not turn.is_child and not turn.empty_prompt
    return answered and not turn.prompt_done and not turn.shifts and not run.embeds and _end_of_prompt_shown(run)


def _end_of_prompt_shown(run: Run) -> bool:
    """Does the level that shows "new prompt" also show that the prompt is done (a sampler is set up)?

    In b9114 to b9829 one is told at -lv 3, the other at -lv 4 (formats: matrix). Where the build may be any, a log
    without the server's start is rather one that was grepped.
    """
    if run.verbosity is not None and run.verbosity >= 4:
        return True
    before = run.build_max is not None and run.build_max < 9114
    if before or run.build_min > LAST_ALL_VISIBLE:
        return True
    between = run.build_min >= 9114 and run.build_max is not None and run.build_max <= LAST_ALL_VISIBLE
    return not between and not run.start_seen


def shift_missing(turn: Turn) -> bool:
    """Does the slot hold less than prompt and answer, though no shift was seen?"""
    evaluated = turn.n_prompt if turn.n_prompt is not None else turn.n_processed
    if turn.ended != "release" or evaluated is None or turn.n_generated is None or turn.n_released is None or turn.has_draft or turn.shifts:
        return False
    return turn.input_truncated is None and turn.n_released < evaluated + turn.n_generated - 1


def searched(turn: Turn) -> bool:
    """Does a line show that checkpoints were looked for?"""
    return bool(turn.checks) or turn.forced is not None or turn.restored is not None


def search_missing(run: Run, turn: Turn) -> bool:
    """Was less reused than was in common, without a line of the search that must have come between?

    Where nothing at all was reused, the request may have forbidden it, and there was no search.
    """
    least = turn.n_common if turn.n_common is not None else turn.n_common_range[0] if turn.n_common_range else None
    if least is None or not turn.n_cached or turn.n_cached >= least or not turn.list_visible:
        return False
    return run.fork is None and not searched(turn) and turn.memory_state is None and turn.need_one_token is None
