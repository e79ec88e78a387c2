"""The keys of the app: one table behind the bindings, the footer, the help and docs/tui.md."""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding


class Key(NamedTuple):
    """``keys`` as Textual names them, the action, what it does, and its place in the help."""

    keys: str
    action: str
    about: str
    group: str
    #: the short word in the footer; null: not there
    footer: str | None = None


KEYS = (
    Key("right_square_bracket", "next_failed(1)", "next failed turn", "Go", "failure"),
    Key("left_square_bracket", "next_failed(-1)", "previous failed turn", "Go"),
    Key("enter", "show_log", "the raw log at the turn, or around the quoted line", "Log", "log"),
    Key("slash", "ask('search')", "search the log (text or regular expression)", "Log", "search"),
    Key("n", "search_next(1)", "next match", "Log"),
    Key("N", "search_next(-1)", "match before", "Log"),
    Key("f", "ask('filter')", "show only turns for which an expression holds", "Show", "filter"),
    Key("i", "what_if", "what-if: change flags, see what would have been cached", "Show", "what-if"),
    Key("full_stop", "step_tab(1)", "next tab of the details", "Go", "tab"),
    Key("comma", "step_tab(-1)", "tab before", "Go"),
    Key("c", "copy_finding", "copy the finding as Markdown", "Take away", "copy"),
    Key("C", "copy_flags(0)", "copy the first fix's flags", "Take away"),
    Key("question_mark", "help", "this help", "Help", "help"),
    Key("q", "leave", "quit", "Help", "quit"),
    Key("s", "step_scope(1)", "only one slot: the next one, then all again", "Show", "slot"),
    Key("S", "step_scope(-1)", "the same, backwards", "Show"),
    Key("z", "zoom(-1)", "zoom in on the map", "Map", "zoom"),
    Key("Z", "zoom(1)", "zoom out: a column stands for more turns", "Map"),
    Key("w", "summary", "the whole report, as ckptlog diagnose prints it", "Show", "report"),
    Key("g", "ask('goto')", "go to a line (2011), a task (t881) or a turn (#40)", "Go", "go to"),
    Key("o", "only", "in the log: all lines, only this slot's, only this task's", "Log"),
    Key("1", "toggle_outcome('arrival-rejection')", "only refused requests", "Show"),
    Key("2", "toggle_outcome('limit-stop')", "only answers cut short by a full context", "Show"),
    Key("3", "toggle_outcome('context-shift')", "only context shifts", "Show"),
    Key("4", "toggle_outcome('checkpoint-reprefill')", "only re-prefills", "Show"),
    Key("0", "clear_filters", "all turns again", "Show"),
    Key("O", "next_order", "sort the list by the next column", "Show"),
    Key("y", "next_scale", "scale of the map: whole context, used part, logarithmic", "Map"),
    Key("e", "ask('export')", "write what is shown to a file (.md, .json, .txt, .svg)", "Take away"),
    Key("F", "stick", "in a growing log: stay at the end", "Go"),
    Key("m", "maximize", "one pane over all of the screen, and back", "Show"),
    Key("d", "dark", "dark or light", "Show"),
)

#: keys of the panes themselves, for the help
PANE_KEYS = (
    ("arrows, hjkl", "turn by turn, line by line; on the map up and down is another slot", "Go"),
    ("home end, G", "first, last", "Go"),
    ("tab, shift+tab", "another pane", "Go"),
    ("escape", "back to the list; stops reading a long log", "Go"),
    ("ctrl+p", "all commands by name", "Help"),
    (
        "mouse",
        "click a turn, a column, a tab, a heading, a flag; hover the map; the wheel; ctrl+wheel zooms",
        "Help",
    ),
)

_SHOWN_AS = {
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "question_mark": "?",
}


def shown(keys: str) -> str:
    """A key as it stands on the keyboard."""
    return _SHOWN_AS.get(keys, keys)


def bindings() -> list[Binding]:
    """The table as the app's bindings."""
    return [
        Binding(
            key.keys,
            key.action,
            key.footer or key.about,
            show=key.footer is not None,
            key_display=shown(key.keys),
        )
        for key in KEYS
    ]
