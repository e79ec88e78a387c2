"""Hostile text stays text."""

from __future__ import annotations

import json
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptlog.report.safe import quote, safe_json, safe_text, shorten

_ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\e[31mred"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x00\x07\x7f", r"\x00\x07\x7f"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202eabc\u202c", r"\u202eabc\u202c"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("\udcff.log", r"\xff.log"),
        ("日本語 🦙 é", "日本語 🦙 é"),
        ("[bold]no markup[/]", "[bold]no markup[/]"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert safe_text(text) == shown


@given(_ANY_TEXT)
def test_safe_text_holds_nothing_that_steers(text: str) -> None:
    shown = safe_text(text)
    assert "\x1b" not in shown
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)
    assert not any(
        unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for char in shown
    )
    shown.encode()  # no lone surrogate


@given(_ANY_TEXT)
def test_safe_text_is_stable(text: str) -> None:
    assert safe_text(safe_text(text)) == safe_text(text)


@given(st.text(max_size=400), st.integers(1, 120), st.none() | st.integers(0, 400))
def test_shorten_fits_and_keeps_what_matters(text: str, width: int, around: int | None) -> None:
    if around is not None and around >= len(text):
        around = None
    short = shorten(text, width, around)
    assert len(short) <= width
    if len(text) <= width:
        assert short == text
    elif around is not None and width > 12:
        assert text[around] in short


def test_the_middle_of_a_long_line_is_shown() -> None:
    line = "a" * 1000 + " | here" + "b" * 1000
    assert " | here" in shorten(line, 60, around=1001)
    assert shorten(line, 60, around=1001).startswith("...a")
    assert shorten("x" * 50 + "end", 20, around=52) == "..." + "x" * 14 + "end"


def test_a_line_of_megabytes_is_cut_before_it_is_looked_at() -> None:
    assert quote("\x1b" * 10_000_000, 80) == r"\e" * 38 + "\\..."


@given(st.text(max_size=300), st.integers(12, 120), st.none() | st.integers(0, 299))
def test_a_quote_fits_and_shows_what_matters(text: str, width: int, around: int | None) -> None:
    if around is not None and around >= len(text):
        around = None
    shown = quote(text, width, around)
    assert len(shown) <= width
    assert safe_text(shown) == shown
    if around is not None and width >= 30:
        assert safe_text(text[around]) in shown


@given(_ANY_TEXT.filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_safe_json_is_the_same_document(text: str) -> None:
    encoded = safe_json(msgspec.json.encode({"text": text}))
    assert json.loads(encoded) == {"text": text}
    decoded = encoded.decode()
    assert safe_text(decoded) == decoded, "a steering character is left in the JSON"
