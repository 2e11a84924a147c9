"""Deleting a session or a request: gone from every answer at once, while every sum of cost stays as it was."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.contracts import Attempt, SpoolEntry
from analytics.deletion import batches, services
from analytics.deletion.services import delete_session, finish_due
from analytics.errors import AnalyticsUnavailableError
from analytics.leases import repair_lease
from analytics.models import Deletion, DeletionBatch, DeletionState
from analytics.reconciliation.services import reconcile
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

SECRET = "Ottilie of Weißgasse 5"
SESSION = 'tenant/42\'s "session" %_'


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    return caller_of(project)


@pytest.fixture
def stored(project: Project, spool: Path) -> list[SpoolEntry]:
    """Two requests of the session by two users today, one of yesterday, others of the same users and days beside."""
    entries = [
        entry(project, 3, user_id="ottilie", session_id=SESSION, alloc_unit=77, error_message=SECRET),
        entry(project, 2, user_id="bruno", session_id=SESSION, cost_usd="0.0000000001"),
        entry(project, 24 * 60, user_id="ottilie", session_id=SESSION),
        entry(project, 2, user_id="ottilie", session_id="other"),
        entry(project, 1, user_id="bruno"),
        entry(project, 1),
        entry(project, 24 * 60, user_id="ottilie", session_id="other"),
    ]
    store(spool, *entries, entry(make_project(), 3, user_id="ottilie", session_id=SESSION))
    return entries


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


def assert_not_shown(api: APIClient, first_id: str) -> None:
    assert api.get(path_of(SESSION)).status_code == 404
    assert api.get(f"{path_of(SESSION)}/requests").status_code == 404
    assert api.get(f"/api/llm/requests/{first_id}").status_code == 404
    for wanted in ("", "?user_id=ottilie", "?name_pattern=%25t%25", f"?start_date={soon(-9999).date()}"):
        listed = api.get(f"/api/llm/sessions{wanted}").json()
        assert [row["session_id"] for row in listed["results"]] == ["other"], wanted
        assert listed["count"] == 1, wanted
    assert api.get("/api/llm/sessions?user_id=bruno").json()["results"] == []
    assert found_in_search(api) == 4
    exported = exported_lines(api)
    assert all(SESSION not in json.dumps(line) and line["request_id"] != first_id for line in exported)
    assert api.delete(path_of(SESSION)).status_code == 404


@pytest.mark.parametrize("end", ["requests", "feedback"])
def test_session__whose_id_ends_like_a_path__is_deleted(
    api: APIClient, project: Project, spool: Path, end: str
) -> None:
    store(spool, entry(project, 3, session_id=f"batch/{end}"), entry(project, 2, session_id="batch"))

    own = f"{path_of('batch')}%2F{end}"

    # What lies below a session cannot be deleted, and is not taken for a session.
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
    assert SECRET in repr(contents(project)["payloads"])  # of the other requests
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

    caller_of(project).delete(path_of(SESSION))

    assert caller_of(other).get(path_of(SESSION)).status_code == 200
    assert caller_of(make_project()).delete(path_of(SESSION)).status_code == 404


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
    # Its time is in the id, as with any other: what looks for ids by time finds it.
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


def test_spans__of_a_deleted_request__go_with_it(api: APIClient, project: Project, stored: list[SpoolEntry]) -> None:
    record = stored[0].record
    insert_spans(project, "", "", attributes={"prompt_gateway.request_id": record.request_id, "user.id": "ottilie"})
    counting = "SELECT count() FROM otel_traces WHERE SpanAttributes['prompt_gateway.request_id'] = {id:String}"
    assert client.execute(counting, {"id": record.request_id}) != [(0,)]

    api.delete(f"/api/llm/requests/{record.request_id}")

    assert client.execute(counting, {"id": record.request_id}) == [(0,)]
    # They are stored after the rows, so some may come when the request is gone already.
    insert_spans(project, "", "", attributes={"prompt_gateway.request_id": record.request_id, "user.id": "ottilie"})
    finish_due(soon(5))
    assert client.execute(counting, {"id": record.request_id}) == [(0,)]


def test_session__known_by_feedback_only__can_be_deleted(api: APIClient, project: Project) -> None:
    feedback = {"project_id": str(project.pk), "text": SECRET}
    api.post("/api/llm/sessions/quiet/feedback", feedback, format="json")

    assert api.delete("/api/llm/sessions/quiet").status_code == 204
    assert api.get("/api/llm/sessions/quiet/feedback").json()["count"] == 0
    assert api.delete("/api/llm/sessions/quiet").status_code == 404


def test_records__that_arrive_after_the_deletion__go_too_and_later_requests_stay(
    api: APIClient, project: Project, stored: list[SpoolEntry], spool: Path
) -> None:
    erase(api, path_of(SESSION))
    deletion = Deletion.objects.get()
    late = entry(project, 10, user_id="ottilie", session_id=SESSION)
    after = entry(project, -30, user_id="ottilie", session_id=SESSION)
    store(spool, late, after)

    assert finish_due(soon(5)) == 1

    assert api.get(path_of(SESSION)).json()["request_count"] == 1
    assert api.get(f"/api/llm/requests/{late.record.request_id}").status_code == 404
    assert api.get(f"/api/llm/requests/{after.record.request_id}").status_code == 200
    deletion.refresh_from_db()
    assert (deletion.state, deletion.requests, deletion.looks) == (DeletionState.ERASED, 4, 2)
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


_REQUESTS_COLUMNS = """
SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'requests' ORDER BY position
"""

STEPS = [
    "payloads", "anonymised", "requests", "session_days", "user_sessions", "users_daily", "users_hourly", "otel_traces",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_deletion__broken_off_at_any_step__is_finished_by_the_task(
    api: APIClient,
    project: Project,
    stored: list[SpoolEntry],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    when: str,
) -> None:
    before = totals(api, project)
    insert_spans(project, SESSION, "other")
    with monkeypatch.context() as patched:
        break_off(patched, step, after=when == "after")
        erase(api, path_of(SESSION))
    assert Deletion.objects.get().state == DeletionState.PENDING

    finish_due(soon(5))

    assert Deletion.objects.get().state == DeletionState.ERASED
    assert Deletion.objects.get().requests == 3
    assert not DeletionBatch.objects.exists()
    assert api.get(path_of(SESSION)).status_code == 404
    assert found_in_search(api) == 4
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletion__broken_off__shows_nothing_meanwhile_and_is_not_there_to_be_asked_for_again(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = totals(api, project)
    with monkeypatch.context() as patched:
        break_off(patched, "users_daily", after=False)
        erase(api, path_of(SESSION))

    assert_not_shown(api, stored[0].record.request_id)
    finish_due(soon(5))
    assert_not_shown(api, stored[0].record.request_id)
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_request__broken_off_and_asked_for_again__is_done_then(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = totals(api, project)
    path = f"/api/llm/requests/{stored[0].record.request_id}"
    with monkeypatch.context() as patched:
        break_off(patched, "users_daily", after=False)
        assert api.delete(path).status_code == 503

    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_session__deleted__asks_the_store_no_more_than_reading_it_does(
    api: APIClient, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session with one request took 39 statements, a second or two."""
    asked: list[str] = []
    query, execute = client.query, client.execute

    def noting_query(sql: str, *arguments: Any, **options: Any) -> Any:
        asked.append(sql)
        return query(sql, *arguments, **options)

    def noting_execute(sql: str, *arguments: Any) -> Any:
        asked.append(sql)
        return execute(sql, *arguments)

    monkeypatch.setattr(client, "query", noting_query)
    monkeypatch.setattr(client, "execute", noting_execute)
    assert api.get(path_of(SESSION)).status_code == 200
    reading = len(asked)

    assert api.delete(path_of(SESSION)).status_code == 204

    assert 0 < len(asked) - reading <= reading
    assert all(sql.lstrip().startswith("SELECT") for sql in asked)


def test_sessions__deleted_faster_than_they_are_erased__are_erased_before_the_answer(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_MAX_UNDER_WAY", 2)
    store(spool, *(entry(project, 3, session_id=f"s{number}") for number in range(4)))

    for number in range(4):
        assert api.delete(path_of(f"s{number}")).status_code == 204

    states = list(Deletion.objects.order_by("requested_at").values_list("state", flat=True))
    assert states == [DeletionState.PENDING, DeletionState.PENDING, DeletionState.ERASED, DeletionState.ERASED]
    assert api.get("/api/llm/sessions").json()["results"] == []


def test_session__that_goes_on_while_it_is_deleted__shows_what_is_new(
    api: APIClient, project: Project, stored: list[SpoolEntry], spool: Path
) -> None:
    assert api.delete(path_of(SESSION)).status_code == 204
    after = entry(project, -30, user_id="ottilie", session_id=SESSION)
    store(spool, after)

    assert api.get(f"/api/llm/requests/{after.record.request_id}").status_code == 200
    assert found_in_search(api) == 5
    finish_due(soon(5))
    assert api.get(path_of(SESSION)).json()["request_count"] == 1


def test_spans_and_logs__of_a_session_that_is_being_deleted__are_not_shown(api: APIClient, project: Project) -> None:
    insert_spans(project, "gone", "other")

    assert api.delete(path_of("gone")).status_code == 204

    for session, count in (("gone", 0), ("other", 1)):
        shown = api.get(f"/api/projects/{project.pk}/llm/sessions/{session}/telemetry").json()
        assert (len(shown["spans"]), len(shown["logs"])) == (count, count), session
    assert api.delete(path_of("gone")).status_code == 404


def test_request_of_a_session__both_deletions_broken_off__counted_once(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = totals(api, project)
    with monkeypatch.context() as patched:
        break_off(patched, "anonymised", after=True)
        assert api.delete(f"/api/llm/requests/{stored[0].record.request_id}").status_code == 503
        erase(api, path_of(SESSION))

    finish_due(soon(5))

    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletion__while_another_repair_goes_on__is_done_afterwards(
    api: APIClient, project: Project, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "repair_lease", lambda project_id: repair_lease(project_id, wait_seconds=0))
    with repair_lease(project.pk):
        answer = api.delete(f"/api/llm/requests/{stored[0].record.request_id}")
        assert finish_due(soon(1)) == 0

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "repair_busy"
    assert finish_due(soon(5)) == 1


def test_many_requests__deleted_in_several_batches__counted_once(
    api: APIClient, project: Project, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_REQUESTS_AT_ONCE", 7)
    store(spool, *(entry(project, minute, user_id=f"u{minute % 3}", session_id="long") for minute in range(30)))
    before = totals(api, project)

    erase(api, "/api/llm/sessions/long")

    assert Deletion.objects.get().requests == 30
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_deletions__any_of_any_requests__sums_and_users_as_in_plain_arithmetic(
    api: APIClient, project: Project, spool: Path
) -> None:
    chance = random.Random(11)
    entries = [
        entry(
            project,
            chance.randrange(5 * 24 * 60),
            session_id=chance.choice(["", "a", "b", "c/d", "é"]),
            user_id=chance.choice(["", "u1", "u2", "u'3"]),
            retention_days=chance.choice([300, 400]),
            cost_usd=f"{chance.randrange(10)}.{chance.randrange(10**10):010d}",
            latency_ms=chance.randrange(10_000),
        )
        for _ in range(80)
    ]
    store(spool, *entries)
    before = totals(api, project)
    left = {one.record.request_id: one.record for one in entries}

    for kind, wanted in [("s", "b"), ("r", ""), ("s", "é"), ("r", ""), ("r", ""), ("s", "c/d")]:
        request_id = chance.choice(sorted(left))
        path = path_of(wanted) if kind == "s" else f"/api/llm/requests/{request_id}"
        erase(api, path)
        gone = [key for key, one in left.items() if (one.session_id == wanted if kind == "s" else key == request_id)]
        for key in gone:
            del left[key]

    where = "WHERE project_id = {project:UUID}"
    users = client.execute(
        f"SELECT user_id, sum(requests), sum(cost_usd) FROM users_daily {where} AND user_id != '' GROUP BY user_id",  # noqa: S608
        {"project": project.pk},
    )
    expected: dict[str, tuple[int, Decimal]] = {}
    for one in left.values():
        count, cost = expected.get(one.user_id, (0, Decimal(0)))
        expected[one.user_id] = (count + 1, cost + Decimal(one.cost_usd))
    expected.pop("", None)
    assert {user: (count, cost) for user, count, cost in users} == expected
    sessions = {row["session_id"]: row["request_count"] for row in api.get("/api/llm/sessions").json()["results"]}
    assert sessions == Counter(one.session_id for one in left.values() if one.session_id)
    assert found_in_search(api, limit=100) == len(left)
    assert totals(api, project) == before
    assert reconcile([project.pk], now=soon(26 * 60)).differences == []


def test_statements__of_a_deletion__use_less_than_200_mib(
    api: APIClient, stored: list[SpoolEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    execute = client.execute

    def noting(sql: str, params: Any = None, settings: Any = None) -> Any:
        limits.append((settings or {}).get("max_memory_usage", 2**63))
        return execute(sql, params, settings)

    monkeypatch.setattr(client, "execute", noting)
    erase(api, path_of(SESSION))
    assert max(limits) < 200 * 1024 * 1024


def test_wish__when_nothing_can_arrive_any_more__forgets_the_id_and_stays_as_a_record(
    api: APIClient, project: Project, stored: list[SpoolEntry]
) -> None:
    erase(api, path_of(SESSION))

    finish_due(soon(8 * 24 * 60))

    row = Deletion.objects.get()
    assert (row.state, row.subject, row.look_at) == (DeletionState.CLOSED, "", None)
    assert row.subject_hash
    assert row.requested_by
    assert finish_due(soon(9 * 24 * 60)) == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/llm/sessions/" + "x" * 1025, 400),
        ("/api/llm/sessions/a%00b", 400),
        ("/api/llm/sessions/%25", 404),
        ("/api/llm/sessions/nobody' OR 1=1 --", 404),
        ("/api/llm/requests/" + str(uuid4()), 404),
        ("/api/llm/requests/not-an-id", 404),
        ("/api/llm/requests/ffffffff-ffff-7fff-bfff-ffffffffffff", 404),
        ("/api/llm/requests/00000000-0000-7000-8000-000000000000", 404),
    ],
)
def test_ids__of_nothing__are_refused_and_delete_nothing(
    api: APIClient, stored: list[SpoolEntry], path: str, status: int
) -> None:
    answer = api.delete(path)

    assert answer.status_code == status
    assert "message" in answer.json()["error"]
    assert found_in_search(api) == 7
    assert not Deletion.objects.exists()


def test_store_away__is_503_and_nothing_is_promised(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any, **options: Any) -> None:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "query", away)
        answer = api.delete(path_of(SESSION))

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "analytics_unavailable"
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


def entry(project: Project, minutes_ago: float, **values: Any) -> SpoolEntry:
    """With content, in which the secret stands."""
    ts = int(soon(-minutes_ago).timestamp() * 1e6)
    body = json.dumps({"messages": [{"role": "user", "content": f"I am {SECRET}"}]}).encode()
    response = json.dumps({"choices": [{"message": {"content": f"Hello {SECRET}"}}]}).encode()
    attempts = (Attempt("openai", "gpt-4o-mini", error=values.get("error_message", "")),)
    return make_entry(
        body,
        response,
        project_id=str(project.pk),
        ts=ts,
        attempts=attempts,
        attributes={"note": SECRET},
        **values,
    )


def soon(minutes: float) -> datetime:
    """From when it is asked for, which in a long run is much later than this module was loaded."""
    return datetime.now(UTC) + timedelta(minutes=minutes)


def erase(api: APIClient, path: str) -> None:
    """Deletes it, and has the background do what it does of it every few seconds."""
    assert api.delete(path).status_code == 204
    finish_due()


def caller_of(project: Project) -> APIClient:
    _, key = make_key(project)
    caller = APIClient()
    caller.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return caller


def path_of(session: str) -> str:
    return f"/api/llm/sessions/{quote(session, safe='/')}"


def found_in_search(api: Any, limit: int = 20) -> int:
    wanted = {"project_id": api._credentials["HTTP_X_PROJECT_ID"], "query": "Weißgasse", "limit": limit}
    answer = api.post("/api/llm/search", wanted, format="json")
    assert answer.status_code == 200, answer.json()
    return len(answer.json()["results"])


def exported_lines(api: APIClient) -> list[dict[str, Any]]:
    answer: Any = api.get("/api/llm/requests/export", {"include_content": "true"})
    content = b"".join(answer.streaming_content if not answer.is_async else _collected(answer))
    return [json.loads(line) for line in content.splitlines()]


def _collected(answer: Any) -> Iterator[bytes]:
    async def collect() -> list[bytes]:
        return [part async for part in answer.streaming_content]

    yield from async_to_sync(collect)()


def totals(api: APIClient, project: Project) -> dict[str, Any]:
    """Sums as the rows and as the rollups and endpoints tell them."""
    values = {"project": project.pk}
    where = "WHERE project_id = {project:UUID}"
    raw = client.execute(f"SELECT count(), sum(cost_usd), sum(prompt_tokens) FROM requests {where}", values)  # noqa: S608
    told = {"requests": raw[0][0], "raw": raw}
    for table in ("requests_minute", "requests_hourly", "requests_daily", "users_daily"):
        told[table] = client.execute(
            f"SELECT sum(requests), sum(cost_usd), sum(prompt_tokens), sum(latency_sum_ms) FROM {table} {where}",  # noqa: S608
            values,
        )
    overview = api.get("/api/llm/metrics/overview").json()
    told["overview"] = {name: overview[name] for name in ("total_requests", "total_cost_usd", "error_rate")}
    return told


def contents(project: Project) -> dict[str, list[tuple[Any, ...]]]:
    """Every readable column of every table, of one project."""
    columns = client.execute(
        "SELECT table, groupArray(name) FROM system.columns WHERE database = currentDatabase()"
        " AND type NOT LIKE 'AggregateFunction%' AND table IN (SELECT table FROM system.columns"
        " WHERE database = currentDatabase() AND name = 'project_id') AND table IN"
        " (SELECT name FROM system.tables WHERE engine LIKE '%MergeTree') GROUP BY table"
    )
    return {
        table: client.execute(
            f"SELECT {', '.join(names)} FROM {table} WHERE project_id = {{project:UUID}}",  # noqa: S608
            {"project": project.pk},
        )
        for table, names in columns
    }


def insert_spans(project: Project, *sessions: str, attributes: dict[str, str] | None = None) -> None:
    for number, session in enumerate(sessions):
        values = {**(attributes or {}), "gen_ai.session_id": session}
        time = soon(-1)
        columns = ("ProjectId", "Timestamp", "TraceId", "SpanId", "SpanName", "SpanAttributes")
        client.insert(
            "otel_traces",
            columns,
            [(project.pk, time, "t", str(number), "span", values)],
            token=str(uuid4()),
        )
        client.insert(
            "otel_logs",
            ("ProjectId", "Timestamp", "TraceId", "Body", "LogAttributes"),
            [(project.pk, time, str(number), SECRET, values)],
            token=str(uuid4()),
        )


def break_off(patched: pytest.MonkeyPatch, table: str, *, after: bool) -> None:
    """The first statement that changes `table` fails before it runs, or its answer is lost."""
    execute, insert = client.execute, client.insert

    def guarded(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(first: str, *arguments: Any, **options: Any) -> Any:
            changes = first.startswith(("DELETE", "INSERT")) and f" {table} " in first
            hit = changes or first == table
            if hit and not after:
                raise AnalyticsUnavailableError("The analytics store does not answer.")
            answer = run(first, *arguments, **options)
            if hit:
                raise AnalyticsUnavailableError("The analytics store does not answer.")
            return answer

        return call

    patched.setattr(client, "execute", guarded(execute))
    patched.setattr(client, "insert", guarded(insert))
