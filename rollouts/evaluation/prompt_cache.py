"""Latency and cost are compared among requests that are alike in whether the provider read their prompt from its cache.

A target with little traffic rarely finds its prompt there, above all if the provider has many machines with a cache
each, and is slower and dearer for it. From 50 % on both arms find their prompts alike, unless the version is the cause:
then all requests are compared with each other. With sticky allocation they always are, because a user's requests count
together.
"""

from __future__ import annotations

from rollouts.evaluation.counts import ArmCounts
from rollouts.evaluation.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.statistics.grid import Histogram

Arms = tuple[Histogram, Histogram]
"""The values of the target and of the baseline."""


def separates(weight: int, *, sticky: bool, formula: int) -> bool:
    return weight < CONTROLLED_WEIGHT and not sticky and formula > 3


def latencies(target: ArmCounts, baseline: ArmCounts, *, separate: bool) -> list[Arms]:
    return _strata((target.latency, baseline.latency), (target.latency_read, baseline.latency_read), separate)


def costs(target: ArmCounts, baseline: ArmCounts, *, separate: bool) -> list[Arms]:
    return _strata((target.cost, baseline.cost), (target.cost_read, baseline.cost_read), separate)


def _strata(arms: Arms, read: Arms, separate: bool) -> list[Arms]:
    if not separate or not any(read):
        return [arms]
    target, baseline = (_without(one, part) for one, part in zip(arms, read, strict=True))
    return [(target, baseline), read]


def _without(histogram: Histogram, part: Histogram) -> Histogram:
    return {number: left for number, count in histogram.items() if (left := count - part.get(number, 0)) > 0}
