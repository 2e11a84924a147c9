from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
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
    """What a rollout asks of one evaluator. Defaults: the newest `version` at the start, the `action` of its
    calibration, the `label_share` of its online evaluation. A share of 0 takes its scores uncorrected."""

    evaluator_id: UUID
    version: int | None = None
    action: Action | None = None
    margin: float = DEFAULT_MARGIN
    required: bool = False
    label_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutEvaluator(Evaluator):
    """An evaluator as a rollout began with it; later changes of name, rubric or calibration change nothing here.

    `calibration` is `rule` or one of `analytics.evaluators.calibration.states.State`. `action` follows when it fails;
    for an uncalibrated judge it is never a rollback.
    """

    evaluator_id: UUID
    version_id: UUID
    version: int
    kind: str
    calibration: str

    @property
    def is_rule(self) -> bool:
        return self.calibration == RULE

    @property
    def statistics(self) -> Evaluator:
        return Evaluator(*[getattr(self, one.name) for one in fields(Evaluator)])


def entries_of(rollout: Rollout) -> list[QualityEntry]:
    return [from_json(QualityEntry, one) for one in rollout.quality]


def evaluators_of(rollout: Rollout) -> tuple[RolloutEvaluator, ...]:
    if not rollout.quality:
        return ()
    try:
        stored = rollout.quality_evaluation.evaluators
    except RolloutQuality.DoesNotExist:
        return ()
    return tuple(from_json(RolloutEvaluator, one) for one in stored)


def stored_form(values: Sequence[QualityEntry] | Sequence[RolloutEvaluator]) -> list[Any]:
    return [to_json(one) for one in values]
