from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollouts.allocation import AllocationType
from rollouts.evaluation import ArmCounts, MinuteCounts, Policy, advance, initial_state, to_json
from rollouts.forecasts.outlook import Outlook, outlook
from rollouts.models import Rollout, RolloutEvaluation, RolloutMinute, RolloutTransition
from rollouts.states import Stage
from tests.factories.rollouts import make_rollout
from tests.rollouts.evaluation.minutes import USUAL_COST, USUAL_MS

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
COUNTS: dict[str, Any] = {"baseline": {"requests": 1000, "unanswered": 20}}


def running(per_minute: int = 60, state: Any = None, **fields: Any) -> Rollout:
    """Returns a rollout that has run for an hour at so many requests a minute."""
    stages = [Stage(10, 60, 100), Stage(50, 60, 400), Stage(100, 0, 0)]
    rollout = make_rollout(started=True, **{"stages": stages, **fields})
    began = NOW - timedelta(hours=1)
    RolloutTransition.objects.filter(rollout=rollout, action="start").update(created_at=began)
    for number in range(60) if per_minute else []:
        at = began + timedelta(minutes=number)
        target, baseline = ArmCounts(requests=per_minute // 10), ArmCounts(requests=per_minute - per_minute // 10)
        counts = to_json(MinuteCounts(int(at.timestamp()) // 60, 1, 10, target, baseline))
        RolloutMinute.objects.create(rollout=rollout, minute=at, stage=1, counts=counts)
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=NOW, state=state)
    return Rollout.objects.select_related("evaluation").get(pk=rollout.pk)


def outlook_of(rollout: Rollout, *, elapsed: float = 0.0, **changes: Any) -> Outlook:
    figures = {"status": "inconclusive", "counts": COUNTS, **changes}
    found = outlook(rollout, figures, elapsed_minutes=elapsed)
    assert found is not None
    return found


def test_outlook__an_hour_of_traffic__a_typical_fall_and_what_cannot_be_found() -> None:
    found = outlook_of(running())
    assert found.forecast.requests_per_minute == 60
    assert found.power is not None
    assert found.power.fall.answered_share == pytest.approx(0.98)
    assert found.power.fall.fallen_to == pytest.approx(0.94)
    assert "At 60 requests a minute a fall from 98 % to 94 % of answers" in found.power.sentences[0]
    assert "minutes" in found.power.sentences[0] or "hours" in found.power.sentences[0]


def test_outlook__more_traffic__found_sooner() -> None:
    slow, quick = outlook_of(running(20)).power, outlook_of(running(200)).power
    assert slow is not None
    assert quick is not None
    assert slow.fall.minutes is None or slow.fall.minutes > (quick.fall.minutes or 0)
    assert quick.fall.minutes is not None


def test_outlook__state_is_there__served_and_latencies_are_known() -> None:
    state = initial_state(Policy(), latency=USUAL_MS, cost=USUAL_COST, weights=(10, 50, 100), sticky=False)
    for number in range(1, 11):
        minute = MinuteCounts(number, 1, 10, ArmCounts(requests=10, unanswered=4), ArmCounts(requests=50))
        state = advance(state, minute)
    found = outlook_of(running(state=to_json(state)))
    # The stage needs 100 answers, has 60, and gets 6 requests a minute.
    assert found.forecast.minutes_to_minima == pytest.approx(60.0)
    assert outlook_of(running(state=to_json(state)), elapsed=59.0).forecast.minutes_to_minima == pytest.approx(40 / 6)
    assert found.power is not None
    assert found.power.slower_minutes is not None
    assert "1.3 times as slow" in " ".join(found.power.sentences)


def test_outlook__sticky__says_that_it_takes_longer() -> None:
    power = outlook_of(running(allocation_type=AllocationType.USER_STICKY)).power
    assert power is not None
    assert "sticky allocation it takes longer" in power.sentences[-1]


def test_outlook__no_traffic_known__no_power() -> None:
    rollout = running(0)
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=None)
    rollout = Rollout.objects.select_related("evaluation").get(pk=rollout.pk)
    assert (outlook_of(rollout).power, outlook_of(rollout).forecast.minutes_to_minima) == (None, None)


@pytest.mark.parametrize(("why", "waits"), [("not_certain", True), ("uncalibrated", False), ("missing_scores", False)])
def test_outlook__required_evaluator_that_is_stuck__is_not_waited_for(why: str, waits: bool) -> None:
    rollout = running(stages=[Stage(50, 60, 0), Stage(100, 0, 0)])
    quality = {"required": ["tone@1"], "evaluators": [{"title": "tone@1", "not_passing": why}]}
    text = outlook_of(rollout, elapsed=90, quality=quality).forecast.explanation
    assert ("it waits until the evidence is enough" in text, "does not pass by waiting" in text) == (waits, not waits)


def test_outlook__not_running__none() -> None:
    assert outlook(make_rollout(), {}, elapsed_minutes=0.0) is None
