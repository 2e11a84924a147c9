"""Beat asks the questions of `core.fleet.schedule.sent_if` before it sends a task: each says yes when there is work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone

from analytics.models import Deletion, DeletionKind, OnlineEvaluation
from analytics.models.online_evaluations import TaskState
from config.celery import app
from core.fleet import schedule
from core.models import Project
from gateway.models import Shadow
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertChannel, AlertEvent, FigureAlert
from integrations.models import ProviderIntegration
from rollouts.models import Rollout
from rollouts.states import Status
from tests.factories.core import make_project
from tests.factories.evaluators import make_evaluator
from tests.factories.online_evaluations import make_online_evaluation, new_task
from tests.factories.reviews import make_queue
from tests.factories.rollouts import make_rollout
from tests.factories.scores import make_score
from tests.factories.settings import make_settings
from tests.gateway.experiments.stored import make_experiment, pair

pytestmark = pytest.mark.django_db

_LATER, _EARLIER = timedelta(hours=1), timedelta(minutes=-2)


def sent() -> set[str]:
    app.loader.import_default_modules()
    names = {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    return {name for name in names & set(app.tasks) if schedule.is_due(app.tasks[name].run)}


def deletion(project: Project, ahead: timedelta) -> None:
    Deletion.objects.create(project=project, kind=DeletionKind.SESSION, look_at=timezone.now() + ahead)


def figure_alert(project: Project, ahead: timedelta) -> None:
    at = timezone.now() + ahead
    FigureAlert.objects.create(
        project=project, name="a", query={}, condition="above", threshold=1, window_minutes=15, next_check_at=at
    )


def delivery(project: Project, ahead: timedelta) -> None:
    channel = AlertChannel.objects.create(project=project, name="c", kind="email", emails=["ann@example.com"])
    event = AlertEvent.objects.create(project=project, kind="test")
    AlertDelivery.objects.create(event=event, receiver=channel, channel="email", next_attempt_at=timezone.now() + ahead)


def budget(project: Project, _: timedelta) -> None:
    make_settings(project, monthly_budget_usd=1, budget_alert_enabled=True)


def guardrails(project: Project, _: timedelta) -> None:
    make_settings(project, guardrails_enabled=True)


def score(project: Project, _: timedelta) -> None:
    make_score(project)


def integration(project: Project, _: timedelta) -> None:
    ProviderIntegration.objects.create(project=project, provider="openai", enabled=True)


def running_rollout(_: Project, __: timedelta) -> None:
    make_rollout(started=True)


def completed_rollout(_: Project, __: timedelta) -> None:
    rollout = make_rollout(started=True)
    Rollout.objects.filter(pk=rollout.pk).update(status=Status.COMPLETED.value, ended_at=timezone.now())


def experiment(project: Project, ahead: timedelta) -> None:
    make_experiment(project, [pair(1, 0)], claimed_until=timezone.now() + ahead)


def evaluation(project: Project, ahead: timedelta) -> None:
    made = make_online_evaluation(make_evaluator(project))
    OnlineEvaluation.objects.filter(pk=made.pk).update(sampled_until=timezone.now() + ahead)


def answer_to_judge(project: Project, _: timedelta) -> None:
    new_task(make_online_evaluation(make_evaluator(project)), state=TaskState.DUE, reason="", ended_at=None).save()


def shadow(project: Project, ahead: timedelta) -> None:
    now = timezone.now()
    Shadow.objects.create(
        experiment=make_experiment(project, [pair(1, 0)]),
        prompt_config_id=uuid4(),
        baseline_number=1,
        rate=1.0,
        since=now,
        followed_until=now + ahead,
    )


def label_queue(project: Project, _: timedelta) -> None:
    make_queue(project, evaluator=make_evaluator(project), due_labels=True)


def test_nothing_to_do__no_task_with_a_question_is_sent() -> None:
    assert sent() <= {"gateway.nightly", "gateway.score_labelled", "integrations.sync_pricing"}


@pytest.mark.parametrize(
    ("make", "task"),
    [
        (deletion, "analytics.finish_deletions"),
        (budget, "gateway.check_alerts"),
        (figure_alert, "gateway.check_alerts"),
        (delivery, "gateway.check_alerts"),
        (guardrails, "gateway.score_verdicts"),
        (score, "gateway.score_verdicts"),
        (integration, "integrations.refresh_model_lists"),
        (running_rollout, "rollouts.evaluate"),
        (completed_rollout, "rollouts.evaluate"),
        (experiment, "gateway.judge"),
        (answer_to_judge, "gateway.judge"),
        (evaluation, "gateway.follow_log"),
        (shadow, "gateway.follow_log"),
        (label_queue, "gateway.follow_log"),
    ],
)
def test_something_to_do__its_task_is_sent(make: Callable[[Project, timedelta], None], task: str) -> None:
    make(make_project(), _EARLIER)

    assert task in sent()


@pytest.mark.parametrize(
    ("make", "task"),
    [
        (deletion, "analytics.finish_deletions"),
        (figure_alert, "gateway.check_alerts"),
        (delivery, "gateway.check_alerts"),
        (experiment, "gateway.judge"),
        (evaluation, "gateway.follow_log"),
        (shadow, "gateway.follow_log"),
    ],
)
def test_due_later__not_sent_yet(make: Callable[[Project, timedelta], None], task: str) -> None:
    make(make_project(), _LATER)

    assert task not in sent()
