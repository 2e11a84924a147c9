"""Latency and cost among requests that are alike in whether the provider read their prompt from its cache."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation import ArmCounts, Metric, Status, assess
from rollouts.evaluation.factors import judged
from rollouts.evaluation.prompt_cache import separates
from rollouts.evaluation.state import ArmTotals
from rollouts.evaluation.statistics.grid import bin_of
from tests.rollouts.evaluation.minutes import after_minutes, arm, start

EXACT = 1e-9
COMPARED = (Metric.LATENCY_P95, Metric.LATENCY_AVERAGE, Metric.COST)


def counted(others: Iterable[int], read: Iterable[int]) -> ArmCounts:
    """Returns an arm whose requests have these bins of latency and of cost."""
    reading, everything = Counter(read), Counter(others) + Counter(read)
    return ArmCounts(latency=everything, cost=everything, latency_read=reading, cost_read=reading)


@given(
    others=st.lists(st.integers(200, 400), min_size=1, max_size=5),
    read=st.lists(st.integers(150, 350), min_size=1, max_size=5),
    data=st.data(),
)
def test_judged__every_choice_of_target_requests_among_alike_ones__has_mean_at_most_1(
    others: list[int], read: list[int], data: st.DataObject
) -> None:
    parts = (others, read)
    drawn = [data.draw(st.integers(0, len(part))) for part in parts]
    begun = start()
    found = []
    for chosen in product(*(combinations(range(len(part)), number) for part, number in zip(parts, drawn, strict=True))):
        target, baseline = (
            counted(
                *(
                    [value for place, value in enumerate(part) if (place in mine) is own]
                    for part, mine in zip(parts, chosen, strict=True)
                )
            )
            for own in (True, False)
        )
        found.append(judged(begun, target, baseline, ArmTotals(), separate=True))

    for metric in COMPARED:
        before = begun.metrics[metric].worse
        for tilt, first in enumerate(before):
            factors = [math.exp(metrics[metric].worse[tilt] - first) for metrics in found]
            assert math.fsum(factors) / len(factors) < 1 + EXACT


def reading(usual: int, cold: int = 0) -> ArmCounts:
    """Returns an arm whose prompt was in the cache `usual` times, and not there `cold` times. Then a request lasts 1.8
    times as long and costs three times as much."""
    one = arm(usual + cold, ms=[500] * usual + [900] * cold, usd=["0.001"] * usual + ["0.003"] * cold)
    return replace(one, latency_read={bin_of(500): usual}, cost_read={bin_of(1e7): usual})


def failing(target: ArmCounts, baseline: ArmCounts, weight: int) -> set[Metric]:
    found = assess(after_minutes(start(weights=(weight, 100)), 60, target, baseline, weight=weight)).metrics
    return {metric for metric, one in found.items() if one.status is Status.FAILING}


@pytest.mark.parametrize(("weight", "fails"), [(10, False), (49, False), (50, True)])
def test_assess__only_the_target_lacks_the_cache__fails_from_50_percent_on(weight: int, fails: bool) -> None:
    found = failing(reading(0, cold=10), reading(90), weight)

    assert ({Metric.LATENCY_AVERAGE, Metric.COST} <= found, bool(found)) == (fails, fails)


@pytest.mark.parametrize(
    ("sticky", "formula", "expected"), [(False, 4, True), (True, 4, False), (False, 3, False), (True, 3, False)]
)
def test_separates__sticky_allocation_or_formula_3__never(sticky: bool, formula: int, expected: bool) -> None:
    assert separates(10, sticky=sticky, formula=formula) is expected


def test_assess__the_same_mixture_of_reads_and_others__fails_nothing() -> None:
    assert not failing(reading(5, cold=5), reading(89, cold=1), 10)


def test_assess__slower_among_alike_requests__fails() -> None:
    slower = replace(
        reading(0, cold=10), latency={bin_of(1000): 5, bin_of(1800): 5}, latency_read={bin_of(1000): 5}, cost={}
    )

    assert Metric.LATENCY_AVERAGE in failing(slower, reading(80, cold=10), 10)


def test_assess__a_provider_that_names_no_reads__is_compared_as_a_whole() -> None:
    target, baseline = (replace(one, latency_read={}, cost_read={}) for one in (reading(0, cold=10), reading(90)))

    assert {Metric.LATENCY_AVERAGE, Metric.COST} <= failing(target, baseline, 10)
