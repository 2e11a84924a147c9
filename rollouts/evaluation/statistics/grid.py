"""The grid of bins on which latencies and costs are counted, so that a minute fits into a few numbers.

Bin 0 is the value 0; bin k ≥ 1 is 1.25^((k-1)/10) units, milliseconds or 10^-10 US dollars. Neighbours differ by 2.3 %,
and a factor of 1.25, the margin of the tests, is exactly ten bins. A test may use any function of a value, so the grid
costs precision and no validity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

Histogram = Mapping[int, int]
"""The number of requests by bin."""
WeightedHistogram = Mapping[int, float]

BINS_PER_MARGIN = 10
LOG_RATIO = math.log(1.25) / BINS_PER_MARGIN


def bin_of(value: float) -> int:
    """A value above 0 and below one unit counts as one unit."""
    return 0 if value <= 0 else 1 + math.floor(math.log(max(value, 1.0)) / LOG_RATIO + 0.5)


def bins_of_factor(factor: float) -> int:
    """Returns how many bins lie between a value and so many times the value, rounded down: 10 for 1.25."""
    return math.floor(math.log(factor) / LOG_RATIO + 1e-9)


@lru_cache(maxsize=4096)
def value_of(bin_number: int) -> float:
    return 0.0 if bin_number <= 0 else math.exp((bin_number - 1) * LOG_RATIO)


def quantile(histogram: WeightedHistogram, share: float) -> float | None:
    """Returns the value below which `share` of the weight lies, interpolated within its bin; None without any
    weight.
    """
    total = math.fsum(histogram.values())
    if total <= 0:
        return None
    rank, before = share * total, 0.0
    last = 0
    for bin_number in sorted(histogram):
        weight = histogram[bin_number]
        last = bin_number
        if before + weight >= rank and weight > 0:
            within = max(0.0, (rank - before) / weight)
            return value_of(bin_number) * math.exp((within - 0.5) * LOG_RATIO)
        before += weight
    return value_of(last)
