"""What was not understood of a log's lines, and in what they were wrapped: counts."""

from __future__ import annotations

from dataclasses import dataclass, field

#: shapes of lines not understood that are kept with an example; the others are only counted
MAX_DRIFT = 1000


@dataclass(slots=True)
class Drift:
    """Lines with a known literal that the grammar refuses, or with a slot/srv head it doesn't know."""

    status: str  # "drifted" or "unknown"
    line: int
    text: str
    message: str
    column: int | None
    expected: tuple[str, ...]
    literal: str
    count: int = 0


@dataclass(slots=True)
class Tally:
    """Counts over the lines of one source, or of a part of it. ``drift`` is by shape; ``around`` names what was taken
    off all lines before they came here, empty for nothing."""

    wrappers: dict[str, int] = field(default_factory=dict)
    formats: dict[str, int] = field(default_factory=dict)
    drift: dict[str, Drift] = field(default_factory=dict)
    drifted_lines: int = 0
    unknown_slot_lines: int = 0
    around: str = ""

    def count_form(self, wrapper: str, form: str, count: int = 1) -> None:
        """So many more lines in that wrapper (empty: none) and of that form (empty: not told)."""
        wrapper = wrapper or self.around
        self.wrappers[wrapper] = self.wrappers.get(wrapper, 0) + count
        if form:
            self.formats[form] = self.formats.get(form, 0) + count

    def count_drift(self, shape: str, example: Drift, count: int) -> None:
        """So many more lines of a shape that is not understood; the first example of a shape is kept."""
        if example.status == "drifted":
            self.drifted_lines += count
        else:
            self.unknown_slot_lines += count
        kept = self.drift.get(shape)
        if kept is not None:
            kept.count += count
        elif len(self.drift) < MAX_DRIFT:
            self.drift[shape] = example
            example.count = count

    def add(self, later: Tally) -> None:
        """The counts of a later part of the same source."""
        for mine, other in ((self.wrappers, later.wrappers), (self.formats, later.formats)):
            for word, count in other.items():
                mine[word] = mine.get(word, 0) + count
        self.drifted_lines += later.drifted_lines
        self.unknown_slot_lines += later.unknown_slot_lines
        for shape, drift in later.drift.items():
            kept = self.drift.get(shape)
            if kept is not None:
                kept.count += drift.count
            elif len(self.drift) < MAX_DRIFT:
                self.drift[shape] = drift
