"""The target at 100 % against the baseline's last week: a confidence sequence of their difference, by metric and by
evaluator.

No two hours are alike: traffic, its mix and the provider's state change. So the unit is the hour, and the differences
between hours are part of the variance, from the week itself and from the hours since. See docs/rollouts.md#at-100-.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rollouts.evaluation import Metric
from rollouts.evaluation.policy import RATE_COUNT_SIZE, RATES, Policy, failing_difference
from rollouts.evaluation.quality.rules import QUALITY_SIZE
from rollouts.evaluation.statistics.intervals import TIGHTEST_AT, half_width, rate_variance
from rollouts.watch.hours import WATCHED, Hour, Sums

MISSES = 0.05 / len(WATCHED)
"""The probability that the interval of one metric ever leaves out the true difference on its lower side."""

MIN_REQUESTS, MIN_HOURS = 100, 3
"""The requests of the target, and the hours that they have to come from, before anything is compared."""

MATCHED_HOURS = 72
"""The hours that the time before has to cover, so that each hour of the day is compared with the same hour."""

_DAY = 24
_MAX_CORRELATION = 0.8
_MIN_DEVIATION = 0.05


@dataclass(frozen=True, slots=True)
class Compared:
    """`value` of the target, `before` of the baseline at the same hours of the day, and the bounds of their difference.
    `is_worse`: worse by more than chance and by enough to matter."""

    value: float
    before: float
    low: float
    high: float
    is_worse: bool

    @property
    def difference(self) -> float:
        return self.value - self.before


@dataclass(frozen=True, slots=True)
class Subject:
    """What is compared: a metric, or an evaluator's scores by what they lack to the best one.

    `sums` reads it from an hour. A rate's values are 0 and 1, and `least_events` of them must be 1. `allowed` and
    `smallest` return, by the usual value, how much more is allowed and the smallest difference worth a warning.
    `misses` is the probability that the interval ever excludes the true difference on its lower side.
    """

    name: str
    sums: Callable[[Hour], Sums | None]
    is_rate: bool
    least_events: int
    allowed: Callable[[float], float]
    smallest: Callable[[float], float]
    misses: float


def subject_of(metric: Metric, policy: Policy) -> Subject:
    return Subject(
        metric.value,
        lambda hour: hour.sums.get(metric),
        is_rate=metric in RATES or metric is Metric.LATENCY_P95,
        least_events=RATE_COUNT_SIZE if metric in RATES else 0,
        allowed=lambda usual: policy.cost_allowance * usual if metric is Metric.COST else 0.0,
        smallest=lambda usual: smallest_difference(metric, usual, policy),
        misses=MISSES,
    )


def subject_of_scores(title: str, *, of: int) -> Subject:
    return Subject(
        title,
        lambda hour: hour.losses.get(title),
        is_rate=False,
        least_events=0,
        allowed=lambda usual: 0.0,
        smallest=lambda usual: QUALITY_SIZE,
        misses=MISSES / of,
    )


def compared(week: Week, after: Sequence[Hour]) -> Compared | None:
    subject = week.subject
    since = [(hour, sums) for hour, sums in _of_subject(after, subject) if week.knows(hour)]
    number = sum(sums.requests for _, sums in since)
    if number < MIN_REQUESTS or len(since) < MIN_HOURS:
        return None
    value = sum(sums.total for _, sums in since) / number
    usual = math.fsum(sums.requests * week.mean_at(hour) for hour, sums in since) / number
    noise = week.noise(since, value - usual)
    half = half_width(noise, TIGHTEST_AT * week.noise_of_a_day / noise, subject.misses)
    difference = value - usual
    low, high = difference - half, difference + half
    is_worse = low > subject.allowed(usual) and difference >= subject.smallest(usual)
    is_worse = is_worse and sum(sums.total for _, sums in since) >= subject.least_events
    return Compared(value, usual, low, high, is_worse)


def smallest_difference(metric: Metric, usual: float, policy: Policy) -> float:
    if metric is Metric.LATENCY_P95:
        # A share of slow answers, whatever the rollout asks of its errors.
        return failing_difference(Metric.ERROR_RATE, usual, Policy())
    return failing_difference(metric, usual, policy)


@dataclass(frozen=True, slots=True)
class _Group:
    hours: int
    requests: int
    squared_requests: int
    mean: float


@dataclass(frozen=True, slots=True)
class Week:
    """`within` is the variance of one value, `between` that of the means of hours; `persistence` is by how much spells
    of several hours raise the latter."""

    subject: Subject
    groups: Mapping[int, _Group]
    hours_of_day: frozenset[int]
    is_matched: bool
    requests: int
    hours: int
    squared_requests: int
    within: float
    between: float
    persistence: float

    @classmethod
    def of(cls, before: Sequence[Hour], subject: Subject) -> Week | None:
        known = _of_subject(before, subject)
        if len(known) < 2:
            return None
        is_matched = known[-1][0] - known[0][0] + 1 >= MATCHED_HOURS
        groups = _groups(known, is_matched=is_matched)
        residuals = {
            hour: (sums.requests, sums.total - sums.requests * groups[_key(hour, is_matched)].mean)
            for hour, sums in known
        }
        within = _within([sums for _, sums in known], is_rate=subject.is_rate)
        share = {hour: 1 - sums.requests / groups[_key(hour, is_matched)].requests for hour, sums in known}
        between = _between(residuals, share, within)
        return cls(
            subject,
            groups,
            frozenset(hour % _DAY for hour, _ in known),
            is_matched,
            sum(sums.requests for _, sums in known),
            len(known),
            sum(sums.requests**2 for _, sums in known),
            within,
            between,
            _persistence(residuals, between),
        )

    def knows(self, hour: int) -> bool:
        return hour % _DAY in self.hours_of_day

    def mean_at(self, hour: int) -> float:
        return self.groups[_key(hour, self.is_matched)].mean

    def noise(self, since: Sequence[tuple[int, Sums]], difference: float) -> float:
        number = sum(sums.requests for _, sums in since)
        residuals = {
            hour: (sums.requests, sums.total - sums.requests * (self.mean_at(hour) + difference))
            for hour, sums in since
        }
        share = {hour: 1 - sums.requests / number for hour, sums in since}
        between = max(self.between, _between(residuals, share, self.within)) * self.persistence
        by_group: dict[int, int] = {}
        for hour, sums in since:
            key = _key(hour, self.is_matched)
            by_group[key] = by_group.get(key, 0) + sums.requests
        own = self.within / number + between * sum(sums.requests**2 for _, sums in since) / number**2
        theirs = math.fsum(
            (count / number) ** 2
            * (self.within / group.requests + between * group.squared_requests / group.requests**2)
            for count, group in ((count, self.groups[key]) for key, count in by_group.items())
        )
        return own + theirs

    @property
    def noise_of_a_day(self) -> float:
        between = self.between * self.persistence
        whole = self.within / self.requests + between * self.squared_requests / self.requests**2
        return whole * (1 + self.hours / _DAY)


def _of_subject(hours: Sequence[Hour], subject: Subject) -> list[tuple[int, Sums]]:
    found = ((one.hour, subject.sums(one)) for one in hours)
    return [(hour, sums) for hour, sums in found if sums is not None and sums.requests]


def _key(hour: int, is_matched: bool) -> int:
    return hour % _DAY if is_matched else 0


def _groups(known: Iterable[tuple[int, Sums]], *, is_matched: bool) -> Mapping[int, _Group]:
    by_key: dict[int, list[Sums]] = {}
    for hour, sums in known:
        by_key.setdefault(_key(hour, is_matched), []).append(sums)
    return {
        key: _Group(
            len(found),
            number := sum(sums.requests for sums in found),
            sum(sums.requests**2 for sums in found),
            math.fsum(sums.total for sums in found) / number,
        )
        for key, found in by_key.items()
    }


def _within(known: Sequence[Sums], *, is_rate: bool) -> float:
    number = sum(sums.requests for sums in known)
    total, squares = math.fsum(sums.total for sums in known), math.fsum(sums.squares for sums in known)
    if is_rate:
        return rate_variance(total, number)
    mean = total / number
    # Values that do not vary at all would make every difference certain.
    return max(squares / number - mean**2, (_MIN_DEVIATION * mean) ** 2, _MIN_DEVIATION**2)


def _between(residuals: Mapping[int, tuple[int, float]], share: Mapping[int, float], within: float) -> float:
    squares = math.fsum(residual**2 for _, residual in residuals.values())
    chance = math.fsum(within * number * share[hour] for hour, (number, _) in residuals.items())
    weight = math.fsum(number**2 * share[hour] for hour, (number, _) in residuals.items())
    return max(0.0, (squares - chance) / weight) if weight else 0.0


def _persistence(residuals: Mapping[int, tuple[int, float]], between: float) -> float:
    pairs = [
        (residual * residuals[hour + 1][1], number * residuals[hour + 1][0])
        for hour, (number, residual) in residuals.items()
        if hour + 1 in residuals
    ]
    weight = math.fsum(weight for _, weight in pairs)
    if not weight or not between:
        return 1.0
    correlation = math.fsum(product for product, _ in pairs) / weight / between
    correlation = min(max(correlation, 0.0), _MAX_CORRELATION)
    return (1 + correlation) / (1 - correlation)
