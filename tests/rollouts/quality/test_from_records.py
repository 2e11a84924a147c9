"""The whole way of scores: records in ClickHouse, the sample, its tasks, and the minutes of the verdict."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from analytics.models import EvaluationTask, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from analytics.online_evaluations.follow import follow_log
from rollouts.allocation import AllocationType
from rollouts.evaluation import from_json
from rollouts.evaluation.quality import QualityMinute
from rollouts.models import RolloutEvaluation, RolloutQualityMinute
from rollouts.quality.entries import QualityEntry
from rollouts.verdicts.evaluate import evaluate_rollout
from tests.factories.analytics import store_as_of_then
from tests.rollouts.conftest import Api
from tests.rollouts.quality.tasks import matched
from tests.rollouts.replay import replayed_figures
from tests.rollouts.request_log import this_minute
from tests.rollouts.test_metrics_api import entries, running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clickhouse", "still_clock")]


def test_sticky_records__sampled_and_scored__judged_by_user(api: Api, spool: Path) -> None:
    sample = matched(api.project)
    rollout = running(api, allocation_type=AllocationType.USER_STICKY, quality=[QualityEntry(sample.evaluator_id)])
    made = entries(rollout, 600, users=60)
    store_as_of_then(spool, *made)
    before = this_minute() - timedelta(minutes=10)
    OnlineEvaluation.objects.update(sampled_until=before, active_since=before)
    assert not follow_log(this_minute())
    tasks = EvaluationTask.objects.all()
    assert {task.rollout_id for task in tasks} == {rollout.pk}
    assert tasks.filter(variant="target").count() == tasks.filter(variant="baseline").count() > 50
    for task in tasks:
        score = 0.5 if task.variant == "target" else 1.0
        ended = {"state": TaskState.DONE, "score": score, "ended_at": task.due_at + timedelta(minutes=1)}
        EvaluationTask.objects.filter(pk=task.pk).update(**ended)

    evaluate_rollout(rollout.pk)

    units = {str(entry.record.request_id): entry.record.alloc_unit for entry in made}
    expected = {task.position: units[str(task.request_id)] % 10_000 for task in tasks}
    minutes = [from_json(QualityMinute, one.tasks) for one in RolloutQualityMinute.objects.all()]
    arms = [arm for one in minutes for own in one.evaluators.values() for arm in (own.target, own.baseline)]
    assert {task.order: task.user for arm in arms for task in arm.tasks} == expected
    # Each of the users has ten requests or nearly so, all in one arm.
    assert sum(len(arm.users) for arm in arms) >= 6
    figures = RolloutEvaluation.objects.get(rollout=rollout).verdict
    assert replayed_figures(rollout, figures) == figures
