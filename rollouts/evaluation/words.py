"""Figures and durations in words for people."""

from __future__ import annotations

import math

_MAX_SHOWN = math.log(1e9)


def odds(evidence: float) -> str:
    """Returns the logarithm of an e-value in words."""
    return "over 1e9" if evidence > _MAX_SHOWN else f"{math.exp(evidence):.3g}"


def in_words(minutes: float) -> str:
    """Returns a duration in words: whole minutes, then hours, then days."""
    for unit, size, until in (("minute", 1, 90), ("hour", 60, 48 * 60)):
        if minutes < until:
            number = max(1, math.ceil(minutes / size))
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{math.ceil(minutes / (24 * 60))} days"
