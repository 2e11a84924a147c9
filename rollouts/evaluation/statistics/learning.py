from __future__ import annotations

from dataclasses import dataclass, field

from rollouts.evaluation.statistics.grid import Histogram
from rollouts.evaluation.statistics.reference import Reference, reference_from


@dataclass(frozen=True, slots=True)
class Learning:
    values: Histogram = field(default_factory=dict)
    reference: Reference | None = None


def learned(learning: Learning, target: Histogram, baseline: Histogram) -> Learning:
    if learning.reference is not None or not (target or baseline):
        return learning
    values = dict(learning.values)
    for histogram in (target, baseline):
        for number, count in histogram.items():
            values[number] = values.get(number, 0) + count
    return Learning(values, reference_from(values))
