from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollouts.evaluation import Policy, from_json, to_json
from rollouts.models import Rollout

COST_ALLOWANCE = "cost_allowance"
MAX_COST_ALLOWANCE = 100.0
RATE_POINTS = (0.001, 0.5)
"""The least and the most points of a threshold: what differs by less takes a hundred thousand requests to see."""
FACTORS = (1.05, 10.0)
"""The least and the largest factor: latencies and costs are counted by steps of 2.3 %."""


def policy_of(rollout: Rollout) -> Policy:
    return policy_from(rollout.policy)


def policy_from(given: Mapping[str, Any]) -> Policy:
    return from_json(Policy, {**to_json(Policy()), **given})
