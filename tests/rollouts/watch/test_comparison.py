"""The comparison of a target at 100 % with the baseline's last week."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import pytest

from rollouts.evaluation import Metric, Policy
from rollouts.watch.comparison import MISSES, Compared, Week, compared, subject_of
from rollouts.watch.hours import Hour, Sums

WEEK = 168
SEED = 7


def rates(shares: Iterable[float], *, first: int = 0, requests: int = 600) -> list[Hour]:
    """Returns hours with these shares, drawn."""
    draw = random.Random(SEED + first)
    found = []
    for index, share in enumerate(shares):
        events = float(sum(draw.random() < share for _ in range(requests)))
        found.append(Hour(first + index, {Metric.UNANSWERED: Sums(requests, events, events)}))
    return found


def looked(before: Sequence[Hour], since: Sequence[Hour], metric: Metric = Metric.UNANSWERED) -> Compared | None:
    week = Week.of(before, subject_of(metric, Policy()))
    return compared(week, since) if week else None


def by_day(hour: int, night: float = 0.01, day: float = 0.08) -> float:
    return day if 8 <= hour % 24 < 20 else night


def test_compared__the_same_as_before__not_worse_and_the_interval_holds_nothing() -> None:
    found = looked(rates([0.02] * WEEK), rates([0.02] * 24, first=WEEK))
    assert found is not None
    assert found.value == pytest.approx(0.02, abs=0.004)
    assert found.low < 0 < found.high
    assert not found.is_worse


def test_compared__a_fall_of_answers__worse_within_a_day() -> None:
    before = rates([0.02] * WEEK)
    since = rates([0.06] * 24, first=WEEK)
    found = [looked(before, since[:hours]) for hours in range(1, 25)]
    assert found[:2] == [None, None]
    assert all(one is not None and one.is_worse for one in found[5:])


def test_compared__only_day_against_a_week_of_day_and_night__same_hours_of_the_day() -> None:
    before = rates([by_day(hour) for hour in range(WEEK)])
    since = rates([by_day(hour) for hour in range(8, 20)], first=WEEK + 8)
    found = looked(before, since)
    assert found is not None
    assert found.before == pytest.approx(0.08, abs=0.005)
    assert not found.is_worse


def test_compared__hours_that_vary__wider_than_chance_alone() -> None:
    calm = looked(rates([0.1] * WEEK), rates([0.1] * 24, first=WEEK))
    # The shares of an hour of the day change from day to day.
    swapped = [0.02 if (hour + hour // 24) % 2 else 0.18 for hour in range(WEEK)]
    restless = looked(rates(swapped), rates([0.1] * 24, first=WEEK))
    assert calm is not None and restless is not None
    assert restless.high - restless.low > 2 * (calm.high - calm.low)


def test_compared__an_outage_since_then__widens_the_interval() -> None:
    found = looked(rates([0.02] * WEEK), rates([0.02] * 12 + [0.9] + [0.02] * 11, first=WEEK))
    assert found is not None
    assert found.value > 0.05
    assert not found.is_worse


def test_compared__requests_alike_from_hour_to_hour__the_formula_of_the_sequence() -> None:
    """Waudby-Smith et al., arXiv 2103.06476, with half the noise of the week itself added."""
    even = [Hour(hour, {Metric.UNANSWERED: Sums(100, 10.0, 10.0)}) for hour in range(WEEK + 24)]
    found = looked(even[:WEEK], even[WEEK:])
    assert found is not None
    rate = (1680 + 0.5) / 16801
    noise = rate * (1 - rate) * (1 / 2400 + 1 / 16800)
    level = -2 * math.log(2 * MISSES)
    scale = level + math.log(1 + level)
    half = math.sqrt(noise * 2 * (scale + 1) / scale * math.log(1 + math.sqrt(scale + 1) / (2 * MISSES)))
    assert found.high - found.low == pytest.approx(2 * half)
    assert found.difference == pytest.approx(0)


def test_compared__short_time_before__only_the_hours_of_the_day_that_are_known() -> None:
    before = rates([0.02] * 6, first=9)
    assert looked(before, rates([0.5] * 6, first=24 + 18)) is None
    known = rates([0.02] * 6, first=24 + 9)
    assert looked(before, [*known, *rates([0.5] * 6, first=24 + 15)]) == looked(before, known)


def test_compared__few_requests_or_one_hour__nothing() -> None:
    before = rates([0.02] * WEEK)
    assert looked(before, rates([0.9], first=WEEK, requests=99)) is None
    assert looked(rates([0.02]), rates([0.9] * 5, first=WEEK)) is None
    assert looked(before, rates([0.9] * 5, first=WEEK), Metric.CONTRACT) is None


def test_compared__difference_too_small_to_matter__not_worse() -> None:
    before = rates([0.10] * WEEK, requests=40_000)
    found = looked(before, rates([0.11] * 24, first=WEEK, requests=40_000))
    assert found is not None
    assert found.low > 0
    assert not found.is_worse


@pytest.mark.parametrize(("factor", "is_worse"), [(1.2, False), (1.6, True)])
def test_compared__cost__allowed_more_is_no_fault(factor: float, is_worse: bool) -> None:
    def hours(first: int, count: int, mean: float) -> list[Hour]:
        return [Hour(first + hour, {Metric.COST: Sums(100, 100 * mean, 101 * mean**2)}) for hour in range(count)]

    found = looked(hours(0, WEEK, 100.0), hours(WEEK, 24, 100.0 * factor), Metric.COST)
    assert found is not None
    assert found.low > 0
    assert found.is_worse is is_worse
