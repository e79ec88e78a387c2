"""docs/outcomes.md, written from the rules themselves: ``python -m ckptlog.verdict.docs docs/outcomes.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from ckptlog.replay.loss import HARMLESS_SHARE, HARMLESS_TOKENS, HARMLESS_TOKENS_OF_LONG, NOTHING_CACHED
from ckptlog.verdict.catalogue import Entry, entries
from ckptlog.verdict.outcomes import NEAR_MISS

INTRO = f"""# Outcomes, causes, triggers, fixes, words

<!-- Written by `python -m ckptlog.verdict.docs docs/outcomes.md` from the texts beside the rules; do not edit. -->

The words of a report, and what each means. `ckptlog explain NAME` prints the same texts.

A turn has one outcome. Where several apply, the one that harms the answer most comes first, and the others stand
in `also`: rejection, context shift, limit stop, costly re-prefill, error, cancelled, harmless re-prefill, a healthy
end.

| limit | value |
|---|---|
| a re-prefill that lost fewer tokens is harmless | {HARMLESS_TOKENS} |
| ... or fewer than this, if they are less than {HARMLESS_SHARE:.0%} of the prompt | {HARMLESS_TOKENS_OF_LONG} |
| up to so many reused tokens count as "from the beginning" (`full`) | {NOTHING_CACHED} |
| a refused prompt up to this ratio of the context is a `near-miss` | {NEAR_MISS} |
"""

SECTIONS = {
    "outcome": ("Outcomes", "What became of a turn."),
    "variant": ("Variants", "What kind of that outcome it was."),
    "cause": ("Causes", "Why the server could not resume a prompt, in the order in which the causes are tried."),
    "trigger": ("Triggers", "What the request did to the conversation that the slot held."),
    "fix": ("Fixes", "What to do."),
    "word": ("Words", "What else a report says."),
}


def outcomes_markdown() -> str:
    """The page, whole."""
    parts = [INTRO]
    found = entries()
    for kind, (title, about) in SECTIONS.items():
        parts.append(f"\n## {title}\n\n{about}\n")
        parts += [_entry(entry) for entry in found if entry.kind == kind]
    return "".join(parts)


def _entry(entry: Entry) -> str:
    text = f"\n### `{entry.name}`\n\n**{entry.title}.**\n"
    if entry.text:
        text += f"\n{_escaped(entry.text)}\n"
    if entry.example:
        text += f"\n> Example: {_escaped(entry.example).replace(chr(10), chr(10) + '> ')}\n"
    return text


def _escaped(text: str) -> str:
    """Markdown reads ``<`` as HTML and a pair of ``*`` as emphasis: neither is meant."""
    return text.replace("<", "&lt;").replace("*", "\\*")


def main(arguments: list[str]) -> int:
    """Write the page to the path given."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m ckptlog.verdict.docs docs/outcomes.md\n")
        return 2
    Path(arguments[0]).write_text(outcomes_markdown(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
