"""The outlook of a running rollout at today's traffic: the duration of its stage, and the detectable faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollouts import evaluation
from rollouts.allocation import AllocationType
from rollouts.evaluation import Power, from_json, power
from rollouts.evaluation.statistics.learning import Learning
from rollouts.forecasts.stage import StageForecast, Traffic, stage_forecast, traffic_today
from rollouts.models import Rollout, RolloutEvaluation
from rollouts.states import Stage, Status

STICKY = "Requests of one user resemble each other: with sticky allocation it takes longer than that."


@dataclass(frozen=True, slots=True)
class Outlook:
    """The outlook of a running rollout. `power` is None while no traffic is known. `sentences` explain which faults can
    be found."""

    forecast: StageForecast
    power: Power | None
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Standing:
    """The part of the state that the outlook needs: answered requests of the target in the present stage, and the
    usual latencies."""

    served: int
    latency: Learning


def outlook(rollout: Rollout, figures: Mapping[str, Any], *, elapsed_minutes: float) -> Outlook | None:
    """Returns the outlook, or None for a rollout that is not running. `figures` are those of the latest verdict;
    `elapsed` is the time that the present stage has been running."""
    if rollout.status != Status.RUNNING:
        return None
    traffic, standing = traffic_today(rollout), _standing(rollout)
    forecast = stage_forecast(
        rollout,
        traffic,
        served=standing.served,
        elapsed_minutes=elapsed_minutes,
        passes=figures["status"] == evaluation.Status.PASSING,
    )
    found = _power(rollout, figures, traffic, standing, elapsed_minutes)
    sentences = found.sentences if found else ()
    if sentences and rollout.allocation_type != AllocationType.RANDOM:
        sentences = (*sentences, STICKY)
    return Outlook(forecast, found, sentences)


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
    stages = [stage for stage in rollout.stages.all() if stage.number >= rollout.current_stage]
    return power(
        [Stage(stage.weight, stage.min_duration_minutes, stage.min_requests, stage.settle_minutes) for stage in stages],
        usual,
        elapsed_minutes=elapsed_minutes,
        served=standing.served,
    )


def _standing(rollout: Rollout) -> _Standing:
    """Returns the part of the stored state that the outlook needs, without reading the whole state, which is large."""
    stage, target, latency = (
        RolloutEvaluation.objects.filter(pk=rollout.pk)
        .values_list("state__stage", "state__stage_target", "state__latency")
        .get()
    )
    served = target["requests"] - target["unanswered"] if target else 0
    return _Standing(
        served if stage == rollout.current_stage else 0, from_json(Learning, latency) if latency else Learning()
    )
