"""Which cuts of a prompt are its own where slots share batches, and what the others leave open."""

from __future__ import annotations

from ckptlog.timeline.batches import ANSWER, Sharing, ends, not_full
from ckptlog.timeline.lists import ListKeeper
from ckptlog.timeline.model import Checkpoint, Run, Turn
from ckptlog.timeline.slot import SlotState
from ckptlog.timeline.starts import Starts

N_BATCH = 256


def shared(no: int, slot: int, n_prompt: int) -> Turn:
    turn = Turn(no, 1, 0, slot, no, no, no)
    turn.n_prompt, turn.n_alone = n_prompt, 0
    return turn


class Server:
    """Slots that begin parts of their prompts, in the order of the log."""

    def __init__(self) -> None:
        self.sharing = Sharing()

    def begin(self, turn: Turn, start: int, answers: int = 0) -> None:
        self.sharing.begins(turn, start, answers)
        turn.batch_starts.append(start)


def test_a_batch_that_had_room_was_ended_by_its_own_prompt() -> None:
    server, first, second = Server(), shared(1, 0, 700), shared(2, 1, 700)
    for at in ((0, 0), (100, 156), (150, 230)):
        server.begin(first, at[0])
        server.begin(second, at[1])
    assert not not_full(first, 1, N_BATCH)  # 100 and 156 tokens
    assert not not_full(second, 1, N_BATCH)
    assert not_full(first, 2, N_BATCH)  # 50 and 74
    assert not_full(second, 2, N_BATCH)


def test_a_slot_with_a_lower_number_begins_the_next_batch() -> None:
    """Slot 1 alone, then both: the part of slot 0 belongs to the second batch, which is full."""
    server, low, high = Server(), shared(2, 0, 700), shared(1, 1, 700)
    server.begin(high, 0)
    server.begin(low, 0)
    server.begin(high, 100)
    server.begin(low, 200)
    server.begin(high, 156)
    assert not_full(high, 1, N_BATCH)
    assert not not_full(low, 1, N_BATCH)
    assert not not_full(high, 2, N_BATCH)


def test_room_is_certain_only_where_all_parts_are_known() -> None:
    server, first, second = Server(), shared(1, 0, 700), shared(2, 1, 120)
    server.begin(first, 0)
    server.begin(second, 0)
    server.begin(first, 100)
    assert not not_full(first, 1, N_BATCH)
    ends(second, 120)  # (its last part)
    assert not_full(first, 1, N_BATCH)


def test_answers_beside_a_prompt_take_room() -> None:
    for length, room in ((N_BATCH - 2 * ANSWER - 1, True), (N_BATCH - 2 * ANSWER, False)):
        server, turn = Server(), shared(1, 0, 700)
        server.begin(turn, 0, answers=2)
        server.begin(turn, length)
        assert not_full(turn, 1, N_BATCH) is room


def test_an_image_may_cut_any_batch() -> None:
    server, turn = Server(), shared(1, 0, 700)
    server.begin(turn, 0)
    server.begin(turn, 50)
    assert not_full(turn, 1, N_BATCH)
    turn.cut_by_media = True
    assert not not_full(turn, 1, N_BATCH)


def test_a_later_turns_open_cuts_do_not_unsettle_where_the_first_message_begins() -> None:
    run = Run(1, 0, 1, 1, build_min=10178, n_batch=N_BATCH, n_ubatch=64)
    state = SlotState(0, held=300, starts=Starts(user=(150,), seen=True, complete=True))
    turn = shared(2, 0, 500)
    turn.n_common = turn.n_cached = 300
    turn.batch_starts = [300, 330, 440, 496]  # cut at 440, near the end, and perhaps by another slot
    turn.created = [Checkpoint(440, 439, 439, None, 1, 0, 2, 2)]
    ListKeeper().after_turn(run, state, turn)
    assert (state.starts.user, state.starts.sure) == ((150,), True)
    # the same cuts in a conversation of which no start is known leave its first one open
    state = SlotState(0, held=300, starts=Starts(seen=True, complete=True))
    ListKeeper().after_turn(run, state, turn)
    assert not state.starts.sure
