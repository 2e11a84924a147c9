"""The metrics that are judged, the certainty that a verdict needs, and the action that follows from each metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rollouts.evaluation.terms import Action

MIN_TARGET_REQUESTS = 20
"""The number of the target arm's requests before which only the error rate may fail a rollout and nothing passes."""

CONTROLLED_WEIGHT = 50
"""The weight in percent from which on a rollout advances only when it passes."""


class Metric(StrEnum):
    ERROR_RATE = "error_rate"
    LATENCY_P95 = "latency_p95"
    LATENCY_AVERAGE = "latency_average"
    COST = "cost_per_request"


ALPHA: Mapping[Metric, float] = MappingProxyType(
    {
        Metric.ERROR_RATE: 0.025,
        Metric.LATENCY_P95: 0.010,
        Metric.LATENCY_AVERAGE: 0.0075,
        Metric.COST: 0.0075,
    }
)
"""The probability that a harmless target ever fails a metric, over the whole rollout and any number of looks: 5 % in
all."""

FAIL_AT: Mapping[Metric, float] = MappingProxyType({metric: -math.log(alpha) for metric, alpha in ALPHA.items()})
"""The ln E at which a metric fails."""

PASS_AT = -math.log(0.05)
"""The ln of the evidence of safety at which a metric passes."""

LATENCY_MARGIN = 1.25
"""The factor below which a slower target is harmless."""
LATENCY_P95_SIZE = 1.2
LATENCY_AVERAGE_SIZE = 1.1
COST_SIZE = 1.1
ERROR_RATE_SIZE = (0.005, 1.25)
"""The smallest difference of two rates that is worth acting on: so many points more and so many times as much."""
ERROR_COUNT_SIZE = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """A rollout's own choices, fixed at its start. A `cost_allowance` of 0.25 accepts a target that costs a quarter
    more."""

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
        """The factor of the baseline's cost below which a target passes: at least 1.25, or nothing could be shown to
        pass."""
        return max(1.25, 1 + self.cost_allowance)
