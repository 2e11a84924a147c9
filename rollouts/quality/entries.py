"""What a rollout asks of evaluators, and the evaluators as it began with them: both fixed, and kept as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rollouts.evaluation import Action, from_json, to_json
from rollouts.evaluation.quality import Evaluator
from rollouts.evaluation.quality.rules import DEFAULT_MARGIN
from rollouts.models import Rollout, RolloutQuality

RULE = "rule"
"""The calibration of an evaluator that asks no model: it is right by definition."""


@dataclass(frozen=True, slots=True)
class QualityEntry:
    """What a rollout asks of one evaluator. Without `version` it is the newest one at the start, without `action` the
    default of an evaluator of its calibration, and without `label_share` that of its online evaluation. With 0 as the
    share its scores are judged as they are."""

    evaluator_id: UUID
    version: int | None = None
    action: Action | None = None
    margin: float = DEFAULT_MARGIN
    required: bool = False
    label_share: float | None = None


@dataclass(frozen=True, slots=True)
class RolloutEvaluator:
    """An evaluator as a rollout began with it. A name, a rubric or a calibration that changes later changes nothing
    here.

    `calibration` is `rule` or one of `analytics.evaluators.calibration.states.State`. `action` is what follows when it
    fails, which for a judge that was not calibrated is never a rollback.
    """

    evaluator_id: UUID
    version_id: UUID
    version: int
    title: str
    kind: str
    action: Action
    margin: float
    required: bool
    label_share: float | None
    margin_scale: float | None
    calibration: str

    @property
    def is_rule(self) -> bool:
        return self.calibration == RULE

    @property
    def statistics(self) -> Evaluator:
        return Evaluator(
            title=self.title,
            action=self.action,
            margin=self.margin,
            required=self.required,
            label_share=self.label_share,
            margin_scale=self.margin_scale,
        )


def entries_of(rollout: Rollout) -> list[QualityEntry]:
    return [from_json(QualityEntry, one) for one in rollout.quality]


def evaluators_of(rollout: Rollout) -> tuple[RolloutEvaluator, ...]:
    """Returns the evaluators that judge a rollout; none before its start."""
    if not rollout.quality:
        return ()
    try:
        stored = rollout.quality_evaluation.evaluators
    except RolloutQuality.DoesNotExist:
        return ()
    return tuple(from_json(RolloutEvaluator, one) for one in stored)


def stored_form(values: Sequence[QualityEntry] | Sequence[RolloutEvaluator]) -> list[Any]:
    return [to_json(one) for one in values]
