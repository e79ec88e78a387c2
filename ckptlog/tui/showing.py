"""The book on the screen: the panes for the selected turn, their borders, the status line, the view."""

from __future__ import annotations

from bisect import bisect_right

from textual.content import Content
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from ckptlog.report.digest import Numbered
from ckptlog.report.words import plural
from ckptlog.tui.book import id_of
from ckptlog.tui.checkpoint_table import CheckpointTable
from ckptlog.tui.evidence import EvidenceList
from ckptlog.tui.finding import finding_lines
from ckptlog.tui.inks import Inked
from ckptlog.tui.map import TimelineMap
from ckptlog.tui.mismatch import MismatchPane
from ckptlog.tui.overview import column_words, progress_words, top_line
from ckptlog.tui.panes import TABS, WHAT_IF, Panes
from ckptlog.tui.rows import RowList
from ckptlog.tui.widgets import TabBar, TextPane, fitting


class Showing(Panes):
    """Selecting a turn shows it everywhere; tabs, zoom, scale, order and theme change how."""

    def _show_all(self) -> None:
        book, item = self.book, self.item
        self.screen_stack[0].query_one("#top", Static).update(top_line(book, self.paths, self.glyphs))
        shown = book.shown
        self.turn_list.show(shown, item.number if item else None, len(book.lanes) > 1)
        counts = (
            f"{len(shown):,} of {plural(len(book.turns), 'turn')}"
            if len(shown) != len(book.turns)
            else "turns"
        )
        self._title(self.turn_list, counts)
        self._show_item()
        self.refresh_bindings()

    def _show_item(self) -> None:
        """The selected turn on the map and in the details."""
        item = self.item
        lane = self.book.lane_of(item) if item else None
        self.map.show(lane, lane.index[item.number] if lane and item else None)
        self._show_titles()
        self._show_details()
        self._show_status()

    def _show_details(self) -> None:
        item = self.item
        screen = self.screen_stack[0]
        tab = self.tab
        if tab == "finding":
            lines = finding_lines(self.book, item, self.glyphs) if item else []
            screen.query_one("#finding", TextPane).show(lines)
        elif tab == WHAT_IF:
            self.what_if.look()
        elif tab == "log":
            self.raw_log.show(self.book, item, self._sources)
        else:
            pane = screen.query_one(f"#{tab}")
            assert isinstance(pane, EvidenceList | MismatchPane | CheckpointTable)
            pane.show(self.book, item)
        self._imagine()
        screen.query_one(TabBar).show(tab, log=self.raw_log.title())

    def _imagine(self) -> None:
        """The map marks what would have been cached while the what-if panel is open."""
        turns = self.what_if.turns if self.tab == WHAT_IF else ()
        if turns is self._imagined:
            return
        self._imagined = turns
        numbers = (
            {(item.turn.run, item.turn.slot, item.turn.task): item.number for item in self.book.turns}
            if turns
            else {}
        )
        then: dict[int, tuple[int, ...]] = {}
        for turn in turns:
            number = numbers.get((turn.run, turn.slot, turn.task))
            exact, ends = turn.n_cached_whatif, turn.n_cached_whatif_range
            if number is not None:
                then[number] = ends or () if exact is None else (exact,)
        self.map.imagine(then)

    def on_what_if_pane_imagined(self) -> None:
        self._imagine()
        self._show_titles()

    # -- borders

    def _readout(self, item: Numbered) -> str:
        lane = self.book.lane_of(item)
        place = lane.index[item.number]
        return column_words(self.map.column(place // self.map.pitch.turns)) if self.map.lane else ""

    def _title_map(self) -> None:
        lane = self.map.lane
        if lane is None:
            self._title(self.map, "map")
            return
        lanes = list(self.book.lanes.values())
        words = lane.name
        if len(lanes) > 1:
            words += f" ({lanes.index(lane) + 1} of {len(lanes)})"
        if lane.n_ctx:
            words += f", context {lane.n_ctx:,}"
        if self.map.scale_kind != "context":
            words += {"used": ", used part", "log": ", log scale"}[self.map.scale_kind]
        if self.map.pitch.turns > 1:
            words += f", {self.map.pitch.turns} turns a column"
        self._title(self.map, words)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_titles)

    def _show_titles(self) -> None:
        """What stands in the borders is cut to their widths."""
        self._title_map()
        if self.item is not None:
            self._subtitle(self.map, self._readout(self.item))

    def _title(self, widget: Widget, text: str) -> None:
        widget.border_title = Content(fitting(widget, text))

    def _subtitle(self, widget: Widget, text: str) -> None:
        widget.border_subtitle = Content(fitting(widget, text))

    # -- status line

    def _show_status(self) -> None:
        parts: list[Content | tuple[str, str] | str] = []
        if self._news:
            parts.append((self._news + "   ", "bold $text-error"))
        progress = progress_words(self.progress)
        if progress:
            parts.append(
                (progress + "   ", "bold $text-accent" if self.progress.phase == "reading" else "$text-muted")
            )
        if self.follow and self._sticks and self.progress.phase == "following":
            parts.append(("at the end (F)   ", "$text-muted"))
        parts += self._filter_words()
        self.screen_stack[0].query_one("#status", Static).update(Content.assemble(*parts))

    def _filter_words(self) -> list[Content | tuple[str, str] | str]:
        parts: list[Content | tuple[str, str] | str] = []
        if self.book.outcomes:
            parts.append(("only " + ", ".join(sorted(self.book.outcomes)) + "   ", "bold"))
        if self.book.lane_filter is not None:
            lane = self.book.lanes.get(self.book.lane_filter)
            parts.append((f"only {lane.name if lane else 'a slot'}   ", "bold"))
        if self._filter is not None:
            parts.append((f"filter: {self.glyphs.text(self._filter.text)}   ", "bold"))
        if parts:
            parts.append(("0 shows all", "$text-muted"))
        return parts

    # -- selecting

    @property
    def end_of_log(self) -> Numbered | None:
        """The last turn shown; of several logs that grow, the last of that which was written to last."""
        shown = self.book.shown or self.book.turns
        if self._newest_source is not None:
            after = bisect_right(shown, self._newest_source, key=lambda item: item.turn.source)
            shown = shown[max(0, after - 1) : after] or shown[-1:]
        return shown[-1] if shown else None

    def select(self, item: Numbered | None) -> None:
        """Make a turn the selected one, everywhere."""
        if item is None:
            return
        self._touched = True
        self._news = ""
        self.selected = id_of(item.turn)
        end = self.end_of_log
        self._sticks = self.follow and end is not None and item.number == end.number
        self.turn_list.point_at(item.number)
        self._show_item()

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        if message.rows is self.turn_list:
            self.select(self.turn_list.items[message.index])

    def on_turn_list_sorted(self) -> None:
        self._show_all()

    def on_timeline_map_picked(self, message: TimelineMap.Picked) -> None:
        self.select(message.item)

    def on_timeline_map_pointed(self, message: TimelineMap.Pointed) -> None:
        if message.column is not None:
            words = column_words(message.column)
        else:
            words = self._readout(self.item) if self.item else ""
        self._subtitle(self.map, words)

    # -- the view

    def action_show_tab(self, name: str) -> None:
        switcher = self.screen_stack[0].query_one("#tabs", ContentSwitcher)
        inside = self.focused is not None and switcher in self.focused.ancestors
        switcher.current = name
        self._show_details()
        if inside:
            self.screen_stack[0].query_one(f"#{name}").focus()

    def action_step_tab(self, step: int) -> None:
        at = TABS.index(self.tab) if self.tab in TABS else -1 if step > 0 else 0
        self.action_show_tab(TABS[(at + step) % len(TABS)])

    async def action_what_if(self) -> None:
        """Open the what-if panel; pressed in it, close it."""
        if self.tab == WHAT_IF:
            self.action_show_tab(TABS[0])
            self.turn_list.focus()
            return
        switcher = self.screen_stack[0].query_one("#tabs", ContentSwitcher)
        if not switcher.query(f"#{WHAT_IF}"):
            # made when it is first wanted: the replay's rules take their time to be loaded
            from ckptlog.tui.whatif import WhatIfPane

            await switcher.add_content(WhatIfPane(self.glyphs), id=WHAT_IF)
            self._hold_replay()
        self.action_show_tab(WHAT_IF)
        self.what_if.focus()

    def _hold_replay(self) -> None:
        """The what-if panel, if there is one, takes the last picture's timeline."""
        if self.screen_stack[0].query(f"#{WHAT_IF}"):
            self.what_if.hold(*self._replay)

    def action_next_order(self) -> None:
        self.turn_list.next_order()

    def action_zoom(self, step: int) -> None:
        if self.map.set_zoom(step):
            self._title_map()

    def action_next_scale(self) -> None:
        self.map.next_scale()
        self._title_map()

    def action_maximize(self) -> None:
        screen = self.screen
        if screen.maximized is not None:
            screen.minimize()
            return
        pane = self.focused
        details = self.screen_stack[0].query_one("#details")
        if pane is not None and details in pane.ancestors:
            pane = details
        if pane is not None:
            screen.maximize(pane, container=False)

    def watch_theme(self) -> None:
        """The drawn widgets hold no styles of their own that would tell them."""
        for widget in self.query(Inked) if self.screen_stack else ():
            widget.refresh()

    def action_dark(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
