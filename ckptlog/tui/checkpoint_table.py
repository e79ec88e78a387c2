"""The checkpoints of a slot as a table: where, since when, until when and why, with a line of life each."""

from __future__ import annotations

from rich.segment import Segment

from ckptlog.report.digest import Numbered
from ckptlog.tui.book import Book
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.lanes import Lane, Life
from ckptlog.tui.rows import RowList

#: cells that a line of life needs
_LIFE_FROM = 10


class CheckpointTable(RowList):
    """One row a checkpoint, in order of birth; those that the selected turn had are marked."""

    HEAD = 1

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.lane: Lane | None = None
        self.place: int | None = None
        self.lives: list[Life] = []
        self._blamed: list[Life] = []
        self._why_none = ""

    def show(self, book: Book, item: Numbered | None) -> None:
        lane = book.lane_of(item) if item else None
        before = (self.lane, self.place)
        self.lane = lane
        if lane is None or item is None:
            self.lives, self.place, self._blamed = [], None, []
            self.changed()
            return
        moved = before != (lane, lane.index[item.number])
        self.place = lane.index[item.number]
        self.lives = lane.lives
        self._blamed = lane.blamed(item.turn)
        run = book.run_of(item.turn)
        if run is not None and run.memory == "plain":
            self._why_none = "This memory needs no checkpoints: any common prefix can be reused."
        elif run is not None and run.checkpoints is not None and not run.checkpoints.enabled:
            self._why_none = "Checkpoints are switched off on this server."
        else:
            self._why_none = "The log shows no checkpoint of this slot (its level may hide them)."
        self.changed()
        if moved:
            here = [n for n, life in enumerate(self.lives) if life.at(self.place)]
            blamed = [n for n, life in enumerate(self.lives) if life in self._blamed]
            if blamed or here:
                self.go((blamed or here)[0], centre=True)

    @property
    def n_rows(self) -> int:
        return len(self.lives)

    def empty_text(self) -> str:
        return self._why_none

    def header(self, width: int) -> list[Segment]:
        text = f"  {'tokens':>9} {'MiB':>7} {'turn':>5} {'line':>7}  {'fate':<11} {'turn':>5} {'line':>7} {'used by':>9}  "
        if width - len(text) >= _LIFE_FROM:
            text += "life"
        return [Segment(text, self.ink("head"))]

    def row_ink(self, index: int) -> str | None:
        return None

    def row(self, index: int, width: int) -> list[Segment]:
        lane = self.lane
        assert lane is not None
        life = self.lives[index]
        record = life.record
        here = self.place is not None and life.at(self.place)
        strong = life in self._blamed
        mark = self.glyphs.pointer if strong else self.glyphs.live if here else " "
        ink = "strong" if strong else "other" if here else "dim"
        died = life.died if life.died is not None and life.died < len(lane.turns) else None
        fate = record.fate if life.died is None or record.fate != "live" else "server ended"
        size = (
            ""
            if record.size_mib is None
            else f"{record.size_mib:,.1f}"
            if record.size_mib >= 1
            else f"{record.size_mib:.2f}"
        )
        used = ",".join(str(lane.turns[place].number) for place in sorted(life.restored)) or "-"
        text = (
            f"{mark} {record.n_tokens:>9,} {size:>7} {lane.turns[life.born].number:>5} {record.line or '':>7}  "
            f"{fate:<11} {lane.turns[died].number if died is not None else '':>5} {record.fate_line or '':>7} "
            f"{used if len(used) <= 9 else used[:8] + '+':>9}  "
        )
        segments = [Segment(text, self.ink(ink))]
        room = width - len(text)
        if room >= _LIFE_FROM:
            fate_ink = "strong" if strong else record.fate if record.fate != "live" else "life"
            segments.append(Segment(self._drawn(life, len(lane.turns), room), self.ink(fate_ink)))
        return segments

    def _drawn(self, life: Life, n_turns: int, width: int) -> str:
        """Its life on a line that stands for all the slot's turns."""

        def at(place: int) -> int:
            return place * (width - 1) // max(1, n_turns - 1)

        cells = [" "] * width
        end = n_turns - 1 if life.died is None else min(life.died, n_turns - 1)
        for x in range(at(life.born), at(end) + 1):
            cells[x] = self.glyphs.life
        cells[at(life.born)] = self.glyphs.bar_start
        for place in life.restored:
            cells[at(place)] = self.glyphs.restored
        if life.died is None:
            cells[at(end)] = self.glyphs.bar_end
        elif life.record.fate != "live":
            cells[at(end)] = getattr(self.glyphs, life.record.fate)
        return "".join(cells)
