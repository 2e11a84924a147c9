"""Figures as people read them."""

from __future__ import annotations

import math

_MOST_SHOWN = math.log(1e9)


def odds(evidence: float) -> str:
    """Of a logarithm of evidence."""
    return "over 1e9" if evidence > _MOST_SHOWN else f"{math.exp(evidence):.3g}"
