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
    from ckptlog.tui.piped import PipedLog


class PictureTaken(Message):
    """The loader has a new picture of the log."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
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
            on_picture=lambda picture: self._tell(PictureTaken(picture)),
            on_progress=lambda progress: self._tell(Progressed(progress)),
        )

    def _tell(self, message: Message) -> None:
        """From the loader's thread; after the end there is nobody to tell."""
        self.post_message(message)

    def on_progressed(self, message: Progressed) -> None:
        self.progress = message.progress
        if message.progress.phase == "failed":
            self._fail(message.progress.error)
        else:
            self._show_status()

    def _fail(self, error: CkptlogError | None) -> None:
        self.failure = error
        self.exit(return_code=int(error.exit_code) if error else int(ExitCode.USAGE))

    def on_picture_taken(self, message: PictureTaken) -> None:
        began = time.monotonic()
        self._take(message.picture)
        self._loader.seen(time.monotonic() - began)

    def _take(self, picture: Picture) -> None:
        self.progress = picture.progress
        if picture.progress.phase == "done" and not picture.report.turns:
            self._fail(NothingToJudge("; ".join(picture.nothing) or "there is no turn in it"))
            return
        before = self.book
        was_last = bool(before.turns) and self.item is not None and self.item.number == len(before.turns)
        self._sources = tuple(picture.sources)
        self.book = Book(picture.report, before.outcomes, before.lane_filter)
        self._apply_filter()
        self._announce(before)
        if self.follow and self._sticks and (was_last or not self._touched) and self.book.turns:
            last = self.book.shown[-1:] or self.book.turns[-1:]
            wanted: Numbered | None = last[0]
            if not self._touched and self.progress.phase != "following":
                wanted = self.book.worst
        else:
            wanted = self.item if self._touched else self.book.worst
        self.turn_list.nothing = (
            "no turn yet" if not self.book.turns else "no turn passes the filters (0 clears them)"
        )
        self.selected = id_of(wanted.turn) if wanted else None
        # a pipe keeps no timeline either, but only its end tells it from a file that is being read
        reading = picture.progress.phase == "reading" and not self.follow
        self.what_if.hold(picture.report, picture.runs, reading)
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
        shown = self.book.shown
        if self._sticks:
            self._sticks = False
            self._show_status()
        elif shown:
            self.select(shown[-1])

    def on_unmount(self) -> None:
        self._loader.stop()

    def loader_ended(self, seconds: float) -> bool:
        """Whether the reading thread has ended, after waiting for it."""
        return self._loader.join(seconds)
