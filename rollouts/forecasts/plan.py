from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from analytics.queries.variants.totals import ConfigTraffic, config_traffic
from prompts.selectors import get_config
from rollouts import evaluation
from rollouts.allocation import AllocationType
from rollouts.evaluation import Policy, Power, power
from rollouts.evaluation.policy import CONTROLLED_WEIGHT
from rollouts.evaluation.statistics.grid import LOG_RATIO
from rollouts.evaluation.statistics.reference import reference_from
from rollouts.evaluation.threshold_costs import sentences
from rollouts.evaluation.words import in_words
from rollouts.forecasts.outlook import by_allocation
from rollouts.forecasts.stage import TODAY
from rollouts.states import Stage
from rollouts.verdicts.minutes import ordered

DEFAULTS = Policy()
MIN_OBSERVED = timedelta(hours=1)
"""The shortest time over which requests are averaged, so that the first few of a new config do not look like a rush."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """`begins_after_minutes` and `minutes` are the minutes before the stage and in it until both minima are met,
    `target_requests` the target's requests by then; None if no traffic is known."""

    stage: Stage
    begins_after_minutes: float | None
    minutes: float | None
    target_requests: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The rates are those of the last 24 hours; they and `power` are None without traffic. With `evidence_decides` a
    stage waits for the evidence beside its minima. `threshold_costs` are sentences on thresholds of one's own."""

    request_count: int
    requests_per_minute: float | None
    unanswered_rate: float | None
    stages: tuple[StagePlan, ...]
    evidence_decides: bool
    power: Power | None
    threshold_costs: tuple[str, ...] = ()

    @property
    def minutes(self) -> float | None:
        known = [stage.minutes for stage in self.stages if stage.minutes is not None]
        return sum(known) if len(known) == len(self.stages) else None

    @property
    def explanation(self) -> str:
        if self.requests_per_minute is None:
            return "The duration of the stages is unknown: the prompt config had no requests in the last 24 hours."
        pace = f"At today's {self.requests_per_minute:.3g} requests a minute"
        if self.minutes is None:
            return f"{pace} none is answered, and the stages never end."
        then = ""
        if self.evidence_decides:
            then = f" From {CONTROLLED_WEIGHT} % on each of them waits until the evidence is enough to pass."
        text = f"{pace} the stages take about {in_words(self.minutes)} if no metric holds them.{then}"
        return " ".join([text, *self.threshold_costs])


def plan_rollout(
    project_id: UUID,
    config_id: UUID,
    stages: Sequence[Stage],
    allocation_type: AllocationType,
    policy: Policy = DEFAULTS,
) -> Plan:
    get_config(project_id, config_id)
    now = timezone.now()
    traffic = config_traffic(project_id, config_id, now - TODAY, now, log_ratio=LOG_RATIO)
    return plan_of(traffic, stages, allocation_type, now=now, policy=policy)


def plan_of(
    traffic: ConfigTraffic,
    stages: Sequence[Stage],
    allocation_type: AllocationType,
    *,
    now: datetime,
    policy: Policy = DEFAULTS,
) -> Plan:
    per_minute, unanswered = _rates(traffic, now)
    planned = tuple(_planned(stages, per_minute, unanswered or 0.0))
    usual = _traffic(traffic, per_minute, unanswered or 0.0)
    found = by_allocation(power(stages, usual) if usual else None, allocation_type)
    evidence_decides = any(CONTROLLED_WEIGHT <= stage.weight < 100 for stage in stages)
    costs = tuple(sentences(policy, usual, _deciding(stages))) if usual else ()
    return Plan(traffic.requests, per_minute, unanswered, planned, evidence_decides, found, costs)


def _deciding(stages: Sequence[Stage]) -> int:
    """Returns the weight at which metrics have to pass, or the highest one that has a baseline."""
    compared = [stage.weight for stage in stages if stage.weight < 100] or [CONTROLLED_WEIGHT]
    return next((weight for weight in compared if weight >= CONTROLLED_WEIGHT), compared[-1])


def _rates(traffic: ConfigTraffic, now: datetime) -> tuple[float | None, float | None]:
    if not traffic.requests or traffic.first_at is None:
        return None, None
    observed = max(MIN_OBSERVED, now - traffic.first_at)
    return traffic.requests / (observed.total_seconds() / 60), traffic.unanswered / traffic.requests


def _planned(stages: Sequence[Stage], per_minute: float | None, unanswered: float) -> list[StagePlan]:
    planned: list[StagePlan] = []
    begins: float | None = 0.0
    for stage in stages:
        allocated = (per_minute or 0.0) * stage.weight / 100
        answered = allocated * (1 - unanswered)
        minutes: float | None = float(stage.min_duration_minutes)
        if stage.min_requests:
            minutes = max(stage.min_duration_minutes, stage.min_requests / answered) if answered else None
        requests = None if minutes is None or per_minute is None else allocated * minutes
        planned.append(StagePlan(stage, begins, minutes, requests))
        begins = None if begins is None or minutes is None else begins + minutes
    return planned


def _traffic(traffic: ConfigTraffic, per_minute: float | None, unanswered: float) -> evaluation.Traffic | None:
    if per_minute is None:
        return None
    latency = ordered(traffic.latency)
    return evaluation.Traffic(per_minute, unanswered, latency or None, reference_from(latency))
