"""The erasure of an end user takes the user's requests and own sessions, and leaves every sum and what is of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion.again import erase_again, tombstones
from analytics.deletion.services import finish_due
from analytics.models import Deletion, DeletionState
from analytics.reconciliation.services import reconcile
from analytics.request_log.record import SpoolEntry
from core.models import AuditEntry, Project
from tests.analytics.deletion.deleting import SECRET, contents, entry, insert_spans, soon, totals
from tests.factories.analytics import store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

OTTILIE = "/api/llm/users/ottilie"


@pytest.fixture
def own(project: Project, spool: Path, stored: list[SpoolEntry]) -> list[SpoolEntry]:
    """Requests of the session `other`, which is ottilie's alone: one of them names no user."""
    found = [entry(project, 2, session_id="other"), entry(project, 2, user_id="ottilie")]
    store(spool, *found)
    return found


def test_user__erased__leaves_no_trace_and_every_sum(
    api: APIClient, project: Project, stored: list[SpoolEntry], own: list[SpoolEntry]
) -> None:
    limit = {"user_id": "ottilie", "rate_limit_rpm": 5}
    assert api.post("/api/llm/end-user-limits", limit, format="json").status_code == 201
    feedback = {"project_id": str(project.pk), "score": 5, "text": SECRET}
    assert api.post("/api/llm/sessions/other/feedback", feedback, format="json").status_code == 201
    insert_spans(project, "other", "bruno's")
    insert_spans(project, "", attributes={"user.id": "ottilie"}, trace="u")
    before = totals(api, project)
    held = api.get(OTTILIE).json()
    assert (held["request_count"], held["session_count"], held["erasure"]) == (6, 2, None)

    answer = api.delete(OTTILIE)

    assert answer.status_code == 202
    assert answer.json()["erasure"]["state"] == "pending"
    assert api.delete(OTTILIE).status_code == 202
    assert finish_due() == 6
    left = api.get(OTTILIE).json()
    assert (left["request_count"], left["last_seen"]) == (0, None)
    assert left["erasure"] == {
        **answer.json()["erasure"],
        "state": "erased",
        "request_count": 6,
        "erased_request_count": 6,
        "erased_at": left["erasure"]["erased_at"],
    }
    gone = {one.record.request_id for one in (*stored, *own) if one.record.user_id == "ottilie"} | {
        own[0].record.request_id
    }
    for table, rows in contents(project).items():
        # The texts that stay, of another user, have the name as a word.
        text = "" if table == "vocabulary" else repr(rows)
        assert "ottilie" not in text and "'other'" not in text, table
        assert not any(one in text for one in gone), table
    assert api.get("/api/llm/sessions/other/feedback").json()["count"] == 0
    assert {one for (one,) in client.execute("SELECT arrayJoin(SessionIds) FROM otel_traces")} == {"bruno's"}
    assert client.execute("SELECT count() FROM otel_traces WHERE TraceId = 'u'") == [(0,)]
    assert api.get("/api/llm/end-user-limits").json()["count"] == 0
    # The other user of a session keeps the own requests in it.
    assert api.get("/api/llm/sessions?user_id=bruno").json()["results"][0]["request_count"] == 1
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_user__erased__is_in_the_audit_log_by_the_hash_alone(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    api.delete(OTTILIE)

    [made] = AuditEntry.objects.filter(object_kind="deletion")
    assert made.operation == "deleteUser"
    assert "ottilie" not in repr(made.changes)
    finish_due()
    finish_due(soon(8 * 24 * 60))
    closed = Deletion.objects.get()
    assert (closed.state, closed.subject, closed.sessions) == (DeletionState.CLOSED, "", None)


def test_user__whose_records_arrive_late_or_are_restored__loses_them_too(
    api: APIClient, project: Project, stored: list[SpoolEntry], own: list[SpoolEntry], spool: Path
) -> None:
    api.delete(OTTILIE)
    finish_due()
    after = entry(project, -30, user_id="ottilie", session_id="new")
    store(spool, entry(project, 10, user_id="ottilie", session_id="late"), after)
    insert_spans(project, "other")

    assert finish_due(soon(5)) == 1

    assert client.execute("SELECT count() FROM otel_traces") == [(0,)]
    assert api.get(f"/api/llm/requests/{after.record.request_id}").status_code == 200
    store(spool, entry(project, 20, user_id="ottilie", session_id="restored"))
    assert erase_again(tombstones(), log=True, done=lambda _: None) == 1


def test_user__of_whom_nothing_is_known__is_not_found(api: APIClient, stored: list[SpoolEntry]) -> None:
    for call in (api.get, api.delete):
        assert call("/api/llm/users/nobody").json()["error"]["code"] == "user_not_found"
        assert call(f"/api/llm/users/{'x' * 1025}").status_code == 400
    assert not Deletion.objects.exists()
