"""The input of an evaluation: the counts of one closed minute. Frozen, small, and stored unchanged, so that
decisions can be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from rollouts.evaluation.clusters import ClusterSums
from rollouts.evaluation.formula_1.policy import Metric
from rollouts.evaluation.grid import Histogram


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """The counts of one arm in one minute. Forced variants, allocation fallbacks, requests whose managed prompt was
    skipped, and playground and agent traffic are left out everywhere.

    `requests` are those whose outcome the service answers for: neither the client's own faults (400, 401, 404, 422, 429
    of ours) nor cancelled ones; `errors` of them ended with a status of 500 or more, a timeout, a refusal, or a
    provider's 400 after the prompt was injected. `latency` counts the answered ones in milliseconds and `cost` the
    answered and priced ones in 10^-10 US dollars, by bin (`grid.bin_of`), both without cache hits. `latency_ms` and
    `cost_usd` are their exact sums. `units` are allocation units first seen in this rollout in this minute; under
    random allocation every allocated request is one.
    """

    requests: int = 0
    errors: int = 0
    units: int = 0
    latency: Histogram = field(default_factory=dict)
    latency_ms: int = 0
    cost: Histogram = field(default_factory=dict)
    cost_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """The counts of one closed minute within one stage. `minute` is Unix time divided by 60; stages count from 1.
    `clusters` is for sticky allocation only, where requests of a unit depend on each other."""

    minute: int
    stage: int
    weight: int
    target: ArmCounts
    baseline: ArmCounts
    clusters: Mapping[Metric, ClusterSums] = field(default_factory=dict)
