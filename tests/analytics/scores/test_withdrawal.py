"""Deleted scores and feedback are withdrawn from ClickHouse, also when their copies arrive later."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.clickhouse import client
from analytics.identifiers import id_hash
from analytics.models import CopyWithdrawal, Feedback, Score
from analytics.scores.services import (
    delete_feedback_before,
    delete_feedback_of_hash,
    delete_scores_before,
    delete_scores_of,
    record_feedback,
)
from analytics.scores.sync.run import copy_due
from analytics.tasks import copy_scores
from core.models import Project
from tests.analytics.scores.copied import feedback_copies, physical, values
from tests.factories.core import make_project
from tests.factories.scores import make_score
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def test_delete_scores__copied__gone_from_both(project: Project) -> None:
    other = make_project()
    request_id = str(uuid4())
    make_score(project, request_id=request_id, score_value=1)
    make_score(project, request_id=request_id, score_value=2)
    make_score(project, request_id="kept", score_value=3)
    make_score(other, request_id=request_id, score_value=4)
    copy_due()

    assert delete_scores_of(project.pk, [UUID(request_id), "nobody"]) == 2
    assert list(Score.objects.for_project(project.pk).values_list("score_value", flat=True)) == [3]
    copy_due()

    assert values(project) == [3]
    assert values(other) == [4]
    assert physical() == [2, 0]
    assert not CopyWithdrawal.objects.exists()


def test_delete_scores__many__in_several_steps(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.scores.services._ROWS_AT_ONCE", 2)
    for number in range(5):
        make_score(project, request_id=f"r{number}", score_value=number)
        make_score(project, request_id="same", score_value=number)

    assert delete_scores_of(project.pk, [*(f"r{number}" for number in range(5)), "same"]) == 10

    assert not Score.objects.exists()
    assert CopyWithdrawal.objects.count() == 10
    assert delete_scores_of(project.pk, ["same"]) == delete_scores_of(project.pk, []) == 0


def test_delete_scores__copy_arrives_afterwards__not_seen(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    make_score(project)
    late: list[Any] = []
    insert = client.insert
    monkeypatch.setattr(client, "insert", lambda *args, **options: late.append((args, options)))
    copy_due()
    monkeypatch.setattr(client, "insert", insert)

    delete_scores_of(project.pk, ["r-1"])
    copy_due()
    for args, options in late:
        insert(*args, **options)

    assert values(project) == []


def test_delete__store_away__catches_up_later(project: Project) -> None:
    make_score(project)
    record_feedback(project_id=project.pk, session_id="s", score=4, text="", actor="")
    copy_scores()

    with store_away():
        assert delete_scores_of(project.pk, ["r-1"]) == delete_feedback_of_hash(project.pk, id_hash("s")) == 1
        copy_scores()
        assert CopyWithdrawal.objects.count() == 2
    copy_scores()

    assert values(project) == []
    assert feedback_copies(project) == []
    assert physical() == [0, 0]


def test_delete_feedback__of_one_session__others_stay(project: Project) -> None:
    for session_id in ("a/b", "a"):
        record_feedback(project_id=project.pk, session_id=session_id, score=5, text="", actor="")
        record_feedback(project_id=project.pk, session_id=session_id, score=None, text="said", actor="")
    copy_due()
    assert len(feedback_copies(project)) == 4

    assert delete_feedback_of_hash(project.pk, id_hash("a")) == 2
    copy_due()

    assert feedback_copies(project) == [("a/b", 0, True), ("a/b", 5, False)]
    assert set(Feedback.objects.values_list("session_id", flat=True)) == {"a/b"}


def test_delete_before__older_ones__leave_both(project: Project) -> None:
    for value in (1, 2):
        make_score(project, score_value=value)
        record_feedback(project_id=project.pk, session_id="s", score=value, text="", actor="")
    copy_due()
    moment = Score.objects.get(score_value=2).created_at

    assert delete_scores_before(project.pk, moment) == delete_feedback_before(project.pk, moment) == 1
    copy_due()

    assert values(project) == [2]
    assert feedback_copies(project) == [("s", 2, False)]
