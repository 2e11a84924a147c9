"""GET /api/llm/sessions/{id}/timeline shows spans and requests of a session as trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from analytics.request_log.record import AttemptRecord, Outcome
from core.models import Project
from tests.analytics.sessions.entries import entry
from tests.analytics.telemetry.sending import SESSION, Sender, span
from tests.factories.analytics import store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

URL = f"/api/llm/sessions/{SESSION}/timeline"
FAILED = AttemptRecord("openai", "gpt-4o", 503, "unavailable", 1200, offset_us=5_000)
SERVED = AttemptRecord("anthropic", "claude", 200, "", 2400, 10, 5, "0.0031", offset_us=1_250_000)


def nodes(api: APIClient) -> list[Any]:
    answer = api.get(URL)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["nodes"])


def test_timeline__request_without_spans__node_with_its_attempts(
    api: APIClient, project: Project, spool: Path, settings: Settings
) -> None:
    settings.GATEWAY_SPANS = False
    store(spool, entry(project, SESSION, 5, attempts=(FAILED, SERVED), latency_ms=3700))

    request, failed, served = nodes(api)

    assert (request["kind"], request["status"], request["depth"], request["duration_ms"]) == ("request", "ok", 0, 3700)
    assert (failed["kind"], failed["status"], failed["offset_ms"], failed["duration_ms"]) == (
        "attempt",
        "error",
        5,
        1200,
    )
    assert failed["parent_id"] == served["parent_id"] == request["id"]
    assert (served["provider"], served["offset_ms"]) == ("anthropic", 1250)


def test_timeline__gateways_spans__stand_for_the_request(api: APIClient, project: Project, spool: Path) -> None:
    made = entry(project, SESSION, 5, attempts=(SERVED,), outcome=Outcome.ERROR, status_code=400, error_code="x")
    store(spool, made)

    request, attempt = nodes(api)

    assert request["request_id"] == attempt["request_id"] == made.record.request_id
    assert (request["kind"], request["status"], request["cost_usd"]) == ("request", "error", 0.0000048)
    assert (attempt["kind"], attempt["depth"], attempt["parent_id"]) == ("attempt", 1, request["id"])


def test_timeline__spans__tree_by_start(api: APIClient, sender: Sender) -> None:
    def number(place: int) -> bytes:
        return place.to_bytes(8, "big")

    spans = [span(4, parent_span_id=number(1)), span(1), span(3, parent_span_id=number(2))]
    sender.traces(*spans, span(2, parent_span_id=number(1)), span(9, parent_span_id=number(77)))

    found = [(node["name"], node["depth"]) for node in nodes(api)]

    assert found == [("span 1", 0), ("span 2", 1), ("span 3", 2), ("span 4", 1), ("span 9", 0)]


def test_timeline__circle_of_parents__every_span_once(api: APIClient, sender: Sender) -> None:
    def number(place: int) -> bytes:
        return place.to_bytes(8, "big")

    sender.traces(*(span(place, parent_span_id=number(place % 3 + 1)) for place in (1, 2, 3)))

    assert sorted(node["name"] for node in nodes(api)) == ["span 1", "span 2", "span 3"]


@pytest.mark.parametrize("part", ["", "/requests", "/transcript", "/timeline"])
def test_session__unknown__404(api: APIClient, part: str) -> None:
    answer = api.get(URL.removesuffix("/timeline") + part)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "session_not_found")


def test_request__failover__timeline_of_attempts(api: APIClient, project: Project, spool: Path) -> None:
    made = entry(
        project, "s", 5, attempts=(FAILED, SERVED), latency_ms=3700, ttft_ms=1900, is_stream=True, fallback_used=True
    )
    store(spool, made)

    failed, served = api.get(f"/api/llm/requests/{made.record.request_id}").json()["attempt_timeline"]

    assert failed == {
        "number": 1, "provider": "openai", "deployment": "openai", "model": "gpt-4o", "started_ms": 5.0, "wait_ms": 5.0,
        "first_token_ms": None, "ended_ms": 1205.0, "is_answer": False, "status": 503, "error": "unavailable",
        "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": None,
    }  # fmt: skip
    assert (served["wait_ms"], served["first_token_ms"], served["ended_ms"]) == (45.0, 1900, 3700)
    assert (served["is_answer"], served["error"], served["cost_usd"]) == (True, None, 0.0031)


def test_neighbours__session__requests_before_and_after(api: APIClient, project: Project, spool: Path) -> None:
    made = [entry(project, session, ago) for session, ago in (("s", 9000), ("t", 8), ("s", 7), ("s", 6), ("t", 5))]
    store(spool, *made)
    request_ids = [item.record.request_id for item in made]

    def beside(place: int) -> Any:
        return api.get(f"/api/llm/requests/{request_ids[place]}/neighbours").json()

    assert beside(2) == {"session_id": "s", "previous": request_ids[0], "next": request_ids[3]}
    assert beside(0) == {"session_id": "s", "previous": None, "next": request_ids[2]}
    assert beside(3)["next"] is None


def test_neighbours__no_session__of_the_log(api: APIClient, project: Project, spool: Path) -> None:
    made = [entry(project, session, ago) for session, ago in (("s", 8), ("", 7), ("t", 6))]
    store(spool, *made)

    found = api.get(f"/api/llm/requests/{made[1].record.request_id}/neighbours").json()

    assert found == {"session_id": None, "previous": made[0].record.request_id, "next": made[2].record.request_id}


def test_neighbours__same_microsecond__by_id(api: APIClient, project: Project, spool: Path) -> None:
    made = [entry(project, "s", 5) for _ in range(3)]
    store(spool, *made)
    first, second, third = sorted(item.record.request_id for item in made)

    found = api.get(f"/api/llm/requests/{second}/neighbours").json()

    assert (found["previous"], found["next"]) == (first, third)
    assert json.loads(api.get(f"/api/llm/requests/{third}/neighbours").content)["next"] is None
