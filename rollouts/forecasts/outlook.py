from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollouts import evaluation
from rollouts.allocation import AllocationType
from rollouts.evaluation import Power, from_json, power
from rollouts.evaluation.quality.assess import NOT_BY_WAITING
from rollouts.evaluation.statistics.learning import Learning
from rollouts.forecasts.stage import StageForecast, Traffic, stage_forecast, traffic_today
from rollouts.models import Rollout, RolloutEvaluation
from rollouts.states import Status

STICKY = "Requests of one user resemble each other: with sticky allocation it takes longer than that."


@dataclass(frozen=True, slots=True)
class Outlook:
    forecast: StageForecast
    power: Power | None


@dataclass(frozen=True, slots=True)
class _Standing:
    served: int
    latency: Learning


def outlook(rollout: Rollout, figures: Mapping[str, Any], *, elapsed_minutes: float) -> Outlook | None:
    if rollout.status != Status.RUNNING:
        return None
    traffic, standing = traffic_today(rollout), _standing(rollout)
    forecast = stage_forecast(
        rollout,
        traffic,
        served=standing.served,
        elapsed_minutes=elapsed_minutes,
        passes=figures["status"] == evaluation.Status.PASSING,
        stuck=_is_stuck(figures.get("quality")),
    )
    found = _power(rollout, figures, traffic, standing, elapsed_minutes)
    return Outlook(forecast, by_allocation(found, rollout.allocation_type))


def _is_stuck(quality: Mapping[str, Any] | None) -> bool:
    asked = [one for one in quality["evaluators"] if one["title"] in quality["required"]] if quality else []
    return any(one["not_passing"] in NOT_BY_WAITING for one in asked)


def by_allocation(power: Power | None, allocation_type: str) -> Power | None:
    if power is None or not power.sentences or allocation_type == AllocationType.RANDOM:
        return power
    return replace(power, sentences=(*power.sentences, STICKY))


def _power(
    rollout: Rollout, figures: Mapping[str, Any], traffic: Traffic, standing: _Standing, elapsed_minutes: float
) -> Power | None:
    if traffic.per_minute is None:
        return None
    baseline = figures["counts"]["baseline"]
    usual = evaluation.Traffic(
        per_minute=traffic.per_minute,
        unanswered=baseline["unanswered"] / baseline["requests"] if baseline["requests"] else 0.0,
        latency=standing.latency.values or None,
        reference=standing.latency.reference,
    )
    stages = [stage.plan for stage in rollout.stages.all() if stage.number >= rollout.current_stage]
    return power(stages, usual, elapsed_minutes=elapsed_minutes, served=standing.served)


def _standing(rollout: Rollout) -> _Standing:
    stage, target, latency = (
        RolloutEvaluation.objects.filter(pk=rollout.pk)
        .values_list("state__stage", "state__stage_target", "state__latency")
        .get()
    )
    served = target["requests"] - target["unanswered"] if target else 0
    return _Standing(
        served if stage == rollout.current_stage else 0, from_json(Learning, latency) if latency else Learning()
    )
