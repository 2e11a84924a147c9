from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollouts.evaluation import Policy, from_json, to_json
from rollouts.models import Rollout

COST_ALLOWANCE = "cost_allowance"
MAX_COST_ALLOWANCE = 100.0


def policy_of(rollout: Rollout) -> Policy:
    return policy_from(rollout.policy)


def policy_from(given: Mapping[str, Any]) -> Policy:
    return from_json(Policy, {**to_json(Policy()), **given})
