from __future__ import annotations

import math
from collections.abc import Callable


def limits(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Returns Clopper and Pearson's limits: a rate outside of them gives such a count with a chance of at most half of
    1 - confidence."""
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else _solve(lambda rate: 1 - _at_most(successes - 1, trials, rate) - tail)
    high = 1.0 if successes == trials else _solve(lambda rate: tail - _at_most(successes, trials, rate))
    return low, high


def _at_most(max_count: int, trials: int, rate: float) -> float:
    if rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0 if max_count < trials else 1.0
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(count + 1)
            - math.lgamma(trials - count + 1)
            + count * math.log(rate)
            + (trials - count) * math.log1p(-rate)
        )
        for count in range(max_count + 1)
    )


def _solve(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
