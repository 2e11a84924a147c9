"""GET /api/llm/sessions/{id} and its list of requests show one session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from rest_framework.test import APIClient

from analytics.request_log.record import AttemptRecord, Outcome
from core.models import Project
from tests.analytics.sessions.entries import entry, ids
from tests.factories.analytics import make_entry, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def test_session__known__token_breakdown_and_models(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "a/b c", 2, model="m2", latency_ms=100, prompt_tokens=50, cache_read_tokens=20),
        entry(project, "a/b c", 1, model="m1", latency_ms=300, prompt_tokens=5, cache_write_tokens=3),
    )

    detail = api.get("/api/llm/sessions/a%2Fb%20c").json()

    assert detail["models_used"] == ["m1", "m2"]
    assert detail["average_latency_ms"] == 200
    assert detail["tokens"] == {
        "prompt_tokens": 55,
        "completion_tokens": 10,
        "cache_read_tokens": 20,
        "cache_write_tokens": 3,
        "total_tokens": 65,
    }


def test_session__several_people_and_providers__all_named(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "s", 2.5, user_id="zoe", provider="openai"),
        entry(project, "s", 2, user_id="", provider="google", outcome=Outcome.CANCELLED, status_code=499),
        entry(project, "s", 1, user_id="ann", provider="", cost_known=False, cost_usd="", operation="responses"),
    )

    detail = api.get("/api/llm/sessions/s").json()

    assert detail["operations_used"] == ["chat", "responses"]
    assert detail["user_id"] == "ann"
    assert detail["users"] == ["ann", "zoe"]
    assert detail["providers_used"] == ["google", "openai"]
    assert detail["duration_seconds"] == 90
    assert detail["cancelled_count"] == 1
    assert detail["unpriced_request_count"] == 1


_IDS = [
    "a/b/c",
    "100%",
    "%2F",
    "a_b?c=d#e",
    'it\'s "quoted" \\',
    "grüße 東京 🚀",
    " ",
    ".",
    "x" * 1024,
    "' OR 1=1 --",
    "\t",
]


def test_session__id_of_any_characters__is_found_by_its_own_path(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, session_id) for session_id in (*_IDS, "another")))

    for session_id in _IDS:
        path = f"/api/llm/sessions/{quote(session_id, safe='')}"
        assert api.get(path).json()["session_id"] == session_id
        requests = api.get(f"{path}/requests").json()
        assert [item["session_id"] for item in requests["results"]] == [session_id]
        pattern = re.sub(r"([%_\\])", r"\\\1", session_id)
        assert ids(api.get("/api/llm/sessions", {"name_pattern": pattern})) == [session_id]


def test_session__id_that_ends_like_a_path__is_found(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, "batch/requests") for _ in range(3)))
    path = "/api/llm/sessions/batch%2Frequests"

    assert api.get(path, REQUEST_URI=path).json()["session_id"] == "batch/requests"
    found = api.get(f"{path}/requests?limit=1", REQUEST_URI=f"{path}/requests?limit=1").json()
    assert found["count"] == 3
    # The address of the next page is compared too.
    assert urlsplit(found["next"]).path == f"{path}/requests"
    assert api.get("/api/llm/sessions/batch/requests").status_code == 404
    assert api.get("/api/llm/sessions/batch").status_code == 404


@pytest.mark.parametrize("session_id", ["%00", "a%00b", "%ED%A0%80", "y" * 5000, "%FF%FE"])
def test_session__id_that_cannot_be__404(api: APIClient, session_id: str) -> None:
    assert api.get(f"/api/llm/sessions/{session_id}").status_code == 404
    assert api.get(f"/api/llm/sessions/{session_id}/requests").status_code == 404


def test_session_requests__session_of_weeks__deep_page_in_order(api: APIClient, project: Project, spool: Path) -> None:
    """The pages begin on one day and end on another, or begin among requests of one microsecond."""
    day = 24 * 60.0
    entries = [entry(project, "s", minutes_ago=day * (20 - number // 40) - number % 4) for number in range(600)]
    store(spool, *entries, *(entry(project, "t", minutes_ago=day * number) for number in range(20)))
    rows = api.get("/api/llm/sessions/s/requests", {"limit": 1000}).json()["results"]

    assert len(rows) == 600
    assert [row["created_at"] for row in rows] == sorted(row["created_at"] for row in rows)
    assert {row["request_id"] for row in rows} == {item.record.request_id for item in entries}
    for offset in (0, 35, 39, 40, 123, 590, 599):
        page = api.get("/api/llm/sessions/s/requests", {"limit": 15, "offset": offset}).json()
        assert page["count"] == 600
        assert page["results"] == rows[offset : offset + 15]
    assert api.get("/api/llm/sessions/s/requests", {"offset": 600}).json()["results"] == []


def test_session_requests__pages__chronological_with_everything_known(
    api: APIClient, project: Project, spool: Path
) -> None:
    request = json.dumps({"messages": [{"role": "user", "content": "Hällo"}]}).encode()
    response = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}).encode()
    attempt = AttemptRecord("openai", "gpt-4o", 503, "overloaded", 12)
    entries = [
        make_entry(
            request, response, project_id=str(project.pk), session_id="s", ts=1_000_000 * i + 1, attempts=(attempt,)
        )
        for i in range(1_780_000_000, 1_780_000_025)
    ]
    failed = entry(
        project, "s", outcome=Outcome.ERROR, status_code=503, error_type="service_unavailable_error",
        error_code="provider_unavailable", error_message="no", cost_known=False, cost_usd="",
    )  # fmt: skip
    store(spool, failed, *entries)

    first = api.get("/api/llm/sessions/s/requests", {"limit": 25}).json()
    second = api.get("/api/llm/sessions/s/requests", {"limit": 25, "offset": 25}).json()

    assert first["count"] == second["count"] == 26
    assert [item["request_id"] for item in first["results"]] == [e.record.request_id for e in entries]
    assert first["results"][0]["prompt_preview"] == "user: Hällo"
    assert first["results"][0]["completion_preview"] == "Hi."
    assert first["results"][0]["cost_usd"] == 4.8e-06
    assert first["results"][0]["error"] is None
    assert first["results"][0]["attempts"][0]["error"] == "overloaded"
    assert second["results"][0]["error"]["code"] == "provider_unavailable"
    assert second["results"][0]["cost_usd"] is None
