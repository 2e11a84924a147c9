"""A rollout's policy, of which the row holds what differs from the defaults, and the formula it goes by."""

from __future__ import annotations

from typing import Any

from rollouts.evaluation import formula_of, from_json, to_json
from rollouts.evaluation.formulas import CURRENT
from rollouts.models import Rollout

COST_ALLOWANCE = "cost_allowance"
MAX_COST_ALLOWANCE = 100.0


def formula_number(rollout: Rollout) -> int:
    """The formula that the rollout's evaluation began with, and goes on with to its end; before, the current one."""
    # Every verdict names it. The states do as well, but they are large, and not read for lists.
    return int(rollout.evaluation.verdict.get("formula", CURRENT))


def policy_of(rollout: Rollout) -> Any:
    """The `Policy` of its formula. Raises ValueError for a formula that this version does not know."""
    kind = formula_of(formula_number(rollout)).Policy
    return from_json(kind, {**to_json(kind()), **rollout.policy})
