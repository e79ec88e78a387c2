"""A small byte-level BPE vocabulary, trained on the scenarios' own words.

llama.cpp tokenizes it with its GPT-2 style tokenizer. Any byte string can be encoded (the 256
bytes are tokens), and the common words of :mod:`tests.live.texts` are one token each.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

#: Special tokens, in the order in which they follow the ordinary ones.
END_OF_TEXT, BOS, IM_START, IM_END, THINK, END_THINK = SPECIAL = (
    "<|endoftext|>", "<|bos|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>",
)  # fmt: skip

#: About where llama.cpp's "qwen2" pre-tokenizer cuts; merges never cross such a cut.
_PIECE = re.compile(r" ?[A-Za-z]+|\d| ?[^\sA-Za-z\d]+|\s+")


def _byte_letters() -> dict[int, str]:
    """GPT-2's way to write each byte as a printable letter (fixed by the GGUF token format)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in printable}
    for n, b in enumerate(b for b in range(256) if b not in letters):
        letters[b] = chr(256 + n)
    return letters


LETTERS = _byte_letters()


def spell(text: str) -> str:
    """``text`` as it is written in the vocabulary."""
    return "".join(LETTERS[b] for b in text.encode())


@dataclass(frozen=True)
class Vocabulary:
    """Tokens (specials last) and the merges, best first, as ``"left right"``."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]

    def id(self, text: str) -> int:
        """The id of ``text`` as one token; KeyError if it is more than one."""
        return self._ids[text if text in SPECIAL else spell(text)]

    @property
    def _ids(self) -> dict[str, int]:
        return {t: i for i, t in enumerate(self.tokens)}


def train(text: str, whole_words: tuple[str, ...], n_merges: int = 1500) -> Vocabulary:
    """Byte-pair encoding of ``text``; ``whole_words`` are certain to become one token each."""
    counts = Counter(_PIECE.findall(text))
    for word in whole_words:
        counts[word] += 10_000
    words = [(list(spell(word)), n) for word, n in sorted(counts.items())]
    merges: list[str] = []
    while len(merges) < n_merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, n in words:
            for pair in pairwise(parts):
                pairs[pair] += n
        if not pairs:
            break
        left, right = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(f"{left} {right}")
        for parts, _ in words:
            _merge(parts, left, right)
    ordinary = dict.fromkeys([*LETTERS.values(), *(m.replace(" ", "") for m in merges)])
    return Vocabulary((*ordinary, *SPECIAL), tuple(merges))


def _merge(parts: list[str], left: str, right: str) -> None:
    i = 0
    while i + 1 < len(parts):
        if parts[i] == left and parts[i + 1] == right:
            parts[i : i + 2] = [left + right]
        i += 1
