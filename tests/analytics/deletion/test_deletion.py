"""The deletion of a session or a request removes it from every answer at once, while every sum of cost stays as it
was."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.deletion.services import delete_session, finish_due
from analytics.models import Deletion, DeletionState
from analytics.reconciliation.services import reconcile
from analytics.request_log.record import SpoolEntry
from core.models import Project
from tests.analytics.deletion.deleting import (
    SECRET,
    SESSION,
    assert_not_shown,
    contents,
    entry,
    erase,
    exported_lines,
    found_in_search,
    insert_spans,
    path_of,
    soon,
    totals,
)
from tests.factories.analytics import store
from tests.factories.core import client_of, make_project
from tests.tables.cases import tabled

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_REQUESTS_COLUMNS = """
SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'requests' ORDER BY position
"""


def test_session__deleted__is_shown_nowhere(api: APIClient, stored: list[SpoolEntry]) -> None:
    assert found_in_search(api) == 7
    first_id = stored[0].record.request_id

    answer = api.delete(path_of(SESSION))

    assert answer.status_code == 204
    assert answer.content == b""
    assert Deletion.objects.get().state == DeletionState.PENDING
    assert_not_shown(api, first_id)
    finish_due()
    assert Deletion.objects.get().state == DeletionState.ERASED
    assert_not_shown(api, first_id)
    assert len(exported_lines(api)) == 7


@pytest.mark.parametrize("end", ["requests", "feedback"])
def test_session__whose_id_ends_like_a_path__is_deleted(
    api: APIClient, project: Project, spool: Path, end: str
) -> None:
    store(spool, entry(project, 3, session_id=f"batch/{end}"), entry(project, 2, session_id="batch"))

    own = f"{path_of('batch')}%2F{end}"

    # A path below a session cannot be deleted, and is not taken for a session id.
    assert api.delete(f"{path_of('batch')}/{end}").status_code == 405
    assert api.delete(own, REQUEST_URI=own).status_code == 204

    assert [row["session_id"] for row in api.get("/api/llm/sessions").json()["results"]] == ["batch"]
    assert api.get(path_of("batch")).json()["request_count"] == 1
    assert api.delete(own, REQUEST_URI=own).status_code == 404
    long = f"{path_of('x' * 1024)}%2F{end}"
    assert api.delete(long, REQUEST_URI=long).status_code == 400


def test_session__deleted__leaves_no_trace_in_any_table(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    erase(api, path_of(SESSION))

    ids = {one.record.request_id for one in stored if one.record.session_id == SESSION}
    for table, rows in contents(project).items():
        text = repr(rows)
        assert SESSION not in text and "tenant/42" not in text, table
        assert not any(one in text for one in ids), table
    assert SECRET in repr(contents(project)["payloads"])  # Requests of other sessions keep their content.
    assert "bruno" in repr(contents(project)["users_daily"])


def test_session__deleted__costs_and_counts_stay_to_the_last_digit(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    before = totals(api, project)

    erase(api, path_of(SESSION))

    assert totals(api, project) == before
    assert before["requests"] == 7
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_users__of_a_deleted_session__keep_their_other_requests(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    erase(api, path_of(SESSION))

    rows = client.execute(
        "SELECT user_id, sum(requests) FROM users_daily WHERE project_id = {project:UUID} GROUP BY user_id",
        {"project": project.pk},
    )
    assert dict(rows) == {"ottilie": 2, "bruno": 1, "": 4}


def test_another_project__with_the_same_session__keeps_it(stored: list[SpoolEntry], project: Project) -> None:
    other = Project.objects.exclude(pk=project.pk).get()

    client_of(project).delete(path_of(SESSION))

    assert client_of(other).get(path_of(SESSION)).status_code == 200
    assert client_of(make_project()).delete(path_of(SESSION)).status_code == 404


def test_request__deleted__is_gone_while_its_session_stays(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    before = totals(api, project)
    request_id = stored[0].record.request_id

    answer = api.delete(f"/api/llm/requests/{request_id}")

    assert answer.status_code == 204
    assert api.get(f"/api/llm/requests/{request_id}").status_code == 404
    assert api.get(path_of(SESSION)).json()["request_count"] == 2
    assert [row["request_id"] for row in api.get(f"{path_of(SESSION)}/requests").json()["results"]] == [
        stored[2].record.request_id,
        stored[1].record.request_id,
    ]
    assert found_in_search(api) == 6
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []
    assert api.delete(f"/api/llm/requests/{request_id}").status_code == 404


def test_anonymous_account__keeps_what_was_paid_and_nothing_that_tells_whose(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    record = stored[0].record

    sql = "SELECT recorded_at FROM requests WHERE request_id = {id:UUID}"
    [(recorded,)] = client.execute(sql, {"id": record.request_id})

    api.delete(f"/api/llm/requests/{record.request_id}")

    columns = [name for (name,) in client.execute(_REQUESTS_COLUMNS)]
    (row,) = client.execute(
        "SELECT * FROM requests WHERE project_id = {project:UUID} AND ts = {ts:DateTime64(6, 'UTC')}",
        {"project": project.pk, "ts": datetime.fromtimestamp(record.ts / 1e6, UTC)},
    )
    kept = dict(zip(columns, row, strict=False))
    assert kept["session_id"] == kept["user_id"] == kept["error_message"] == kept["attempts"] == ""
    assert kept["prompt_preview"] == kept["completion_preview"] == ""
    assert kept["attributes"] == {}
    assert kept["alloc_unit"] not in (0, 77)
    assert kept["recorded_at"] == recorded
    assert (kept["model"], kept["provider"], kept["cost_usd"]) == ("gpt-4o-mini", "openai", Decimal(record.cost_usd))
    assert kept["request_id"] != UUID(record.request_id)
    # The new id has the request's time in it, by which queries find it.
    assert kept["request_id"].int >> 80 == record.ts // 1000
    assert kept["request_id"].version == 7


def test_scores_feedback_and_telemetry__of_the_session__go_with_it(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    first, other = stored[0].record, stored[3].record
    for record in (first, other):
        score = {"project_id": str(project.pk), "request_id": record.request_id, "score_name": "s", "score_value": 1}
        assert api.post("/api/llm/scores", score, format="json").status_code == 201
    feedback = {"project_id": str(project.pk), "score": 5, "text": SECRET}
    assert api.post(f"{path_of(SESSION)}/feedback", feedback, format="json").status_code == 201
    insert_spans(project, SESSION, "other")

    erase(api, path_of(SESSION))

    assert api.get(f"/api/llm/scores/request/{first.request_id}").json()["count"] == 0
    assert api.get(f"/api/llm/scores/request/{other.request_id}").json()["count"] == 1
    assert api.get(f"{path_of(SESSION)}/feedback").json()["count"] == 0
    left = client.execute("SELECT arrayJoin(SessionIds) FROM otel_traces")
    assert {one for (one,) in left} == {"other"}
    assert {one for (one,) in client.execute("SELECT arrayJoin(SessionIds) FROM otel_logs")} == {"other"}
    for keys in ("otel_session_spans", "otel_session_logs"):
        assert client.execute(f"SELECT SessionId FROM {keys}") == [("other",)]  # noqa: S608


def test_traces__of_the_session__go_with_it_but_for_what_names_another(
    api: APIClient, project: Project, spool: Path
) -> None:
    """`joined` is the trace of a request of the session, `named` has a span with the session's id, `shared` also one of
    another session, and `other` none of this one."""
    joined, named, shared, other = (letter * 32 for letter in "abcd")
    store(spool, entry(project, 3, session_id=SESSION, trace_id=joined, parent_span_id="1" * 16))
    for trace, *sessions in ((joined, ""), (named, "", SESSION), (shared, "", SESSION, "two"), (other, "", "two")):
        insert_spans(project, *sessions, attribute="session.id", trace=trace)
    assert [node["trace_id"] for node in api.get(f"{path_of(SESSION)}/timeline").json()["nodes"]].count(joined) == 3

    assert api.delete(path_of(SESSION)).status_code == 204
    assert api.get(f"{path_of(SESSION)}/timeline").status_code == 404
    finish_due()

    for table in ("otel_traces", "otel_logs", "otel_trace_spans", "otel_trace_logs"):
        left = client.execute(f"SELECT TraceId FROM {table} ORDER BY TraceId")  # noqa: S608
        assert left == [(shared,), (other,), (other,)], table
    assert set(client.execute("SELECT SessionId, TraceId FROM otel_session_traces")) == {
        ("two", shared),
        ("two", other),
    }
    assert api.delete(path_of(SESSION)).status_code == 404


def test_session__known_by_a_trace_only__can_be_deleted(api: APIClient, project: Project) -> None:
    insert_spans(project, "quiet", attribute="gen_ai.conversation.id", trace="e" * 32)

    erase(api, path_of("quiet"))

    assert client.execute("SELECT count() FROM otel_traces WHERE TraceId = {trace:String}", {"trace": "e" * 32}) == [
        (0,)
    ]
    assert api.delete(path_of("quiet")).status_code == 404


def test_spans__of_a_deleted_request__go_with_it(api: APIClient, project: Project, stored: list[SpoolEntry]) -> None:
    record = stored[0].record
    insert_spans(project, "", "", attributes={"prompt_gateway.request_id": record.request_id, "user.id": "ottilie"})
    counting = "SELECT count() FROM otel_traces WHERE SpanAttributes['prompt_gateway.request_id'] = {id:String}"
    assert client.execute(counting, {"id": record.request_id}) != [(0,)]

    api.delete(f"/api/llm/requests/{record.request_id}")

    assert client.execute(counting, {"id": record.request_id}) == [(0,)]
    # Spans are stored after the rows, so some may arrive when the request has been deleted.
    insert_spans(project, "", "", attributes={"prompt_gateway.request_id": record.request_id, "user.id": "ottilie"})
    finish_due(soon(5))
    assert client.execute(counting, {"id": record.request_id}) == [(0,)]


def test_session__known_by_feedback_only__can_be_deleted(api: APIClient, project: Project) -> None:
    feedback = {"project_id": str(project.pk), "text": SECRET}
    api.post("/api/llm/sessions/quiet/feedback", feedback, format="json")

    assert api.delete("/api/llm/sessions/quiet").status_code == 204
    assert api.get("/api/llm/sessions/quiet/feedback").json()["count"] == 0
    assert api.delete("/api/llm/sessions/quiet").status_code == 404


@tabled
def test_ids__of_nothing__are_refused_and_delete_nothing(
    api: APIClient, stored: list[SpoolEntry], path: str, status: int
) -> None:
    answer = api.delete(path)

    assert answer.status_code == status
    assert "message" in answer.json()["error"]
    assert found_in_search(api) == 7
    assert not Deletion.objects.exists()


def test_admin__shows_deletions_and_changes_none(
    project: Project, stored: list[SpoolEntry], admin_user: User, client: Client
) -> None:
    delete_session(project.pk, SESSION, actor="key:test")
    client.force_login(admin_user)
    row = Deletion.objects.get()

    shown = client.get("/admin/analytics/deletion/")
    detail = client.get(f"/admin/analytics/deletion/{row.pk}/change/")

    assert "key:test" in shown.content.decode()
    assert SESSION not in shown.content.decode()
    assert detail.status_code == 200
    assert client.get("/admin/analytics/deletion/add/").status_code == 403
    assert client.post(f"/admin/analytics/deletion/{row.pk}/delete/", {"post": "yes"}).status_code == 403
