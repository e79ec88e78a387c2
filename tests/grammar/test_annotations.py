"""The `//@` comments: what they give, and how a grammar file that contradicts itself is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptlog.grammar import GrammarError, LevelRange, MessageGrammar, messages
from ckptlog.grammar.annotations import read_kinds
from ckptlog.grammar.files import message_files

GOOD = """\
//@ kind greeting parsed slot srv
//@ head hello
//@ head "hi "
//@ wording hello W 6629..8155 I 8000..9829 T 9829..
//@ example hello 7
//@ wording hi fork I 0..
//@ example hi 7
greeting: "hello" n -> hello
        | "hi" n -> hi
n: INT
INT: /[0-9]+/
WS: " "
%ignore WS
"""


def written(tmp_path: Path, text: str, name: str = "greetings.lark") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_kind_is_read_and_parses(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    (kind,) = read_kinds(path)
    assert (kind.name, kind.treatment, kind.families) == ("greeting", "parsed", ("slot", "srv"))
    assert kind.heads == ("hello", "hi ")
    hello = kind.wording("hello")
    assert hello.levels == (
        LevelRange("W", 6629, 8155),
        LevelRange("I", 8000, 9829),
        LevelRange("T", 9829, None),
    )
    assert (hello.build_min, hello.build_max) == (6629, None)
    assert hello.levels_at(8100) == ("W", "I")
    assert hello.levels_at(11549) == ("T",)
    assert hello.levels_at(1) == ()
    assert kind.wording("hi").fork
    grammar = MessageGrammar((path,))
    assert grammar.parse("hello 42", "srv").fields["n"].text == "42"
    assert grammar.parse("hi 42", "slot").wording == "hi"


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("//@ kind greeting parsed slot srv", "//@ kind greeting perhaps slot", "greetings.lark:1: kind 'greeting' needs a treatment"),
        ("//@ kind greeting parsed slot srv", "//@ kind greeting parsed solt", "needs families out of"),
        ("//@ kind greeting parsed slot srv", "//@ kind greeting parsed", "needs families out of"),
        ("//@ kind greeting parsed slot srv\n", "", "greetings.lark:1: 'head' before the first kind"),
        ("//@ head hello", '//@ head "  "', "greetings.lark:2: an empty head"),
        ("W 6629..8155", "X 6629..8155", "X 6629..8155 is not a level and its builds"),
        ("W 6629..8155", "W 6629-8155", "is not a level and its builds"),
        (" W 6629..8155 I 8000..9829 T 9829..", "", "needs pairs of a level and its builds"),
        ("T 9829..", "T", "needs pairs of a level and its builds"),
        ("//@ example hello 7\n", "", "wording 'hello' of greeting has no example"),
        ("wording hi fork", "wording hello fork", "two wordings of one name"),
        ("//@ example hi 7", "//@ sample hi 7", "unknown annotation 'sample'"),
    ],
)  # fmt: skip
def test_a_contradiction_is_told_with_its_line(tmp_path: Path, good: str, bad: str, said: str) -> None:
    assert good in GOOD
    with pytest.raises(GrammarError) as caught:
        read_kinds(written(tmp_path, GOOD.replace(good, bad, 1)))
    assert said in str(caught.value)


def test_two_files_may_not_share_a_kind(tmp_path: Path) -> None:
    first, second = written(tmp_path, GOOD), written(tmp_path, GOOD, "others.lark")
    with pytest.raises(GrammarError, match="stands in greetings too"):
        MessageGrammar((first, second))


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: blocked / name)
    assert MessageGrammar((written(tmp_path, GOOD),)).parse("hello 1").kind == "greeting"


def test_a_damaged_cache_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    path = written(tmp_path, GOOD)
    MessageGrammar((path,)).parse("hello 1")
    (tables,) = (tmp_path / "ckptlog" / "grammars").iterdir()
    tables.write_bytes(tables.read_bytes()[:100])
    assert MessageGrammar((path,)).parse("hello 1").kind == "greeting"


def test_every_rule_of_the_shipped_files_has_its_annotations() -> None:
    """The rules that are kinds and the kinds that are annotated are the same, wording by wording."""
    files = {path.stem for path in message_files()} - {"tokens"}
    assert {kind.file for kind in messages().kinds.values()} == files
    for kind in messages().kinds.values():
        rules = [rule for rule in messages().parser(kind).lark.rules if rule.origin.name == kind.name]
        assert {str(rule.alias or kind.name) for rule in rules} == {wording.name for wording in kind.wordings}
