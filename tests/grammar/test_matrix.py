"""Every rule against every example: an example is accepted by its own rule, as its own wording, and by no other."""

from __future__ import annotations

import pytest
from lark.exceptions import UnexpectedInput

from ckptlog.grammar import Kind, MessageGrammar, messages

KINDS = list(messages().kinds.values())


@pytest.fixture(scope="module")
def grammar() -> MessageGrammar:
    return messages()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_examples_are_of_their_wording(grammar: MessageGrammar, kind: Kind) -> None:
    for wording in kind.wordings:
        for example in wording.examples:
            message = grammar.parser(kind).parse(kind, example)
            assert message.wording == wording.name
            if not wording.fork:
                assert (message.build_min, message.build_max) == (wording.build_min, wording.build_max)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_examples_are_found_by_their_heads(grammar: MessageGrammar, kind: Kind) -> None:
    for wording in kind.wordings:
        for example in wording.examples:
            for text in (example, " ".join(example.split())):  # pasted logs have lost the padding
                assert any(head in text for head in kind.heads) or not kind.heads
                for family in kind.families:
                    found = grammar.parse(text, family)
                    assert (found.kind, found.wording) == (kind.name, wording.name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_other_rule_accepts_them(grammar: MessageGrammar, kind: Kind) -> None:
    """Of the rules that may meet it at all: those of its own families."""
    others = [other for other in KINDS if other is not kind and set(other.families) & set(kind.families)]
    for wording in kind.wordings:
        for example in wording.examples:
            for other in others:
                with pytest.raises(UnexpectedInput):
                    grammar.parser(other).lark.parse(example, start=other.name)


def test_kinds_without_heads_have_no_letters(grammar: MessageGrammar) -> None:
    headless = [kind for kind in KINDS if not kind.heads]
    assert {kind.name for kind in headless} == {"token_ids", "timing_head"}
    for kind in headless:
        for wording in kind.wordings:
            assert not any(character.isalpha() for example in wording.examples for character in example)
