"""The JSON of a calibration."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict
from uuid import UUID

from analytics.agreement import Estimate
from analytics.evaluators.calibration.calibrate import Calibration
from analytics.evaluators.calibration.states import Missing, State, valid_until
from analytics.evaluators.calibration.statistics import Confusion, DifferentialBias, Group


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
    facts, standing, flips = found.facts, found.standing, found.flips
    confusion = facts.confusion
    return {
        "evaluator_id": found.version.evaluator_id,
        "version": found.version.number,
        "score_name": found.version.title,
        "state": standing.state,
        "missing": list(standing.missing),
        "labelled": found.labelled,
        "compared": confusion.answers,
        "confusion": {
            "true_good": confusion.true_good,
            "false_good": confusion.false_good,
            "true_bad": confusion.true_bad,
            "false_bad": confusion.false_bad,
        },
        "sensitivity": _estimate(confusion.sensitivity),
        "specificity": _estimate(confusion.specificity),
        "kappa": _estimate(confusion.kappa),
        "informedness": _estimate(confusion.informedness),
        "margin_scale": standing.margin_scale,
        "bias": _estimate(confusion.bias),
        "by_version": [_version(group, one) for group, one in found.by_version.items()],
        "by_arm": [_arm(group, one) for group, one in found.by_arm.items()],
        "between_versions": _between_versions(found.between_versions),
        "between_arms": _between_arms(found.between_arms),
        "flips": {
            "judged_again": flips.judged_again,
            "to_good": flips.to_good,
            "to_bad": flips.to_bad,
            "evidence": flips.evidence,
        },
        "judge_models": list(facts.models),
        "shared_model_families": list(found.shared_families),
        "labelled_at": facts.labelled_at,
        "valid_until": valid_until(facts),
    }


def _version(group: Group, found: Confusion) -> VersionBias:
    return {
        "prompt_config_id": group.scope,
        "prompt_version": group.place,
        "answers": found.answers,
        "bias": _estimate(found.bias),
    }


def _arm(group: Group, found: Confusion) -> ArmBias:
    return {
        "rollout_id": group.scope,
        "variant": group.name,
        "answers": found.answers,
        "bias": _estimate(found.bias),
    }


def _between_versions(found: DifferentialBias | None) -> VersionDifference | None:
    if found is None:
        return None
    return {
        "prompt_config_id": found.first.scope,
        "first_version": found.first.place,
        "second_version": found.second.place,
        "bias": _known(found.bias),
    }


def _between_arms(found: DifferentialBias | None) -> ArmDifference | None:
    if found is None:
        return None
    return {
        "rollout_id": found.first.scope,
        "first_variant": found.first.name,
        "second_variant": found.second.name,
        "bias": _known(found.bias),
    }


def _estimate(found: Estimate | None) -> CalibrationEstimate | None:
    return None if found is None else _known(found)


def _known(found: Estimate) -> CalibrationEstimate:
    return {"value": found.value, "low": found.low, "high": found.high}
