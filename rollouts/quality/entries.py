from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID, uuid5

from rollouts.evaluation import Action, from_json, to_json
from rollouts.evaluation.quality import Evaluator
from rollouts.evaluation.quality.rules import DEFAULT_MARGIN
from rollouts.models import Rollout, RolloutQuality

_OUTCOMES = UUID("6f1d5c1e-8d7e-4d0c-9b57-0a3f5a2c4e61")

OUTCOME = "outcome"
"""The kind of an outcome, beside the kinds of evaluators."""
RULE = "rule"
"""The calibration of an evaluator that asks no model: it is right by definition."""


@dataclass(frozen=True, slots=True)
class QualityEntry:
    """What a rollout asks of one evaluator. Defaults: the newest `version` at the start, the `action` of its
    calibration, the `label_share` of its online evaluation. A share of 0 takes its scores uncorrected.

    With `score_name` it asks for an outcome: the scores of that name that applications send. A value of `best` is 1 and
    one of `worst` is 0, with all others between them; `goal` makes the rollout an A/B test of it.
    """

    evaluator_id: UUID | None = None
    version: int | None = None
    action: Action | None = None
    margin: float = DEFAULT_MARGIN
    required: bool = False
    label_share: float | None = None
    score_name: str | None = None
    worst: float = 0.0
    best: float = 1.0
    goal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutEvaluator(Evaluator):
    """An evaluator as a rollout began with it; later changes of name, rubric or calibration change nothing here.

    `calibration` is `rule` or one of `analytics.evaluators.calibration.states.State`. `action` follows when it fails;
    for an uncalibrated judge it is never a rollback. An outcome has the ids that its `score_name` makes.
    """

    evaluator_id: UUID
    version_id: UUID
    version: int
    kind: str
    calibration: str
    score_name: str | None = None
    worst: float = 0.0
    best: float = 1.0

    @property
    def is_rule(self) -> bool:
        return self.calibration == RULE

    @property
    def statistics(self) -> Evaluator:
        return Evaluator(*[getattr(self, one.name) for one in fields(Evaluator)])


def outcome_id(score_name: str) -> UUID:
    return uuid5(_OUTCOMES, score_name)


def entries_of(rollout: Rollout) -> list[QualityEntry]:
    return [from_json(QualityEntry, one) for one in rollout.quality]


def is_test(entries: Iterable[QualityEntry]) -> bool:
    """Returns whether the rollout is an A/B test."""
    return any(one.goal for one in entries)


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
