"""What docs/grammar.md shows is the grammar as it is, and the wording it adds is added by its steps alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ckptlog.grammar import MessageGrammar, Refused
from ckptlog.grammar.files import message_files

ROOT = Path(__file__).parent.parent.parent
BLOCKS = re.findall(
    r"^```\n(.*?)^```$", (ROOT / "docs" / "grammar.md").read_text(encoding="utf-8"), re.S | re.M
)
RULE, LINE, ADDED = BLOCKS


def test_the_rule_shown_is_the_rule() -> None:
    assert RULE in (ROOT / "grammars" / "messages" / "checkpoints.lark").read_text(encoding="utf-8")


def test_the_wording_is_added_without_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    for path in message_files():
        shutil.copy(path, tmp_path)
    files = tuple(sorted(tmp_path.glob("*.lark")))
    with pytest.raises(Refused) as caught:
        MessageGrammar(files).parse(LINE.strip())
    assert LINE[caught.value.column :].startswith("age = 3")

    grammar = tmp_path / "checkpoints.lark"
    *annotations, alternative = ADDED.splitlines(keepends=True)
    rule_at = RULE.index("erased_old:")
    extended = RULE[:rule_at] + "".join(annotations) + RULE[rule_at:] + alternative
    text = grammar.read_text(encoding="utf-8").replace(RULE, extended)
    grammar.write_text(text.replace("\nindex: INT\n", "\nage: INT\nindex: INT\n"), encoding="utf-8")
    message = MessageGrammar(files).parse(LINE.strip())
    assert (message.kind, message.wording) == ("erased_old", "age")
    assert message.fields["age"].text == "3"
