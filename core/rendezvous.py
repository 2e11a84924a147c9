"""Weighted rendezvous hashing: a key keeps its first choice while that choice exists, whatever joins or leaves.

A choice's score is exponentially distributed with the choice's weight as its rate, so each choice has the smallest
score in proportion to its weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b

_SPAN = 2.0**64


def ranked(key: str, weights: Mapping[str, float]) -> list[str]:
    """Returns the names, the key's choice first. Over many keys each name is first in proportion to its weight, and
    without it so are the others. Names of weight 0 come last, in the mapping's order."""
    scores = {name: score(key, name, weight) for name, weight in weights.items()}
    return sorted(weights, key=scores.__getitem__)


def score(key: str, name: str, weight: float) -> float:
    if weight <= 0:
        return math.inf
    digest = blake2b(f"{key}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # The half keeps the draw off both 0 and 1.
    draw = (int.from_bytes(digest, "big") + 0.5) / _SPAN
    return -math.log(draw) / weight
