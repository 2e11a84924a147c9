"""Automatic rollouts for tests of the evaluation."""

from __future__ import annotations

from typing import Any

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
