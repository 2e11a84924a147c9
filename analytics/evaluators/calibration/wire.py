from __future__ import annotations

from datetime import datetime
from typing import TypedDict
from uuid import UUID

from analytics.evaluators.calibration.calibrate import Calibration
from analytics.evaluators.calibration.states import Missing, State, valid_until
from analytics.evaluators.calibration.statistics import Confusion, DifferentialBias, Group
from core.wire.shown import shown_as


class CalibrationEstimate(TypedDict):
    value: float
    low: float | None
    high: float | None


class CalibrationConfusion(TypedDict):
    true_good: int
    false_good: int
    true_bad: int
    false_bad: int


class VersionBias(TypedDict):
    prompt_config_id: UUID
    prompt_version: int
    answers: int
    bias: CalibrationEstimate | None


class ArmBias(TypedDict):
    rollout_id: UUID
    variant: str
    answers: int
    bias: CalibrationEstimate | None


class VersionDifference(TypedDict):
    prompt_config_id: UUID
    first_version: int
    second_version: int
    bias: CalibrationEstimate


class ArmDifference(TypedDict):
    rollout_id: UUID
    first_variant: str
    second_variant: str
    bias: CalibrationEstimate


class CalibrationFlips(TypedDict):
    judged_again: int
    to_good: int
    to_bad: int
    evidence: float


class EvaluatorCalibration(TypedDict):
    evaluator_id: UUID
    version: int
    score_name: str
    state: State
    missing: list[Missing]
    labelled: int
    compared: int
    confusion: CalibrationConfusion
    sensitivity: CalibrationEstimate | None
    specificity: CalibrationEstimate | None
    kappa: CalibrationEstimate | None
    informedness: CalibrationEstimate | None
    margin_scale: float | None
    bias: CalibrationEstimate | None
    by_version: list[VersionBias]
    by_arm: list[ArmBias]
    between_versions: VersionDifference | None
    between_arms: ArmDifference | None
    flips: CalibrationFlips
    judge_models: list[str]
    shared_model_families: list[str]
    labelled_at: datetime | None
    valid_until: datetime | None


def calibration_entry(found: Calibration) -> EvaluatorCalibration:
    facts, confusion = found.facts, found.facts.confusion
    return shown_as(
        EvaluatorCalibration,
        found.standing,
        facts,
        confusion,
        found,
        evaluator_id=found.version.evaluator_id,
        version=found.version.number,
        score_name=found.version.title,
        compared=confusion.answers,
        by_version=[_version(group, one) for group, one in found.by_version.items()],
        by_arm=[_arm(group, one) for group, one in found.by_arm.items()],
        between_versions=_between_versions(found.between_versions),
        between_arms=_between_arms(found.between_arms),
        judge_models=list(facts.models),
        shared_model_families=list(found.shared_families),
        valid_until=valid_until(facts),
    )


def _version(group: Group, found: Confusion) -> VersionBias:
    return shown_as(VersionBias, found, prompt_config_id=group.scope, prompt_version=group.place)


def _arm(group: Group, found: Confusion) -> ArmBias:
    return shown_as(ArmBias, found, rollout_id=group.scope, variant=group.name)


def _between_versions(found: DifferentialBias | None) -> VersionDifference | None:
    if found is None:
        return None
    first, second = found.first, found.second
    return shown_as(
        VersionDifference,
        found,
        prompt_config_id=first.scope,
        first_version=first.place,
        second_version=second.place,
    )


def _between_arms(found: DifferentialBias | None) -> ArmDifference | None:
    if found is None:
        return None
    first, second = found.first, found.second
    return shown_as(ArmDifference, found, rollout_id=first.scope, first_variant=first.name, second_variant=second.name)
