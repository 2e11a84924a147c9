"""What is judged, how sure a verdict has to be, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rollouts.evaluation.terms import Action

MIN_TARGET_REQUESTS = 20
"""Before so many requests of the target arm only errors and missing answers may fail a rollout, and nothing passes."""

CONTROLLED_WEIGHT = 50
"""From this weight on, in percent, a rollout advances only when it passes."""


class Metric(StrEnum):
    """`unanswered`: the share of the allocated requests whose users got no proper answer, for whatever reason."""

    UNANSWERED = "unanswered"
    ERROR_RATE = "error_rate"
    LATENCY_P95 = "latency_p95"
    LATENCY_AVERAGE = "latency_average"
    COST = "cost_per_request"


RATES = (Metric.UNANSWERED, Metric.ERROR_RATE)
"""The metrics that count requests, and therefore need no reference."""

ALPHA: Mapping[Metric, float] = MappingProxyType(
    {
        Metric.UNANSWERED: 0.005,
        Metric.ERROR_RATE: 0.025,
        Metric.LATENCY_P95: 0.010,
        Metric.LATENCY_AVERAGE: 0.0075,
        Metric.COST: 0.0025,
    }
)
"""The chance that a harmless target ever fails a metric, over the whole rollout and any number of looks: 5 % in all."""

FAIL_AT: Mapping[Metric, float] = MappingProxyType({metric: -math.log(alpha) for metric, alpha in ALPHA.items()})
"""The logarithm of E from which on a metric fails."""

PASS_AT = -math.log(0.05)
"""The logarithm of the evidence of safety from which on a metric passes."""

LATENCY_MARGIN = 1.25
"""A target less than so many times slower is harmless."""
COST_MARGIN = 1.25
"""A target less than so many times dearer than allowed is harmless."""
LATENCY_P95_SIZE = 1.2
LATENCY_AVERAGE_SIZE = 1.1
COST_SIZE = 1.1
RATE_SIZE = (0.005, 1.25)
"""So much more, and so many times as much: both, before a difference is worth acting on."""
RATE_COUNT_SIZE = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """A rollout's own choices, fixed at its start. `cost_allowance` 0.25: a quarter dearer is no fault at all."""

    unanswered: Action = Action.ROLL_BACK
    error_rate: Action = Action.ROLL_BACK
    latency_p95: Action = Action.ROLL_BACK
    latency_average: Action = Action.HOLD
    cost_per_request: Action = Action.HOLD
    cost_allowance: float = 0.25

    def action(self, metric: Metric) -> Action:
        action: Action = getattr(self, metric.value)
        return action

    @property
    def cost_margin(self) -> float:
        """What a passing target costs less than, as a factor: above what fails, so that a target at its allowance can
        pass."""
        return COST_MARGIN * (1 + self.cost_allowance)
