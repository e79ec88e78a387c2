"""Every log statement of the 114 builds that were read is parsed, or ignored on purpose.

`tests/data/messages.tsv`: area, first and last build, levels with the functions, template.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from ckptlog.grammar import Refused, messages

TABLE = Path(__file__).parent.parent / "data" / "messages.tsv"
PLACEHOLDER = re.compile(r"\{(int|float|str|ptr|char)(?::\d+)?\}")
SEEN = re.compile(r"b(\d+):(error|warn|info|trace|debug|cont):\S")
LEVELS = {"error": "E", "warn": "W", "info": "I", "trace": "T", "debug": "D", "cont": "I"}
PLAUSIBLE = {"int": "7", "float": "0.500", "str": "x", "ptr": "0x55d1c0ffee00", "char": "*"}

# {str} stands for any text in the table; where the server only ever prints some texts, one of those
KNOWN_TEXTS = {
    "{str}, i = {int}, n_batch": "Compute error., i = {int}, n_batch",
    "{str} i = {int}, n_batch": "Compute error. i = {int}, n_batch",
    "{str} off = {int}, n_batch": "Compute error. off = {int}, n_batch",
    "size limit: {str}": "size limit: no limit",
    "({str})": "(0.714, 0.429)",
    "done request: {str}": "done request: GET",
    "request: {str} {str}": "request: GET {str}",
    "{int:8} ... (token ids of the old window)": "     506    7606",
    "{int:8} ... (token ids of the new window)": "     506    9000",
    "{tokens before} | {tokens after}   (free text, may hold newlines and bars)": "a | b",
}

# what the table says a message must not be known as only by its head
MUST_BE_PARSED = {
    "created context checkpoint", "restored context checkpoint", "erased invalidated", "erasing old", "SWA checkpoint",
    "superseding", "too close", "new prompt", "memory_seq_rm", "selected slot", "processing task", "stop processing",
    "slot context shift", "forcing full", "cancel task", "prompt eval time", "total time", "found better prompt",
    "cache state", "saving prompt", "n_past was set",
}  # fmt: skip


class Statement(NamedTuple):
    area: str
    first: int
    last: int
    levels: tuple[tuple[int, str], ...]
    """From which build on it was seen at which level."""
    template: str

    @property
    def lines(self) -> list[str]:
        """The physical lines of one such message; the table has the old timing block without its newlines."""
        text = self.template.replace('\\"', '"')
        for template, known in KNOWN_TEXTS.items():
            text = text.replace(template, known)
        # the table has lost the function's name in front of these
        text = re.sub(r"^ (?! |- )", "init: ", text)
        text = PLACEHOLDER.sub(lambda match: PLAUSIBLE[match[1]], text)
        return re.split(r"(?<=second\))(?= +)", text)


def statements() -> list[Statement]:
    rows = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            area, first, last, seen, template = line.split("\t")
            levels = tuple((int(build), LEVELS[word]) for build, word in SEEN.findall(seen))
            rows.append(Statement(area, int(first[1:]), int(last[1:]), levels, template))
    return rows


def is_continuation(statement: Statement) -> bool:
    """A row of nothing but placeholders continues another record and must not become a rule."""
    return not PLACEHOLDER.sub("", statement.template).strip(" []")


def test_the_table_is_whole() -> None:
    assert len(statements()) > 550
    assert sum(map(is_continuation, statements())) == 5


@pytest.mark.parametrize("statement", statements(), ids=lambda s: f"{s.area}-{s.template[:60]}")
def test_a_statement_is_parsed_or_ignored_on_purpose(statement: Statement) -> None:
    if is_continuation(statement):
        return
    for line in statement.lines:
        message = messages().parse(line.rstrip(), statement.area)
        kind = messages().kinds[message.kind]
        if any(words in statement.template for words in MUST_BE_PARSED) and statement.area != "que":
            assert kind.treatment == "parsed"
        # its builds are bracketed around those in which it was seen
        assert not kind.wording(message.wording).fork
        assert message.build_min <= statement.first
        assert message.build_max is None or statement.last <= message.build_max
        for build, level in statement.levels:
            assert level in kind.wording(message.wording).levels_at(build)


def test_a_statement_with_another_ending_is_refused() -> None:
    """Drift must show: no rule of a message without free text swallows what it does not know."""
    swallowed = []
    for statement in statements():
        if "str" in statement.template or is_continuation(statement) or "free text" in statement.template:
            continue
        for line in statement.lines:
            try:
                messages().parse(line.rstrip() + " zzz", statement.area)
            except Refused:
                continue
            swallowed.append(line)
    assert swallowed == []
