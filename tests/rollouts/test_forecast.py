from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rollouts.evaluation import ArmCounts, MinuteCounts, to_json
from rollouts.forecasts.stage import StageForecast, Traffic, stage_forecast, traffic_today
from rollouts.models import Rollout, RolloutMinute, RolloutTransition
from rollouts.states import Stage
from tests.factories.rollouts import make_rollout
from tests.tables.cases import tabled

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def running(weight: int = 10, *, minutes: int = 60, requests: int = 100) -> Rollout:
    return make_rollout(started=True, stages=[Stage(weight, minutes, requests), Stage(100, 0, 0)])


def moved(rollout: Rollout, *, started_hours_ago: float, paused_hours_ago: float | None = None) -> Rollout:
    """Returns the rollout as if it had started at that time, been paused for an hour if `paused`, and been evaluated
    until now."""
    RolloutTransition.objects.filter(rollout=rollout, action="start").update(
        created_at=NOW - timedelta(hours=started_hours_ago)
    )
    if paused_hours_ago is not None:
        for action, status, hours in (
            ("pause", "paused", paused_hours_ago),
            ("start", "running", paused_hours_ago - 1),
        ):
            row = RolloutTransition.objects.create(rollout=rollout, action=action, to_status=status, actor="test")
            RolloutTransition.objects.filter(pk=row.pk).update(created_at=NOW - timedelta(hours=hours))
    rollout.evaluation.through = NOW
    rollout.evaluation.save()
    return rollout


def minute(rollout: Rollout, hours_ago: float, target: int, baseline: int) -> None:
    at = NOW - timedelta(hours=hours_ago)
    counts = MinuteCounts(int(at.timestamp()) // 60, 1, 10, ArmCounts(requests=target), ArmCounts(requests=baseline))
    RolloutMinute.objects.create(rollout=rollout, minute=at, stage=1, counts=to_json(counts))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("started", "paused", "minutes"), [(4.0, None, 240.0), (4.0, 2.0, 180.0), (30.0, None, 1440.0)]
)
def test_traffic__a_days_minutes__over_the_time_that_it_ran(
    started: float, paused: float | None, minutes: float
) -> None:
    rollout = moved(running(), started_hours_ago=started, paused_hours_ago=paused)
    minute(rollout, 25.0, 1000, 1000)
    minute(rollout, 3.5, 10, 90)
    minute(rollout, 0.5, 12, 88)
    assert traffic_today(rollout) == Traffic(200, minutes)


@pytest.mark.django_db
def test_traffic__never_evaluated__nothing_is_known() -> None:
    assert traffic_today(running()).per_minute is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("elapsed", "served", "minutes", "missing"),
    [(0.0, 0, 100.0, 100), (30.0, 80, 30.0, 20), (30.0, 60, 40.0, 40), (90.0, 120, 0.0, 0)],
)
def test_forecast__both_minima__the_later_one(elapsed: float, served: int, minutes: float, missing: int) -> None:
    found = stage_forecast(running(), Traffic(100, 10.0), served=served, elapsed_minutes=elapsed, passes=False)
    assert found == StageForecast(10.0, minutes, evidence_decides=False, missing_requests=missing)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("weight", "passes", "decides"), [(49, False, False), (50, False, True), (50, True, False), (100, False, False)]
)
def test_forecast__from_half_on__evidence_decides(weight: int, passes: bool, decides: bool) -> None:
    rollout = make_rollout(started=True, stages=[Stage(weight, 0, 0)])
    found = stage_forecast(rollout, Traffic(600, 10.0), served=0, elapsed_minutes=0, passes=passes)
    assert (found.evidence_decides, "until the evidence" in found.explanation) == (decides, decides)


@tabled
def test_sentence__each_case__says_what_is_known(forecast: StageForecast, sentence: str) -> None:
    assert forecast.explanation == sentence
