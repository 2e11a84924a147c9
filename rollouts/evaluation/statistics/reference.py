"""The usual latency or cost of a config: the constants of the tests, fixed before they are used."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollouts.evaluation.statistics.grid import Histogram, value_of

MIN_VALUES = 100
"""The number of values that a reference needs. Where the day before the start lacks them, the first minutes supply
them."""

_MIN_DEVIATION = 0.05  # This share of the mean keeps constant values from making every difference infinite.


@dataclass(frozen=True, slots=True)
class Reference:
    """Mean and standard deviation of the values cut at `cap`, their 99th percentile; `slow_bin` is the bin of their
    95th."""

    mean: float
    deviation: float
    cap: float
    slow_bin: int


def reference_from(histogram: Histogram) -> Reference | None:
    """Returns None while there are too few values. Valid for any histogram without values of the judged minutes."""
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
