"""Weighted rendezvous hashing: a key keeps its first choice as long as that choice is there, whatever joins or leaves.

The score of a choice is exponentially distributed with the choice's weight as its rate, so that the smallest of several
scores belongs to each choice in proportion to its weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b

_SPAN = 2.0**64


def ranked(key: str, weights: Mapping[str, float]) -> list[str]:
    """Returns the names, the choice of the key first. Over many keys each name is first in proportion to its weight,
    and without it the others are in proportion to theirs; names of weight 0 come last, in the order of the mapping."""
    scores = {name: score(key, name, weight) for name, weight in weights.items()}
    return sorted(weights, key=scores.__getitem__)


def score(key: str, name: str, weight: float) -> float:
    """Returns the score of a choice for the key, infinite for the weight 0: the choice with the least is the first."""
    if weight <= 0:
        return math.inf
    digest = blake2b(f"{key}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # The half keeps the draw off both 0 and 1.
    draw = (int.from_bytes(digest, "big") + 0.5) / _SPAN
    return -math.log(draw) / weight
