"""What the lines of a turn show of its course: begun, evaluated, refused, ended by an error."""

from __future__ import annotations

from ckptlog.timeline.model import Run, Turn
from ckptlog.timeline.refusals import REFUSALS

#: up to this build the default level shows every checkpoint message
LAST_ALL_VISIBLE = 9829


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
    if not turn.start_seen:
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
