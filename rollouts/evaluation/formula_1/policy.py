"""What is judged, how sure a verdict has to be, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rollouts.evaluation.terms import Action

MIN_TARGET_REQUESTS = 20
"""Before so many requests of the target arm only the error rate may fail a rollout, and nothing passes it."""

CONTROLLED_WEIGHT = 50
"""From this weight on, in percent, a rollout advances only when it passes."""


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
"""The chance that a harmless target ever fails a metric, over the whole rollout and any number of looks: 5 % in all."""

FAIL_AT: Mapping[Metric, float] = MappingProxyType({metric: -math.log(alpha) for metric, alpha in ALPHA.items()})
"""The logarithm of E from which on a metric fails."""

PASS_AT = -math.log(0.05)
"""The logarithm of the evidence of safety from which on a metric passes."""

LATENCY_MARGIN = 1.25
"""A target less than so many times slower is harmless."""
LATENCY_P95_SIZE = 1.2
LATENCY_AVERAGE_SIZE = 1.1
COST_SIZE = 1.1
ERROR_RATE_SIZE = (0.005, 1.25)
"""So much more, and so many times as much: both, before a difference is worth acting on."""
ERROR_COUNT_SIZE = 3


@dataclass(frozen=True, slots=True)
class Policy:
    """A rollout's own choices, fixed at its start. `cost_allowance` 0.25: a quarter dearer is no fault at all."""

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
        """What a passing target costs less than, as a factor: at least 1.25, or nothing could be shown to pass."""
        return max(1.25, 1 + self.cost_allowance)
