"""Automatic rollouts for tests of the evaluation."""

from __future__ import annotations

from typing import Any

from rollouts.evaluation import formula_1, to_json
from rollouts.models import Mode, Rollout, RolloutEvaluation
from rollouts.states import Stage
from tests.factories.rollouts import make_rollout
from tests.rollouts.request_log import begun


def automatic(*stages: Stage, minutes_ago: int = 10, **fields: Any) -> Rollout:
    if stages:
        fields["stages"] = stages
    return begun(make_rollout(started=True, mode=Mode.AUTO, **fields), minutes_ago)


def evaluation(rollout: Rollout) -> RolloutEvaluation:
    return RolloutEvaluation.objects.get(rollout=rollout)


def of_the_first_formula(rollout: Rollout) -> Rollout:
    """Returns the rollout as if the first formula had evaluated it once."""
    state = to_json(formula_1.initial_state(formula_1.Policy(), latency={}, cost={}))
    RolloutEvaluation.objects.filter(rollout=rollout).update(initial=state, state=state, verdict={"formula": 1})
    rollout.refresh_from_db()
    return rollout
