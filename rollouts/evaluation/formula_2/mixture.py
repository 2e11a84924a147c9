"""Processes that begin at the stages: a target that turns bad late does not have to make up for the time before.

The evidence of a metric is a weighted mean of processes, one begun at each stage that has a control. Each is 1 before
it begins and an e-process afterwards, so the mean is one, too (Shin, Ramdas and Rinaldo, arXiv 2203.03532). From its
beginning on every process takes the same factors, so that one sum by tilt stands for all that have begun.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

FIRST_SHARE = 0.5
"""The weight of the process that begins with the rollout; the later ones share the rest."""


@lru_cache(maxsize=256)
def beginnings(weights: tuple[int, ...]) -> tuple[float, ...]:
    """The weight of the process that begins at each stage, given the stages' weights in percent."""
    later = sum(weight < 100 for weight in weights[1:])
    if not later:
        return (1.0, *(0.0 for _ in weights[1:]))
    return (FIRST_SHARE, *((1 - FIRST_SHARE) / later if weight < 100 else 0.0 for weight in weights[1:]))


def begun(logs: tuple[float, ...], weight: float) -> tuple[float, ...]:
    """The sums by tilt when another process of this weight begins, at 1."""
    return tuple(_log_added(log, math.log(weight)) for log in logs) if weight else logs


def evidence(logs: Sequence[float], waiting: float) -> float:
    """ln E: the mean over the tilts, with `waiting` the weight of what has not begun."""
    highest = max(logs)
    if waiting:
        highest = max(highest, math.log(waiting))
    mean = math.fsum([math.exp(log - highest) for log in logs]) / len(logs)
    return highest + math.log(mean + waiting * math.exp(-highest) if waiting else mean)


def _log_added(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high))
