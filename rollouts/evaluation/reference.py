"""What is usual for a config: the constants of the latency and cost tests, fixed before they are used."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.grid import Histogram, value_of

MIN_VALUES = 100
"""A reference needs so many values. What the day before the start lacks is learned from the first minutes."""

_MIN_DEVIATION = 0.05  # of the mean: constant values would make every difference infinite


@dataclass(frozen=True, slots=True)
class Reference:
    """Mean and standard deviation of the values cut at `cap`, their 99th percentile; `slow_bin` holds the 95th."""

    mean: float
    deviation: float
    cap: float
    slow_bin: int


def reference_from(histogram: Histogram) -> Reference | None:
    """None while there are too few values. Valid for any histogram that the judged minutes had no part in."""
    count = sum(histogram.values())
    if count < MIN_VALUES:
        return None
    # A model that costs nothing has a cap of one unit, so that a target that costs something still stands out.
    cap = max(value_of(_bin_at(histogram, 0.99 * count)), 1.0)
    values = [(min(value_of(number), cap), weight) for number, weight in histogram.items()]
    mean = math.fsum(value * weight for value, weight in values) / count
    variance = math.fsum((value - mean) ** 2 * weight for value, weight in values) / count
    deviation = max(math.sqrt(variance), _MIN_DEVIATION * mean, _MIN_DEVIATION)
    return Reference(mean, deviation, cap, _bin_at(histogram, 0.95 * count))


def _bin_at(histogram: Histogram, rank: float) -> int:
    before = 0
    for number in sorted(histogram):
        before += histogram[number]
        if before >= rank:
            return number
    return max(histogram)
