"""The RAM prompt cache (``--cache-ram``): what was saved, what was loaded back, what was dropped.

The log prints lengths, not identities. Entries are followed by length and order, and put right by
every listing that the server prints (source: server_prompt_cache, messages "saving prompt with
length", "removing obsolete", "found better prompt", "removing oldest entry", "- prompt 0x...").
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ckptlog.timeline.limits import MAX_SAVED
from ckptlog.timeline.model import Checkpoint, Dropped, Turn
from ckptlog.timeline.ranges import has_share
from ckptlog.timeline.starts import NO_STARTS, Starts

#: what is read of each line of the server's two listings: the prompts it compares, and those it holds
CANDIDATE_FIELDS = ("n_tokens", "lcp", "f_keep", "sim")
ENTRY_FIELDS = ("n_tokens", "n_checkpoints")


class CacheEntry(msgspec.Struct):
    """One saved prompt; ``checkpoints`` is null when the log did not show what it holds."""

    n_tokens: int
    checkpoints: list[Checkpoint] | None
    dead: list[Checkpoint] = []
    saved_line: int | None = None
    starts: Starts = NO_STARTS
    maker: Turn | None = None


class RamCache(msgspec.Struct):
    """Entries in the server's order, oldest first."""

    entries: list[CacheEntry] = []
    dropped: list[Dropped] = []
    #: the save whose fate (kept, already there, too big) the following lines decide
    pending: CacheEntry | None = None
    _listing: list[tuple[int, int]] | None = None
    #: whether these are all that the server holds (the log begins with the server, or a listing was seen)
    complete: bool = False

    def save(self, entry: CacheEntry) -> None:
        self.settle()
        self.pending = entry

    def settle(self) -> None:
        """The pending save went through: nothing said otherwise."""
        if self.pending is not None:
            self.entries.append(self.pending)
            self.pending = None
            del self.entries[:-MAX_SAVED]

    def skip_pending(self) -> CacheEntry | None:
        entry, self.pending = self.pending, None
        return entry

    def remove_obsolete(self, n_tokens: int) -> None:
        """An entry goes that is the beginning of what is being saved; of several as long, one whose messages begin where
        those of that prompt do."""
        same = [i for i, entry in enumerate(self.entries) if entry.n_tokens == n_tokens]
        if len(same) > 1 and self.pending is not None:
            starts = {start for start in self.pending.starts.user if start <= n_tokens}
            alike = [i for i in same if starts == set(self.entries[i].starts.user)]
            same = alike or [i for i in same if starts.issuperset(self.entries[i].starts.user)] or same
        if same:
            del self.entries[same[0]]

    def drop_oldest(self, line: int, text: str | None, why: str) -> None:
        if why != "making-room":
            self.settle()
        if self.entries:
            entry = self.entries.pop(0)
            self.drop(Dropped(entry.n_tokens, line, text, why))

    def drop(self, content: Dropped) -> None:
        """Content is gone; only what went last is remembered."""
        self.dropped.append(content)
        del self.dropped[:-500]

    def take(self, n_tokens: int, at: int | None = None, of: int = 0) -> CacheEntry | None:
        """The entry of that length leaves the cache for a slot: the one at this place, where ``of`` that are all were
        looked at."""
        self.settle()
        if at is not None and of == len(self.entries) and self.entries[at].n_tokens == n_tokens:
            return self.entries.pop(at)
        for i in range(len(self.entries) - 1, -1, -1):
            if self.entries[i].n_tokens == n_tokens:
                return self.entries.pop(i)
        return None

    def fitting(self, f_keep: float) -> list[CacheEntry]:
        """Entries for which some whole common prefix gives this three-decimal f_keep."""
        self.settle()
        if not self.complete:
            return []
        return [entry for entry in self.entries if has_share(entry.n_tokens, f_keep)]

    def begin_listing(self) -> None:
        self.settle()
        self._listing = []

    def listed(self, entries: Iterable[tuple[int, int]]) -> None:
        """Entries of a listing in the server's order: tokens, and how many checkpoints each holds."""
        if self._listing is not None:
            self._listing.extend(entries)
            del self._listing[MAX_SAVED:]

    def end_listing(self) -> list[CacheEntry]:
        """Make the model agree with the listing; returns the entries that it no longer holds."""
        if self._listing is None:
            return []
        if self._agrees(self._listing):
            self._listing, self.complete = None, True
            return []
        old, self.entries = self.entries, []
        for n_tokens, n_checkpoints in self._listing:
            for i, found in enumerate(old):
                if found.n_tokens == n_tokens:
                    del old[i]
                    if found.checkpoints is not None and len(found.checkpoints) != n_checkpoints:
                        found.checkpoints = None
                    if found.checkpoints is None and n_checkpoints == 0:
                        found.checkpoints = []
                    break
            else:
                found = CacheEntry(n_tokens, [] if n_checkpoints == 0 else None)
            self.entries.append(found)
        self._listing, self.complete = None, True
        return old

    def _agrees(self, listing: list[tuple[int, int]]) -> bool:
        """Is the listing what was expected, down to the numbers of checkpoints (as it nearly always is)?"""
        entries = self.entries
        return len(entries) == len(listing) and all(
            entry.n_tokens == n_tokens and entry.checkpoints is not None and len(entry.checkpoints) == n_checkpoints
            for entry, (n_tokens, n_checkpoints) in zip(entries, listing, strict=True)
        )
