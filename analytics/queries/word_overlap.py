"""How many words two texts have in common. Pure."""

from __future__ import annotations

import re
from collections import Counter

from analytics.clickhouse.text_index import UNSPACED

_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
# In scripts without spaces between words each character is a word.
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")


def word_overlap(first: str, second: str) -> float:
    """Returns the share of the words of both texts that the other one has too, from 0 to 1, without regard to their
    order or letter case. A word that occurs several times counts as often. A text without words has nothing in common
    with any."""
    words, others = _words(first), _words(second)
    count = words.total() + others.total()
    return 2 * (words & others).total() / count if count else 0.0


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))
