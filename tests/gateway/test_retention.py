"""Scores and feedback leave the SQL database when their project's requests leave the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.models import Feedback, Score
from analytics.scores.services import NewScore, record_feedback, record_score
from core.models import Project
from gateway.retention import expire_judgements
from gateway.tasks import nightly
from tests.factories.core import make_project
from tests.factories.settings import make_settings

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def judge(project: Project, days_ago: float) -> None:
    made = NOW - timedelta(days=days_ago)
    score = record_score(
        project_id=project.pk, score=NewScore(request_id="r", score_name="s", score_value=1.0), actor="key:1"
    )
    feedback = record_feedback(project_id=project.pk, session_id="s", score=3, text="", actor="key:1")
    Score.objects.filter(pk=score.row.pk).update(created_at=made)
    Feedback.objects.filter(pk=feedback.pk).update(created_at=made)


def test_judgements__past_their_projects_retention__are_deleted_and_others_stay() -> None:
    short, usual = make_project(), make_project()
    make_settings(short, retention_days=30)
    for project in (short, usual):
        for days_ago in (1, 29, 31, 399, 401):
            judge(project, days_ago)

    assert expire_judgements(NOW) == 2 * (3 + 1)

    for table in (Score, Feedback):
        assert table.objects.filter(project=short).count() == 2
        assert table.objects.filter(project=usual).count() == 4
    assert expire_judgements(NOW) == 0


@pytest.mark.parametrize(("hours_ago", "retained"), [(27, 1), (28, 0)])
def test_retention__counts_utc_days(hours_ago: int, retained: int) -> None:
    """At three in the morning, a retention of two days covers yesterday and today."""
    project = make_project()
    make_settings(project, retention_days=2)
    judge(project, hours_ago / 24)

    expire_judgements(NOW)

    assert Score.objects.filter(project=project).count() == retained


def test_task__runs_without_anything_to_do() -> None:
    make_project()
    nightly()
