from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from analytics.deletion.services import finish_due
from analytics.request_log.record import Outcome
from analytics.scores.sync.run import copy_due
from core.models import AuditEntry, Project
from gateway.tables.end_user import EndUserLimit
from tests.analytics.sessions.entries import entry
from tests.console.conftest import shown, text_of
from tests.factories.analytics import store
from tests.factories.core import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def path_of(project: Project, user: str = "ann/1") -> str:
    return f"/admin/analytics/users/{project.pk}/{user}"


@pytest.fixture
def stored(project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "first", 5, user_id="ann/1", cost_usd="0.5000000000"),
        entry(project, "first", 4, user_id="ann/1", outcome=Outcome.ERROR, error_code="rate_limit_exceeded"),
        entry(project, "other", 3, user_id="bob"),
    )


def test_user__page__has_cost_sessions_errors_feedback_and_limits(
    administrator: Client, project: Project, stored: None
) -> None:
    EndUserLimit.objects.create(project=project, user_id="ann/1", monthly_budget_usd="2")
    said = {"project_id": str(project.pk), "score": 2, "text": "Wrong city"}
    assert client_of(project).post("/api/llm/sessions/first/feedback", said, format="json").status_code == 201
    copy_due()

    text = shown(administrator, project, path_of(project))

    assert "$0.50" in text and "50 %" in text
    assert "rate_limit_exceeded" in text
    assert "of $2.00" in text
    assert ">first<" in text and ">other<" not in text
    assert "Wrong city" in text
    assert "holds 2 requests of this user in 1 sessions" in text
    # The lists of users lead here.
    assert path_of(project) in shown(administrator, project, "/admin/usage/", group_by="user")


def test_user__erased_on_the_page__shows_the_count_before_the_progress_and_the_end(
    administrator: Client, reader: Client, project: Project, stored: None
) -> None:
    before = shown(administrator, project, path_of(project))
    assert "Erase 2 requests for good" in before
    assert "for good" not in shown(reader, project, path_of(project))
    assert reader.post(path_of(project), {"action": "erase"}).status_code == 403

    assert administrator.post(path_of(project), {"action": "erase"}).status_code == 302

    pending = shown(administrator, project, path_of(project))
    assert "0 of 2 requests are erased" in pending and 'data-refresh="5"' in pending
    finish_due()
    erased = shown(administrator, project, path_of(project))
    assert "2 requests were erased by" in erased
    assert "No request of this user in this range named a session." in erased
    assert [one.object_kind for one in AuditEntry.objects.all()] == ["deletion"]


def test_user__nobody_knows__is_not_found(administrator: Client, project: Project, stored: None) -> None:
    for user in ("nobody", "x" * 1025):
        assert administrator.get(path_of(project, user), {"project": str(project.pk)}).status_code == 404
    assert text_of(administrator.get(path_of(project, "bob"), {"project": str(project.pk)}))
