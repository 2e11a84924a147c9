"""The policy of a rollout, whose row holds the differences from the defaults, and the formula that judges it."""

from __future__ import annotations

from typing import Any

from rollouts.evaluation import formula_of, from_json, to_json
from rollouts.evaluation.formulas import CURRENT
from rollouts.models import Rollout

COST_ALLOWANCE = "cost_allowance"
MAX_COST_ALLOWANCE = 100.0


def formula_number(rollout: Rollout) -> int:
    """Returns the number of the rollout's formula: the one that its evaluation began with, or the current one before
    that."""
    # The formula is read from the verdict, because the states are large and are not read for lists.
    return int(rollout.evaluation.verdict.get("formula", CURRENT))


def policy_of(rollout: Rollout) -> Any:
    """Returns the rollout's `Policy` of its formula. Raises ValueError for a formula that this version does not
    know."""
    kind = formula_of(formula_number(rollout)).Policy
    return from_json(kind, {**to_json(kind()), **rollout.policy})
