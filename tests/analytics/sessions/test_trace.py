"""GET /api/llm/traces/{id} shows a whole trace with its logs and the sessions that it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.sessions.entries import entry
from tests.analytics.sessions.traced import TRACE, WHOLE, around, call
from tests.analytics.telemetry.sending import SESSION, Sender, log
from tests.factories.analytics import store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def trace(api: APIClient, trace_id: str = TRACE) -> Any:
    answer = api.get(f"/api/llm/traces/{trace_id}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_trace__of_application_and_gateway__tree_logs_and_sessions(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, "other", 2)
    store(spool, made)
    sender.traces(around(made, 1), around(made, 2, 1, session__id=SESSION))
    sender.logs(log(1, {}, trace_id=bytes.fromhex(TRACE)), log(2, {}))

    found = trace(api, TRACE.upper())

    assert [(node["name"], node["depth"]) for node in found["nodes"]] == WHOLE
    assert found["nodes"][2]["total_tokens"] == 17
    assert (found["trace_id"], found["sessions"]) == (TRACE, [SESSION, "other"])
    assert [line["body"] for line in found["logs"]] == ["line 1"]
    assert (found["duration_ms"], found["truncated"]) == (400.000001, False)


def test_trace__that_only_the_gateway_knows__its_requests(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, call(project, "", 2), call(project, SESSION, 2), call(project, "", 2, trace_id="cd" * 16))

    found = trace(api)

    assert [(node["name"], node["depth"]) for node in found["nodes"]] == [(WHOLE[2][0], 0), (WHOLE[3][0], 1)] * 2
    assert (found["sessions"], found["logs"]) == ([SESSION], [])


@pytest.mark.parametrize("form", [str, lambda request_id: UUID(request_id).hex])
def test_trace__of_a_request_that_joined_none__by_the_requests_id(
    api: APIClient, project: Project, spool: Path, form: Any
) -> None:
    made, joined = entry(project, SESSION, 5), call(project, "", 2)
    store(spool, made, joined)

    found = trace(api, form(made.record.request_id))

    assert [node["request_id"] for node in found["nodes"]] == [made.record.request_id]
    assert found["sessions"] == [SESSION]
    assert api.get(f"/api/llm/traces/{form(joined.record.request_id)}").status_code == 404


def test_trace__of_logs_only__its_logs(api: APIClient, sender: Sender) -> None:
    sender.logs(log(1, {"session.id": SESSION}, trace_id=bytes.fromhex(TRACE)))

    found = trace(api)

    assert (found["nodes"], found["started_at"], found["sessions"]) == ([], None, [SESSION])
    assert len(found["logs"]) == 1


@pytest.mark.parametrize("trace_id", ["ab", "g" * 32, "ab" * 17, "{" + "a" * 30 + "}"])
def test_trace__no_trace_id__names_the_field(api: APIClient, trace_id: str) -> None:
    answer = api.get(f"/api/llm/traces/{trace_id}")

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "trace_id: Has to be 32 hexadecimal digits."


def test_trace__of_a_deleted_session__is_not_shown_from_then_on(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    made = call(project, SESSION, 2)
    store(spool, made)
    sender.traces(around(made, 1), around(made, 2, 1))

    assert api.delete(f"/api/llm/sessions/{SESSION}").status_code == 204

    assert api.get(f"/api/llm/traces/{TRACE}").status_code == 404
