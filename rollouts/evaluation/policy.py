from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from rollouts.evaluation.terms import Action

MIN_TARGET_REQUESTS = 20
"""The number of the target arm's requests before which only rates may fail a rollout and nothing passes."""

CONTROLLED_WEIGHT = 50
"""The weight in percent from which on a rollout advances only when it passes."""


class Metric(StrEnum):
    """`unanswered` is the share of allocated requests whose users got no proper answer, for whatever reason; `stopped`
    the share whose clients left after the first output, which is shown and never decides."""

    UNANSWERED = "unanswered"
    ERROR_RATE = "error_rate"
    LATENCY_P95 = "latency_p95"
    LATENCY_AVERAGE = "latency_average"
    COST = "cost_per_request"
    CONTRACT = "contract"
    TRUNCATED = "truncated"
    FALLBACK = "fallback"
    EMPTY = "empty"
    STOPPED = "stopped"

    # Metrics are looked up many times a minute, and the hash of a string is quicker than that of a member.
    __hash__ = str.__hash__


EXACT = (Metric.CONTRACT, Metric.TRUNCATED, Metric.FALLBACK, Metric.EMPTY)
"""The exact signals, counted among answered requests: answers that break the schema they were asked for, were cut off
by their length, came from another model than was asked, or hold neither text nor call."""
RATES = (Metric.UNANSWERED, Metric.ERROR_RATE, *EXACT, Metric.STOPPED)
"""The metrics that count requests, and therefore need no reference."""

MEANS = (Metric.LATENCY_AVERAGE, Metric.COST)
"""The metrics that compare the means of values."""

ALPHA: Mapping[Metric, float] = MappingProxyType(
    {
        Metric.UNANSWERED: 0.005,
        Metric.ERROR_RATE: 0.017,
        Metric.LATENCY_P95: 0.006,
        Metric.LATENCY_AVERAGE: 0.0075,
        Metric.COST: 0.0015,
        Metric.CONTRACT: 0.0025,
        Metric.TRUNCATED: 0.001,
        Metric.FALLBACK: 0.001,
        Metric.EMPTY: 0.001,
    }
)
"""The probability that a harmless target ever fails a metric, over the whole rollout and any number of looks: 4.25 %
in all. What is left of 5 % is for the quality of answers."""

FAIL_AT: Mapping[Metric, float] = MappingProxyType(
    {metric: -math.log(ALPHA[metric]) if metric in ALPHA else math.inf for metric in Metric}
)
"""The ln E at which a metric fails; infinite for one that never decides."""

KEPT_MINUTES = 4
"""The whole minutes after an arm's latest one in which its prompt is certainly in the caches of providers, which keep
it for five minutes. Later, the arm is cold, and its latency and cost are not judged."""

WARMING_REQUESTS = 20
"""With so many requests in one minute an arm that was cold is judged all the same: the first of them fills the cache,
and the others find it filled. So traffic that comes in bursts is judged too."""

PASS_AT = -math.log(0.05)
"""The ln of the evidence of safety at which a metric passes."""

LATENCY_MARGIN = 1.25
"""The factor below which a slower target is harmless."""
COST_MARGIN = 1.25
"""The factor of the allowed cost below which a more expensive target is harmless."""
RATE_MARGIN = 0.01
"""The points below which a higher rate is harmless; so is one below twice the baseline's."""
LATENCY_P95_SIZE = 1.2
LATENCY_AVERAGE_SIZE = 1.1
COST_SIZE = 1.1
RATE_SIZE, EXACT_SIZE = (0.005, 1.25), (0.01, 1.25)
"""The smallest difference of two rates, or of two shares with an exact signal, that is worth acting on: so many points
more and so many times as much."""
RATE_COUNT_SIZE = 3


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a rollout sets for a metric: the difference from which on it may fail, and the one below which it passes. Of
    rates, points of the baseline's; else factors of it, of cost of what is allowed. None: as without it."""

    fail_from: float | None = None
    margin: float | None = None


_NONE = Threshold()


@dataclass(frozen=True, slots=True)
class Policy:
    """A rollout's own choices, fixed at its start. A `cost_allowance` of 0.25 accepts a target that costs a quarter
    more; `thresholds` are by metric."""

    unanswered: Action = Action.ROLL_BACK
    error_rate: Action = Action.ROLL_BACK
    latency_p95: Action = Action.ROLL_BACK
    latency_average: Action = Action.HOLD
    cost_per_request: Action = Action.HOLD
    contract: Action = Action.ROLL_BACK
    truncated: Action = Action.HOLD
    fallback: Action = Action.HOLD
    empty: Action = Action.ROLL_BACK
    cost_allowance: float = 0.25
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)

    def threshold(self, metric: Metric) -> Threshold:
        return self.thresholds.get(metric.value, _NONE)

    def action(self, metric: Metric) -> Action:
        if metric is Metric.STOPPED:
            return Action.IGNORE
        action: Action = getattr(self, metric.value)
        return action

    @property
    def cost_margin(self) -> float:
        """The factor of the baseline's cost below which a target passes. It lies above the factor at which a target
        fails, so a target at its allowance can pass."""
        return (self.threshold(Metric.COST).margin or COST_MARGIN) * (1 + self.cost_allowance)

    @property
    def latency_margin(self) -> float:
        return self.threshold(Metric.LATENCY_P95).margin or LATENCY_MARGIN


def rate_size(metric: Metric) -> tuple[float, float]:
    return EXACT_SIZE if metric in EXACT else RATE_SIZE


def usual_threshold(metric: Metric) -> Threshold:
    """Returns what holds for a metric whose threshold a rollout does not set, beside the factors of rates."""
    if metric in RATES:
        return Threshold(rate_size(metric)[0], RATE_MARGIN)
    factors = {
        Metric.LATENCY_P95: Threshold(LATENCY_P95_SIZE, LATENCY_MARGIN),
        Metric.LATENCY_AVERAGE: Threshold(LATENCY_AVERAGE_SIZE),
        Metric.COST: Threshold(COST_SIZE, COST_MARGIN),
    }
    return factors[metric]


def failing_difference(metric: Metric, baseline: float, policy: Policy) -> float:
    own = policy.threshold(metric).fail_from
    if metric in RATES:
        if own is not None:
            return own
        plus, times = rate_size(metric)
        return max(plus, (times - 1) * baseline)
    factor = own or usual_threshold(metric).fail_from or 1.0
    allowed = 1 + policy.cost_allowance if metric is Metric.COST else 1.0
    return (factor * allowed - 1) * baseline
