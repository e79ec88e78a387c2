"""The pictures that the loader sends, and what changes on the screen with each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from ckptlog.errors import CkptlogError, ExitCode, NothingToJudge
from ckptlog.report.digest import Numbered
from ckptlog.report.words import label
from ckptlog.tui.book import Book, id_of
from ckptlog.tui.filters import Filters
from ckptlog.tui.loading import Loader, Picture, Progress

if TYPE_CHECKING:
    from ckptlog.query.compile import CompiledFilter
    from ckptlog.tui.piped import PipedLog
    from ckptlog.tui.timeline import Timeline


class PictureTaken(Message):
    """The loader has a new picture of the log; ``book`` is made of it, ``filtered`` by this expression."""

    def __init__(self, picture: Picture, book: Book, filtered: CompiledFilter | None = None) -> None:
        self.picture, self.book, self.filtered = picture, book, filtered
        super().__init__()


class Progressed(Message):
    """The loader tells how far it is."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        super().__init__()


class Following(Filters):
    """The log is read in the background, and the book follows.

    ``failure`` is the error that ended it, if one did: the caller tells it once the terminal is
    restored.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        follow: bool = False,
        ascii_only: bool = False,
        piped: PipedLog | None = None,
    ) -> None:
        super().__init__(paths, follow=follow, ascii_only=ascii_only)
        self.failure: CkptlogError | None = None
        #: what a followed log held at the beginning is read: what fails from now on is news
        self._caught_up = False
        self._loader = Loader(
            self.paths,
            follow=follow,
            piped=piped,
            on_picture=self._hand_over,
            on_progress=lambda progress: self.post_message(Progressed(progress)),
        )
        self._timeline: Timeline | None = None

    def _hand_over(self, picture: Picture) -> None:
        """In the loader's thread: a picture, with all that can be made of it there."""
        book, wanted = Book(picture.report), self._filter
        book.let_through(wanted)
        book.prepare()
        self.post_message(PictureTaken(picture, book, wanted))

    def on_progressed(self, message: Progressed) -> None:
        if not self.screen_stack:  # said by the loader's thread while the application ended
            return
        self.progress = message.progress
        if message.progress.phase == "failed":
            self._fail(message.progress.error)
        else:
            self._show_status()

    def _fail(self, error: CkptlogError | None) -> None:
        self.failure = error
        self.exit(return_code=int(error.exit_code) if error else int(ExitCode.USAGE))

    def on_picture_taken(self, message: PictureTaken) -> None:
        if not self.screen_stack:
            return
        began = time.monotonic()
        self._take(message)
        self._loader.seen(time.monotonic() - began)

    def _take(self, message: PictureTaken) -> None:
        picture = message.picture
        self.progress = picture.progress
        if picture.progress.phase == "done" and not picture.report.turns:
            self._fail(NothingToJudge("; ".join(picture.nothing) or "there is no turn in it"))
            return
        before = self.book
        self._sources = tuple(picture.sources)
        self.book = message.book
        self.book.outcomes, self.book.lane_filter = before.outcomes, before.lane_filter
        if message.filtered is not self._filter:  # changed while the picture was made
            self._apply_filter()
        self._announce(before)
        self._newest_source = picture.newest.source if picture.newest else None
        wanted: Numbered | None
        if self._sticks and (self._touched or self.progress.phase == "following"):
            wanted = self.end_of_log
        else:
            wanted = self.item if self._touched else self.book.worst
        self.turn_list.nothing = (
            "no turn yet" if not self.book.turns else "no turn passes the filters (0 clears them)"
        )
        self.selected = id_of(wanted.turn) if wanted else None
        # a pipe keeps no timeline either, but only its end tells it from a file that is being read
        reading = picture.progress.phase == "reading" and not self.follow
        self._timeline = picture.timeline
        self._replay = (picture.report, picture.timeline, reading)
        self._hold_replay()
        self._show_all()

    def _announce(self, before: Book) -> None:
        """Tell of turns that failed since the last picture of a growing log."""
        caught_up, self._caught_up = self._caught_up, self._caught_up or self.progress.phase == "following"
        if not caught_up:
            return
        new = [
            item
            for item in self.book.turns
            if (item.turn.failed or item.turn.outcome == "error") and before.find(id_of(item.turn)) is None
        ]
        if new:
            names = ", ".join(f"turn {item.number} {label(item.turn)}" for item in new[-3:])
            self._news = f"new failure: {names}"
            self.bell()

    def action_stick(self) -> None:
        if not self.follow:
            self._say("the log is not followed (--follow)")
            return
        if self._sticks:
            self._sticks = False
            self._show_status()
        else:
            self.select(self.end_of_log)

    def on_unmount(self) -> None:
        self._loader.stop()
        if self._timeline is not None:
            self._timeline.stop()

    def loader_ended(self, seconds: float) -> bool:
        """Whether no thread reads a log any more, after waiting for them."""
        until = time.monotonic() + seconds
        ended = self._loader.join(seconds)
        return ended and (self._timeline is None or self._timeline.ended(until - time.monotonic()))
