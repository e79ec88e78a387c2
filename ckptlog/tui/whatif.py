"""The what-if panel: change a flag, see what the server would have done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content, Span
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from ckptlog.replay.sweep import COUNTS, STEPS
from ckptlog.replay.whatif import Flags, WhatIfTurn
from ckptlog.report.whatif import render_whatif
from ckptlog.server.policy import Settings
from ckptlog.tui.glyphs import Glyphs
from ckptlog.tui.imagining import Answer, Imaginer

if TYPE_CHECKING:
    from textual.timer import Timer

    from ckptlog.records import Report
    from ckptlog.tui.timeline import Timeline

NAMES = ("--ctx-checkpoints", "--checkpoint-min-step", "--swa-full")
_LADDERS = (COUNTS, STEPS)
#: digits of a number that is typed, at most
_DIGITS = 6
#: the report's colours as the theme has them
_COLOURS = {"green": "$text-success", "red": "$text-error", "yellow": "$text-warning", "cyan": "$text-accent"}

NOT_KEPT = (
    "What-if needs the whole log's timeline, which is not kept while a log is followed or read from a pipe. "
    "Open the finished log without --follow."
)
#: seconds between two words on how far it is
_TELL_EVERY = 0.5
_STILL_READING = "The log is still being read; what-if begins when it is done."


class WhatIfPane(VerticalScroll):
    """Three flags to change, and below them the answer in the words of ``ckptlog whatif``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "flag above", show=False),
        Binding("down,j", "move(1)", "flag below", show=False),
        Binding("left,h", "step(-1)", "less", show=False),
        Binding("right,l", "step(1)", "more", show=False),
        Binding("space", "step(1)", "more", show=False),
        Binding("backspace", "erase", "erase", show=False),
        Binding("delete", "own", "the log's own flags", show=False),
        *(Binding(str(digit), f"digit({digit})", "type", show=False) for digit in range(10)),
    ]

    class Told(Message):
        """A thread has the log's own settings, or an answer."""

        def __init__(self, told: Answer | Settings | str | None) -> None:
            self.told = told
            super().__init__()

    class Imagined(Message):
        """What the map should mark has changed."""

    def __init__(self, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = glyphs
        self.own: Settings | None = None
        self.cursor = 0
        #: the flags that differ from the log's own
        self.flags = Flags()
        self._typed = ""
        self._why_not = _STILL_READING
        self._imaginer: Imaginer | None = None
        self._started = False
        self._answer: Answer | None = None
        self._timeline: Timeline | None = None
        self._ticking: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def hold(self, report: Report, timeline: Timeline | None, reading: bool) -> None:
        """Take the log's timeline; null: it is not kept, or not complete yet."""
        if timeline is None:
            self._why_not = _STILL_READING if reading else NOT_KEPT
        else:
            self._timeline = timeline
            self._imaginer = Imaginer(report, timeline, lambda told: self.post_message(self.Told(told)))
            self._why_not, self._started = "", False
        self._draw()

    @property
    def turns(self) -> Sequence[WhatIfTurn]:
        """The turns as they would have been with the flags chosen; none while there is no answer."""
        if not self.flags or self._answer is None or isinstance(self._answer.found, str):
            return ()
        return self._answer.found.turns

    def look(self) -> None:
        """The panel is looked at: begin to work."""
        if self._imaginer is not None and not self._started:
            self._started = True
            self._imaginer.start()
            self._tell_progress()
            self._ticking = self.set_interval(_TELL_EVERY, self._tell_progress)
        self._draw()

    def _tell_progress(self) -> None:
        """While the log's own flags are looked for: a big log is read once more for them."""
        share = self._timeline.share if self._timeline is not None else None
        self._why_not = (
            "Looking for the log's own flags ..."
            if share is None
            else f"A replay needs more of this big log than was kept: it is read once more, {share:.0%} ..."
        )
        self._draw()

    def on_what_if_pane_told(self, message: Told) -> None:
        told = message.told
        assert self._imaginer is not None
        if isinstance(told, Answer):
            self._imaginer.done(told)
            if told.flags == self.flags:
                self._wish()
            return
        if self._ticking is not None:
            self._ticking.stop()
        if isinstance(told, str):
            self._why_not = self.glyphs.text(told)
            self._draw()
            return
        self._why_not = ""
        # without settings there is nothing to change, and the answer is the sentence that says why
        self.own = told
        self._wish()

    def _wish(self) -> None:
        assert self._imaginer is not None
        self._answer = self._imaginer.answer(self.flags)
        self._draw()
        self.post_message(self.Imagined())

    def on_resize(self) -> None:
        self._draw()

    # -- drawing

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        width = max(40, self.scrollable_content_region.width - 1)
        lines: list[Content] = []
        if self._why_not:
            lines.append(Content(self._why_not))
        else:
            if self.own is not None:
                lines += [self._flag_line(row) for row in range(len(NAMES))]
                lines.append(
                    Content.styled(
                        "  up down: flag; left right, digits or < >: value; delete: the log's own",
                        "$text-muted",
                    )
                )
            lines += self._answer_lines(width)
        self.query_one(Static).update(Content("\n").join(lines))

    def _flag_line(self, row: int) -> Content:
        chosen = row == self.cursor
        pointer = self.glyphs.pointer if chosen else " "
        value, own = self.value(row), self._own_value(row)
        note = "as in the log" if value == own else f"{_word(own)} in the log"
        style = "bold $text-accent" + (" reverse" if chosen and self.has_focus else "")
        line = Content.assemble(
            f"{pointer} {NAMES[row]:<22}",
            Content.styled(" < ", "$text-accent").stylize(Style.from_meta({"step": -1})),
            (f"{_word(value):>8} ", style),
            Content.styled(" > ", "$text-accent").stylize(Style.from_meta({"step": 1})),
            (f"  {note}", "$text-muted"),
        )
        return line.stylize(Style.from_meta({"row": row}))

    def _answer_lines(self, width: int) -> list[Content]:
        if self._answer is None:
            return [Content.styled("  replaying ...", "$text-muted")]
        found = self._answer.found
        if isinstance(found, str):
            return [Content.styled(self.glyphs.text(found), "$text-warning")]
        return [self._themed(line) for line in render_whatif(found, width)]

    def _themed(self, line: Text) -> Content:
        """A line of the report in the theme's colours."""
        content = Content(self.glyphs.text(line.plain))
        if line.style:
            content = content.stylize(_themed(str(line.style)))
        if len(content) == len(line.plain):
            spans = [Span(span.start, span.end, _themed(str(span.style))) for span in line.spans]
            content = content.add_spans(spans)
        return content

    # -- changing flags

    def value(self, row: int) -> int | bool:
        """A flag's value as chosen."""
        changed = (self.flags.ctx_checkpoints, self.flags.checkpoint_min_step)
        if row < len(changed):
            wanted = changed[row]
            return self._own_value(row) if wanted is None else wanted
        return self.flags.swa_full or self._own_value(row)

    def _own_value(self, row: int) -> int | bool:
        assert self.own is not None
        return (self.own.max_checkpoints, self.own.min_step, self.own.swa_full)[row]

    def _set(self, row: int, value: int) -> None:
        own = self._own_value(row)
        wanted = None if value == own else value
        count, step, swa = self.flags.ctx_checkpoints, self.flags.checkpoint_min_step, self.flags.swa_full
        if row == 0:
            count = wanted
        elif row == 1:
            step = wanted
        else:
            swa = bool(value) and not own
        self.flags = Flags(count, step, swa)
        self._wish()

    def action_move(self, step: int) -> None:
        self.cursor = max(0, min(self.cursor + step, len(NAMES) - 1))
        self._typed = ""
        self._draw()

    def action_step(self, step: int) -> None:
        if self.own is None:
            return
        self._typed = ""
        row, value = self.cursor, self.value(self.cursor)
        if row >= len(_LADDERS):
            self._set(row, not value)
            return
        ladder = sorted({*_LADDERS[row], int(self._own_value(row))})
        beyond = [rung for rung in ladder if (rung > value if step > 0 else rung < value)]
        if beyond:
            self._set(row, beyond[0] if step > 0 else beyond[-1])

    def action_digit(self, digit: int) -> None:
        if self.own is None or self.cursor >= len(_LADDERS):
            return
        self._typed = (self._typed + str(digit))[:_DIGITS]
        self._set(self.cursor, int(self._typed))

    def action_erase(self) -> None:
        """Take away the last digit; the last of all brings the log's own value back."""
        if self.own is None or self.cursor >= len(_LADDERS):
            return
        self._typed = (self._typed or str(self.value(self.cursor)))[:-1]
        self._set(self.cursor, int(self._typed) if self._typed else int(self._own_value(self.cursor)))

    def on_click(self, event: events.Click) -> None:
        """A click on a flag chooses it, one on its arrows changes it."""
        meta = event.style.meta
        if self.own is None or "row" not in meta:
            return
        event.stop()
        self.action_move(meta["row"] - self.cursor)
        if "step" in meta:
            self.action_step(meta["step"])

    def action_own(self) -> None:
        if self.own is not None:
            self._typed = ""
            self.flags = Flags()
            self._wish()

    def on_focus(self) -> None:
        self._draw()

    def on_blur(self) -> None:
        self._typed = ""
        self._draw()


def _word(value: int | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}"


def _themed(style: str) -> str:
    """A Rich style of the report as a style of the app."""
    return " ".join(_COLOURS.get(word, "$text-muted" if word == "dim" else word) for word in style.split())
