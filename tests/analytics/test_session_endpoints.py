from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.clickhouse import client
from analytics.contracts import AttemptRecord, Outcome, SpoolEntry
from analytics.services import record_feedback
from core.models import Project
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_key, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def api(project: Project) -> APIClient:
    _, key = make_key(project)
    caller = APIClient()
    caller.credentials(HTTP_AUTHORIZATION=f"Bearer {key}", HTTP_X_PROJECT_ID=str(project.pk))
    return caller


def entry(project: Project, session: str, minutes_ago: float = 0.0, **values: Any) -> SpoolEntry:
    ts = int((NOW - timedelta(minutes=minutes_ago)).timestamp() * 1_000_000)
    return make_entry(project_id=str(project.pk), session_id=session, ts=ts, **values)


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json()
    return [item["session_id"] for item in answer.json()["results"]]


def test_sessions__several_requests__sums_equal_plain_arithmetic(api: APIClient, project: Project, spool: Path) -> None:
    entries = [
        entry(project, "s1", 3, user_id="u", prompt_tokens=100, completion_tokens=11, cost_usd="0.0000000001"),
        entry(project, "s1", 2, user_id="", prompt_tokens=7, completion_tokens=0, cost_usd="1.2345678901"),
        entry(project, "s1", 1, outcome=Outcome.ERROR, status_code=503, cost_known=False, cost_usd=""),
        entry(project, "", 1),
        entry(make_project(), "s1", 1),
    ]
    store(spool, *entries)

    answer = api.get("/api/llm/sessions")

    assert answer.json()["count"] == 1
    (session,) = answer.json()["results"]
    mine = [e.record for e in entries[:3]]
    assert session["session_id"] == "s1"
    assert session["user_id"] == "u"
    assert session["request_count"] == len(mine)
    assert session["error_count"] == 1
    assert session["unpriced_request_count"] == 1
    assert session["total_tokens"] == sum(r.prompt_tokens + r.completion_tokens for r in mine)
    exact = json.loads(answer.content, parse_float=Decimal)["results"][0]["total_cost_usd"]
    assert exact == sum(Decimal(r.cost_usd or "0") for r in mine)
    assert session["feedback_score"] is None
    assert session["started_at"] == (NOW - timedelta(minutes=3)).isoformat().replace("+00:00", "Z")
    assert session["ended_at"] == (NOW - timedelta(minutes=1)).isoformat().replace("+00:00", "Z")


def test_sessions__pages__cover_all_once_latest_first(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, *(entry(project, f"s{i}", minutes_ago=i) for i in range(25)))

    first = api.get("/api/llm/sessions")
    second = api.get("/api/llm/sessions", {"offset": 20})
    beyond = api.get("/api/llm/sessions", {"offset": 99})

    assert ids(first) + ids(second) == [f"s{i}" for i in range(25)]
    assert first.json()["count"] == second.json()["count"] == beyond.json()["count"] == 25
    assert first.json()["next"] is not None
    assert ids(beyond) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"user_id": "ann"}, ["chat-1"]),
        ({"user_id": "nobody"}, []),
        ({"name_pattern": "chat-%"}, ["chat-1"]),
        ({"name_pattern": "chat_2"}, ["chat_2"]),
        ({"name_pattern": "%\\_2"}, ["chat_2"]),
        ({"name_pattern": "2"}, []),
        ({"name_pattern": "' OR 1=1 --"}, []),
        ({"name_pattern": "%ü/%"}, ["grüße ü/1"]),
        ({"name_pattern": "%", "user_id": "bob"}, ["chat_2"]),
    ],
)
def test_sessions__filters__keep_what_matches(
    api: APIClient, project: Project, spool: Path, parameters: dict[str, str], expected: list[str]
) -> None:
    store(
        spool,
        entry(project, "chat-1", 1, user_id="ann"),
        entry(project, "chat_2", 2, user_id="bob"),
        entry(project, "grüße ü/1", 3, user_id="cyd"),
    )

    assert ids(api.get("/api/llm/sessions", parameters)) == expected


def test_sessions__dates__keep_sessions_active_in_the_range(api: APIClient, project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "old", 600),
        entry(project, "long", 600),
        entry(project, "long", 10),
        entry(project, "new", 11),
    )
    hours = {n: (NOW - timedelta(hours=n)).isoformat() for n in (11, 9, 1)}

    assert ids(api.get("/api/llm/sessions", {"start_date": hours[1]})) == ["long", "new"]
    assert ids(api.get("/api/llm/sessions", {"end_date": hours[9]})) == ["long", "old"]
    assert ids(api.get("/api/llm/sessions", {"start_date": hours[11], "end_date": hours[9]})) == ["long", "old"]
    assert ids(api.get("/api/llm/sessions", {"start_date": "2020-01-01", "end_date": "2020-02-01"})) == []
    unescaped = "/api/llm/sessions?start_date=" + hours[1]
    assert ids(api.get(unescaped)) == ["long", "new"]


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"offset": "-1"}, "offset"),
        ({"start_date": "yesterday"}, "start_date"),
        ({"end_date": "9999-12-31T23:59:59-10:00"}, "end_date"),
        ({"start_date": "2026-02-01", "end_date": "2026-01-01"}, "end_date"),
        ({"name_pattern": "x\\"}, "name_pattern"),
    ],
)
def test_sessions__bad_parameter__400_naming_it(api: APIClient, parameters: dict[str, str], field: str) -> None:
    answer = api.get("/api/llm/sessions", parameters)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["details"]


def test_sessions__other_project_in_query__403(api: APIClient) -> None:
    assert api.get("/api/llm/sessions", {"project_id": str(make_project().pk)}).status_code == 403


def test_sessions__listing_delay__holds_back_until_quiet(
    api: APIClient, project: Project, spool: Path, settings: Settings
) -> None:
    store(spool, entry(project, "live", 5), entry(project, "closed", 24 * 60 + 1))
    settings.SESSION_LISTING_DELAY_MINUTES = 24 * 60

    assert ids(api.get("/api/llm/sessions")) == ["closed"]


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
        entry(project, "s", 1, user_id="ann", provider="", cost_known=False, cost_usd=""),
    )

    detail = api.get("/api/llm/sessions/s").json()

    assert detail["user_id"] == "ann"
    assert detail["users"] == ["ann", "zoe"]
    assert detail["providers_used"] == ["google", "openai"]
    assert detail["duration_seconds"] == 90
    assert detail["cancelled_count"] == 1
    assert detail["unpriced_request_count"] == 1


def test_sessions__feedback__score_in_the_list_and_all_in_the_detail(
    api: APIClient, project: Project, spool: Path
) -> None:
    store(spool, entry(project, "rated", 1), entry(project, "silent", 2))
    stranger = make_project()
    for owner, score, text in ((project, 5, ""), (project, 2, "slow"), (project, None, "hm"), (stranger, 1, "theirs")):
        record_feedback(project_id=owner.pk, session_id="rated", score=score, text=text, actor="someone")

    listed = {item["session_id"]: item["feedback_score"] for item in api.get("/api/llm/sessions").json()["results"]}
    detail = api.get("/api/llm/sessions/rated").json()

    assert listed == {"rated": 3.5, "silent": None}
    assert detail["feedback_score"] == 3.5
    assert [(item["score"], item["text"]) for item in detail["feedback"]] == [(None, "hm"), (2, "slow"), (5, "")]


@pytest.mark.parametrize(
    "session_id",
    [
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
    ],
)
def test_session__id_of_any_characters__is_found_by_its_own_path(
    api: APIClient, project: Project, spool: Path, session_id: str
) -> None:
    store(spool, entry(project, session_id), entry(project, "another"))
    path = f"/api/llm/sessions/{quote(session_id, safe='')}"

    assert api.get(path).json()["session_id"] == session_id
    requests = api.get(f"{path}/requests").json()
    assert [item["session_id"] for item in requests["results"]] == [session_id]
    assert ids(api.get("/api/llm/sessions", {"name_pattern": re.sub(r"([%_\\])", r"\\\1", session_id)})) == [session_id]


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


@pytest.mark.parametrize(
    "parameters",
    [
        {"offset": str(2**62)},
        {"offset": "100000", "limit": "1000"},
        {"start_date": "2199-12-31T23:59:59.999999Z"},
        {"start_date": "2150-01-01", "end_date": "2199-12-31"},
        {"end_date": "1970-01-01"},
        {"name_pattern": "%" * 1024},
        {"name_pattern": "%_" * 512},
        {"name_pattern": "\\" * 1024},
        {"name_pattern": "[(*+?{"},
        {"user_id": "\ud800"},
        {"user_id": "u\\' OR ''='"},
    ],
)
def test_sessions__odd_but_valid_filter__answers(
    api: APIClient, project: Project, spool: Path, parameters: dict[str, str]
) -> None:
    store(spool, entry(project, "s"), entry(make_project(), "theirs"))

    answer = api.get(f"/api/llm/sessions?{urlencode(parameters, errors='surrogatepass')}")

    assert answer.status_code == 200, answer.json()
    assert set(ids(answer)) <= {"s"}


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


def test_session__unknown_or_foreign__404(api: APIClient, spool: Path) -> None:
    store(spool, entry(make_project(), "theirs"))

    assert api.get("/api/llm/sessions/theirs").status_code == 404
    assert api.get("/api/llm/sessions/theirs/requests").status_code == 404


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


def test_sessions__store_away__503(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    client.close()
    with monkeypatch.context() as patch:
        patch.setattr(client, "resolve_url", lambda: "clickhouse://127.0.0.1:1/llm")
        answer = api.get("/api/llm/sessions")
    client.close()

    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "service_unavailable_error"
