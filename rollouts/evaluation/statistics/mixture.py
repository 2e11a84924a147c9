"""A mixture of e-processes, one begun at each stage, so that a good past does not protect a target that turns bad late.

The evidence of a metric is a weighted mean of processes, one begun at each stage that has a control. Each is 1 before
it begins and an e-process afterwards, so the mean is an e-process, too (Shin, Ramdas and Rinaldo, arXiv 2203.03532).
From its beginning every process takes the same factors, so one sum by tilt stands for all that have begun.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

RATES_FIRST_SHARE, VALUES_FIRST_SHARE = 0.5, 0.8
"""The weight of the process that begins with the rollout: for metrics that count requests, and for metrics that compare
latencies and costs. Answers begin to fail late, while a slower or more expensive version is so from its first request
on.

The later processes share the rest in proportion to their number: more traffic reaches the later stages, and a process
that begins there has less time to make up for a small weight.
"""


@lru_cache(maxsize=256)
def beginnings(weights: tuple[int, ...], first_share: float) -> tuple[float, ...]:
    later = [number if weight < 100 else 0 for number, weight in enumerate(weights)]
    whole = sum(later)
    if not whole:
        return (1.0, *(0.0 for _ in weights[1:]))
    return (first_share, *((1 - first_share) * number / whole for number in later[1:]))


def beginning(weights: tuple[int, ...], first_share: float, *, after: int, until: int | None = None) -> float:
    """Returns the weight of the processes that begin after a stage, up to the stage `until` or the last one. The first
    stage's begins before it."""
    return math.fsum(beginnings(weights, first_share)[max(after, 1) : until])


def begun(logs: tuple[float, ...], weight: float) -> tuple[float, ...]:
    return tuple(_log_added(log, math.log(weight)) for log in logs) if weight else logs


def evidence(logs: Sequence[float], waiting: float) -> float:
    highest = max(logs)
    if waiting:
        highest = max(highest, math.log(waiting))
    mean = math.fsum([math.exp(log - highest) for log in logs]) / len(logs)
    return highest + math.log(mean + waiting * math.exp(-highest) if waiting else mean)


def _log_added(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high))
