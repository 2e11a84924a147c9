"""Evaluations beside each other and beside failures, and the log lines for operators."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from rollouts.models import RolloutEvaluation, RolloutMinute
from rollouts.services import pause_rollout
from rollouts.states import Stage
from rollouts.tasks import evaluate_rollouts
from rollouts.verdicts import minutes, recorded
from rollouts.verdicts.evaluate import evaluate_rollout, evaluate_running_rollouts
from tests.rollouts.automatic import automatic, evaluation
from tests.rollouts.request_log import RequestLog, this_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "info_logs")]


def test_claim__held_by_another__left_alone_until_it_expires(log: RequestLog) -> None:
    rollout, now, theirs = automatic(), timezone.now(), uuid4()
    rows = RolloutEvaluation.objects.filter(rollout=rollout)
    rows.update(claim=theirs, claimed_until=now + timedelta(minutes=1))
    assert evaluate_rollout(rollout.pk) is None
    assert evaluation(rollout).claim == theirs
    rows.update(claimed_until=now - timedelta(seconds=1))
    assert evaluate_rollout(rollout.pk) is not None
    assert (evaluation(rollout).claim, evaluation(rollout).claimed_until) == (None, None)


def test_claim__lost_while_reading__nothing_saved(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout, theirs = automatic(), uuid4()
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))

    def slow(*args: Any, **options: Any) -> Any:
        RolloutEvaluation.objects.filter(rollout=rollout).update(claim=theirs)
        return log.recorded_minutes(*args, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", slow)
    assert evaluate_rollout(rollout.pk) is None
    assert evaluation(rollout).claim == theirs
    assert not RolloutMinute.objects.exists()


def test_paused_while_reading__minutes_kept_and_nothing_moved(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = automatic()
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))

    def slow(*args: Any, **options: Any) -> Any:
        pause_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="key:1")
        return log.recorded_minutes(*args, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", slow)
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert judgement.moved is None
    rollout.refresh_from_db()
    assert rollout.status == "paused"
    assert RolloutMinute.objects.filter(rollout=rollout).count() == 1


def test_analytics_away__held_logged_and_claim_released(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic()
    log.away = True
    evaluate_rollouts()
    assert f"rollout.evaluation_failed rollout_id={rollout.pk} error=AnalyticsUnavailableError" in caplog.text
    assert evaluation(rollout).claim is None
    log.away = False
    assert len(evaluate_running_rollouts()) == 1


@pytest.mark.parametrize("problem", [AnalyticsLimitError("too much"), KeyError("counts")])
def test_one_cannot_be_evaluated__the_others_are(
    log: RequestLog, monkeypatch: pytest.MonkeyPatch, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = automatic(), automatic()

    def one_fails(rows: Any, **options: Any) -> Any:
        if rows.rollout_id == first.pk:
            raise problem
        return log.recorded_minutes(rows, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", one_fails)
    assert [judgement.rollout_id for judgement in evaluate_running_rollouts()] == [second.pk]
    assert f"rollout.evaluation_failed rollout_id={first.pk}" in caplog.text


def test_analytics_away__many_rollouts__queried_twice(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        automatic()
    calls = []

    def away(*args: Any, **_: Any) -> Any:
        calls.append(args)
        raise AnalyticsUnavailableError("away")

    monkeypatch.setattr(minutes, "usual_values", away)
    assert evaluate_running_rollouts() == []
    assert len(calls) == 2


def test_analytics_away_for_some__the_others_are_evaluated(log: RequestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = [automatic() for _ in range(4)]
    order = list(reversed(rollouts))
    for number, rollout in enumerate(order):
        through = this_minute() - timedelta(minutes=9 - number)
        RolloutEvaluation.objects.filter(rollout=rollout).update(through=through)
    lost = {order[0].pk, order[2].pk}

    def sometimes_away(rows: Any, **options: Any) -> Any:
        if rows.rollout_id in lost:
            raise AnalyticsUnavailableError("away")
        return log.recorded_minutes(rows, **options)

    monkeypatch.setattr(recorded, "recorded_minutes", sometimes_away)
    assert [one.rollout_id for one in evaluate_running_rollouts()] == [order[1].pk, order[3].pk]


def test_order__never_evaluated_and_longest_ago__first(log: RequestLog) -> None:
    new, older, newer = automatic(), automatic(), automatic()
    for rollout, ago in ((newer, 2), (older, 7)):
        through = this_minute() - timedelta(minutes=ago)
        RolloutEvaluation.objects.filter(rollout=rollout).update(through=through)
    assert [one.rollout_id for one in evaluate_running_rollouts()] == [new.pk, older.pk, newer.pk]


def test_overdue__more_than_a_day__logged_once_a_stage(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    rollout = automatic(Stage(50, 0, 5), Stage(100, 0, 0), minutes_ago=60 * 24 + 30)
    for _ in range(3):
        evaluate_rollout(rollout.pk)
        RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=2))
    assert caplog.text.count("rollout.overdue") == 1
    assert evaluation(rollout).verdict["overdue"] is True


def test_held_by_a_metric__logged_when_it_begins(log: RequestLog, caplog: pytest.LogCaptureFixture) -> None:
    policy = {"error_rate": "hold", "unanswered": "hold"}
    rollout = automatic(Stage(50, 0, 5), Stage(100, 0, 0), policy=policy)
    log.add(rollout, 5, target=(40, 30), baseline=(40, 0))
    evaluate_rollout(rollout.pk)
    RolloutEvaluation.objects.filter(rollout=rollout).update(through=this_minute() - timedelta(minutes=2))
    judgement = evaluate_rollout(rollout.pk)
    assert judgement is not None
    assert (judgement.moved, judgement.verdict.reason) == (None, "metric_failing")
    assert caplog.text.count("rollout.held") == 1
