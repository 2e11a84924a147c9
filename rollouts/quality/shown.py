"""The evaluators of a rollout as the API shows them."""

from __future__ import annotations

from typing import Any

from rollouts.models import Rollout
from rollouts.quality.entries import QualityEntry, RolloutEvaluator, entries_of, evaluators_of


def quality_shown(rollout: Rollout) -> list[dict[str, Any]]:
    """Returns the evaluators as the rollout began with them, or before the start as they are asked for."""
    begun = evaluators_of(rollout)
    return [evaluator_shown(one) for one in begun] or [_asked(one) for one in entries_of(rollout)]


def evaluator_shown(evaluator: RolloutEvaluator) -> dict[str, Any]:
    return {
        "evaluator_id": str(evaluator.evaluator_id),
        "version": evaluator.version,
        "title": evaluator.title,
        "kind": evaluator.kind,
        "action": evaluator.action.value,
        "margin": evaluator.margin,
        "required": evaluator.required,
        "label_share": evaluator.label_share,
        "margin_scale": evaluator.margin_scale,
        "calibration": evaluator.calibration,
    }


def _asked(entry: QualityEntry) -> dict[str, Any]:
    return {
        "evaluator_id": str(entry.evaluator_id),
        "version": entry.version,
        "title": None,
        "kind": None,
        "action": entry.action.value if entry.action else None,
        "margin": entry.margin,
        "required": entry.required,
        "label_share": entry.label_share,
        "margin_scale": None,
        "calibration": None,
    }
