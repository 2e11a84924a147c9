"""The e-BH procedure, which names those of many hypotheses that are false.

Of all hypotheses that it names, at most a share of `level` is true on average, however the e-values depend on each
other (Wang and Ramdas 2022, arXiv 2009.02824). For e-processes looked at together, that holds at any time at which one
stops looking: where all are true, none is ever named with a probability of at least 1 - `level`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def e_bh(logs: Sequence[float], *, level: float, hypotheses: int) -> list[int]:
    """Returns the places of the named hypotheses, most evidence first. `logs` are logarithms of e-values. `hypotheses`
    is how many there may be in all: those not in `logs` count as 1."""
    order = sorted(range(len(logs)), key=lambda place: (-logs[place], place))
    named = 0
    for rank, place in enumerate(order, start=1):
        if logs[place] >= needed(rank, level=level, hypotheses=hypotheses):
            named = rank
    return order[:named]


def needed(rank: int, *, level: float, hypotheses: int) -> float:
    return math.log(hypotheses / (level * rank))
