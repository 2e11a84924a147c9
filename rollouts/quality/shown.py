from __future__ import annotations

from typing import Any

from rollouts import shapes
from rollouts.evaluation import to_json
from rollouts.models import Rollout
from rollouts.quality.entries import QualityEntry, RolloutEvaluator, entries_of, evaluators_of


def quality_shown(rollout: Rollout) -> list[dict[str, Any]]:
    return [evaluator_shown(one) for one in evaluators_of(rollout) or entries_of(rollout)]


def evaluator_shown(evaluator: RolloutEvaluator | QualityEntry) -> dict[str, Any]:
    known = to_json(evaluator)
    if evaluator.score_name is not None:
        known |= dict.fromkeys(("evaluator_id", "version", "calibration", "margin_scale"))
    return {name: known.get(name) for name in shapes.RolloutEvaluator.__annotations__}
