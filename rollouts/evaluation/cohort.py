"""Evidence by user that a target of sticky allocation is not worse: all users of a cohort, each counted once.

The requests of the most active users decide how requests compare, and say little after some hours. So at fixed times of
a stage with a weight of 50 % or more, each user counts with the share of bad ones among all of the user's requests in
the stage. If the target is at its margin, and its shares are brought back by the margin, chance alone decides which
users of the cohort have which shares. Each look is then a factor with a mean of at most 1.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, pvariance
from typing import TYPE_CHECKING

from rollouts.evaluation.counts import MEASURES, Shares, UserCounts, events_of
from rollouts.evaluation.policy import CONTROLLED_WEIGHT, RATES, Metric
from rollouts.evaluation.statistics.grid import value_of
from rollouts.evaluation.statistics.margin import margin_beside
from rollouts.evaluation.users import LOOKS, choice_factors

if TYPE_CHECKING:
    from rollouts.evaluation.state import State

LEAST_REQUESTS = 5
"""The requests in the stage that a user needs to count."""
SHARE_UNIT = 1000
"""Shares are counted in thousandths."""

_STEEPEST = 2.0
"""The steepest tilt, by the mean score: the target's shares are brought back to values that the baseline's never have,
and a tilt that tells such values apart would mistake them for a difference."""
_HIGHEST = 0.4688
"""No sum of independent events with standard deviation d has any value with a probability above this by d (Baillon,
Cominetti and Vaisman 2016, arXiv 0806.2350)."""


def due_look(state: State, minute: int) -> int | None:
    """Returns the number of the look that is due in a minute of the current stage, from 0; None if none is due."""
    if not state.stage_minute or not CONTROLLED_WEIGHT <= state.weights[state.stage - 1] < 100:
        return None
    number = bisect(LOOKS, minute - state.stage_minute)
    return number - 1 if number > state.looks else None


def weight_before(weights: Sequence[int], stage: int) -> int:
    """Returns the weight in percent below which users are not of the stage's cohort: those who were in the target when
    an earlier cohort was looked at. The first cohort has all users."""
    before = weights[stage - 2] if stage > 1 else 0
    return before if before >= CONTROLLED_WEIGHT else 0


def not_worse(state: State, metric: Metric, target: UserCounts, baseline: UserCounts) -> float:
    """Returns ln of the factor of one look; 0 if it says nothing."""
    if metric is Metric.COST:
        return choice_factor(_costs(state, target, state.policy.cost_margin), _costs(state, baseline, 1.0))
    if metric is Metric.LATENCY_P95:
        # Divided by the margin, a value at the margin is as often slow as one of the baseline's.
        return choice_factor(_shares(target.eased), _shares(baseline.slow))
    if metric not in RATES or metric not in MEASURES:
        return 0.0
    margin = _margin(state, metric)
    if margin is None:
        return 0.0
    own, theirs = (_shares(getattr(users, MEASURES[metric])) for users in (target, baseline))
    return choice_factor([share / (margin - (margin - 1) * share) for share in own], theirs)


def choice_factor(target: Sequence[float], baseline: Sequence[float]) -> float:
    """Returns ln of the factor for lower scores of the target, at the tilt that grows most if its mean is half of the
    baseline's. The tilt depends only on the scores of both arms together."""
    scores = [*target, *baseline]
    if not any(scores):
        return 0.0
    mean = fmean(scores)
    tilt = mean / max(2 * pvariance(scores, mean), mean**2 / _STEEPEST)
    factors = choice_factors(target, baseline, (-tilt,), of_many=log_mean_of_many)
    return factors[0] if factors else 0.0


def log_mean_of_many(weights: Sequence[float], drawn: int) -> float:
    """Returns a bound of ln of the mean product over all choices of `drawn` of the weights, hardly above it.

    That mean times the number of choices is the coefficient of t^drawn in the product of 1 + w t: for any t, the
    product by t^drawn, times the probability that `drawn` of independent events of odds w t happen.
    """
    number, counted = len(weights), Counter(weights)

    def chances(log_t: float) -> list[tuple[float, int]]:
        return [(1 / (1 + math.exp(-log_t) / weight), count) for weight, count in counted.items()]

    low, high = (sign * 100.0 for sign in (-1, 1))
    while high - low > 1e-6:
        middle = (low + high) / 2
        expected = math.fsum(chance * count for chance, count in chances(middle))
        low, high = (middle, high) if expected < drawn else (low, middle)
    product = math.fsum(math.log1p(weight * math.exp(low)) * count for weight, count in counted.items())
    deviation = math.sqrt(math.fsum(chance * (1 - chance) * count for chance, count in chances(low)))
    highest = math.log(min(1.0, _HIGHEST / deviation))
    choices = math.lgamma(number + 1) - math.lgamma(drawn + 1) - math.lgamma(number - drawn + 1)
    return product - drawn * low + highest - choices


def _margin(state: State, metric: Metric) -> float | None:
    answering = state.metrics[metric].answering
    if answering is None:
        return None
    points = state.policy.threshold(metric).margin
    return margin_beside(answering.events, answering.requests, events_of(state.baseline, metric), points)


def _costs(state: State, users: UserCounts, divisor: float) -> list[float]:
    reference = state.cost.reference
    return [min(value_of(number) / divisor, reference.cap) for number in _each(users.cost)] if reference else []


def _shares(users: Shares) -> list[float]:
    return [number / SHARE_UNIT for number in _each(users)]


def _each(users: Shares) -> list[int]:
    return [number for number in sorted(users) for _ in range(users[number])]
