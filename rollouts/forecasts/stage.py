from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from analytics.queries.variants import BASELINE, TARGET
from rollouts.evaluation.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.words import in_words
from rollouts.models import Rollout, RolloutMinute, RolloutStage, RolloutTransition
from rollouts.states import Status

TODAY = timedelta(days=1)
"""The time that the forecast looks back: a whole day, so that nights count."""


_STUCK = "it is held by an evaluator that is required and does not pass by waiting"


@dataclass(frozen=True, slots=True)
class Traffic:
    requests: int
    minutes: float

    @property
    def per_minute(self) -> float | None:
        return self.requests / self.minutes if self.minutes >= 1 else None


@dataclass(frozen=True, slots=True)
class StageForecast:
    """`minutes_to_minima` is 0 when both minima of the stage are met, None if the rollout does not run or no request
    came today. `missing_requests` are the target's that the stage still needs. With `evidence_decides` the stage then
    waits for the evidence, which in a rollout that is `stuck` never comes."""

    requests_per_minute: float | None
    minutes_to_minima: float | None
    evidence_decides: bool
    missing_requests: int = 0
    stuck: bool = False

    @property
    def explanation(self) -> str:
        if self.requests_per_minute is None or self.minutes_to_minima is None:
            return "How long this stage takes cannot be estimated: no requests of today are known."
        traffic = f"At today's {self.requests_per_minute:.3g} requests a minute"
        then = ""
        if self.evidence_decides:
            then = f" Then {_STUCK if self.stuck else 'it waits until the evidence is enough to pass'}."
        if self.minutes_to_minima == 0:
            return f"{traffic} both minima of this stage are met.{then}"
        return f"{traffic} both minima of this stage are met in about {in_words(self.minutes_to_minima)}.{then}"


def traffic_today(rollout: Rollout) -> Traffic:
    """Returns the traffic of the judged minutes, so that a lagging evaluation does not look like a lack of requests."""
    through = rollout.evaluation.through
    if through is None:
        return Traffic(0, 0.0)
    since = through - TODAY
    counts = RolloutMinute.objects.filter(rollout=rollout, minute__gte=since).values_list(
        *(f"counts__{arm}__{name}" for arm in (TARGET, BASELINE) for name in ("requests", "uncompared"))
    )
    requests = sum(int(number or 0) for minute in counts for number in minute)
    return Traffic(requests, _minutes_running(rollout.transitions.all(), since, through))


def stage_forecast(
    rollout: Rollout, traffic: Traffic, *, served: int, elapsed_minutes: float, passes: bool, stuck: bool = False
) -> StageForecast:
    stage = rollout.stages.all()[rollout.current_stage - 1]
    return StageForecast(
        traffic.per_minute,
        _minutes_left(stage, traffic, served, elapsed_minutes),
        evidence_decides=CONTROLLED_WEIGHT <= stage.weight < 100 and not passes,
        missing_requests=max(0, stage.min_requests - served),
        stuck=stuck,
    )


def _minutes_left(stage: RolloutStage, traffic: Traffic, served: int, elapsed_minutes: float) -> float | None:
    missing = max(0, stage.min_requests - served)
    own = (traffic.per_minute or 0.0) * stage.weight / 100
    if traffic.per_minute is None or (missing and not own):
        return None
    return max(0.0, stage.min_duration_minutes - elapsed_minutes, missing / own if missing else 0.0)


def _minutes_running(transitions: Iterable[RolloutTransition], since: datetime, until: datetime) -> float:
    total, began = timedelta(), None
    for move in transitions:
        runs = move.to_status == Status.RUNNING
        if runs and began is None:
            began = move.created_at
        elif not runs and began is not None:
            total += max(timedelta(), min(move.created_at, until) - max(began, since))
            began = None
    if began is not None:
        total += max(timedelta(), until - max(began, since))
    return total.total_seconds() / 60
