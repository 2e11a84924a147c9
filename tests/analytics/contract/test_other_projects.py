"""A client that knows another project's ids sees and changes nothing of it, at any endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from analytics.models import Feedback, Score
from analytics.request_log.record import AttemptRecord
from analytics.scores.sync.run import copy_due
from analytics.shipper.loop import Shipper
from analytics.spool.writer import SpoolWriter
from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, REQUEST, SESSION, content_of
from tests.factories.analytics import make_entry
from tests.factories.core import client_of, make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_SECRET = "a secret"


@pytest.fixture
def stranger(project: Project, spool: Path) -> APIClient:
    """A client of another project than `project`, which has a request, its spans, a score and feedback."""
    body = json.dumps({"messages": [{"role": "user", "content": _SECRET}]}).encode()
    names: dict[str, Any] = {"user_id": _SECRET, "model": _SECRET, "error_type": _SECRET, "session_id": SESSION}
    verdict = {"guardrail": _SECRET, "stage": "input", "action": "blocked", "detail": _SECRET}
    names["attributes"] = {"guardrails": json.dumps([verdict])}
    calls = (AttemptRecord("groq", _SECRET, error="unavailable"), AttemptRecord("openai", _SECRET, error="timeout"))
    names |= {"attempts": calls, "fallback_used": True, "cost_known": False, "cost_usd": ""}
    writer = SpoolWriter(spool)
    writer.append(make_entry(body, body, project_id=str(project.pk), request_id=REQUEST, outcome="error", **names))
    # What prompt caches saved is counted for requests that succeeded only.
    names |= {"outcome": "success", "error_type": "", "fallback_used": False}
    writer.append(make_entry(body, body, project_id=str(project.pk), **names))
    writer.close()
    shipper = Shipper(spool)
    shipper.drain()
    shipper.close()
    owner = client_of(project)
    for endpoint in ENDPOINTS:
        if endpoint.method == "POST" and not endpoint.store:
            assert endpoint.call(owner, project).status_code == 201
    Score.objects.update(reason=_SECRET, score_name=_SECRET)
    Feedback.objects.update(text=_SECRET)
    copy_due()
    return client_of(make_project())


def shown(answer: Any) -> bool:
    """Returns whether an answer shows the other project's data. Links are left out, because they repeat the request."""
    content = content_of(answer).decode()
    if answer.headers.get("Content-Type") == "application/json":
        content = json.dumps({name: value for name, value in answer.json().items() if name not in ("next", "previous")})
    return answer.status_code < 300 and any(secret in content for secret in (_SECRET, SESSION, REQUEST))


def test_owner__calls_every_endpoint__sees_its_data(stranger: APIClient, project: Project) -> None:
    """The test makes sure that the next one can fail."""
    owner = client_of(project)

    seen = {e.path for e in ENDPOINTS if e.method != "DELETE" and shown(e.call(owner, project))}

    names = (
        "operations",
        "prompts",
        "cost/daily",
        "usage",
        "feedback",
        "bad-ratings",
        "provider-latency",
        "providers/history",
        "totals",
    )
    anonymous = {f"/api/llm/metrics/{name}" for name in names}
    assert seen == {e.path for e in ENDPOINTS} - anonymous - {
        "/api/llm/users/{user}",
        "/api/llm/views/{view}",
        "/api/llm/requests/histogram",
        "/api/llm/evaluators/{evaluator}/calibration",
    }


def test_stranger__calls_every_endpoint_with_all_ids__sees_and_changes_nothing(
    stranger: APIClient, project: Project
) -> None:
    own = Project.objects.exclude(pk=project.pk).get()
    query = {"session_id": SESSION, "user_id": _SECRET, "model": _SECRET, "score_name": _SECRET, "name_pattern": "%"}
    owner = client_of(project)
    before = all_of(owner, project)
    # Posts to the SQL database come last, since their bodies store these ids in the stranger's own project.
    order = sorted(ENDPOINTS, key=lambda endpoint: endpoint.method == "POST" and not endpoint.store)

    for endpoint in order:
        for parameters in ({}, query):
            answer = endpoint.call(stranger, own, parameters)

            if endpoint.method != "POST" or endpoint.store:
                assert not shown(answer), endpoint
            if endpoint.method == "DELETE":
                assert answer.status_code == 404

    assert all_of(owner, project) == before


def test_project_of_another__named_anywhere__refused(stranger: APIClient, project: Project) -> None:
    """The project is named in the query, twice, in the body, in the path, and by the header."""
    own = Project.objects.exclude(pk=project.pk).get()
    other, mine = str(project.pk), str(own.pk)
    misled = client_of(own, project)

    for endpoint in ENDPOINTS:
        url = endpoint.url(own)
        call = endpoint.send(stranger)
        answers = [call(f"{url}?project_id={named}") for named in (other, other.upper(), project.pk.hex)]
        answers += [
            call(f"{url}?project_id={other}&project_id={mine}"),
            call(f"{url}?project_id={mine}&project_id={other}"),
        ]
        if endpoint.method != "GET":
            answers.append(call(url, {"project_id": other, **endpoint.body}))
        if "{project}" in endpoint.path:
            answers.append(call(endpoint.url(project)))

        assert {answer.status_code for answer in answers} == {403}, endpoint
        assert endpoint.call(misled, own).status_code == 401, endpoint


def all_of(owner: APIClient, project: Project) -> dict[str, bytes]:
    """Returns every answer that the project's own client gets."""
    ever = {"start_date": "2020-01-01", "end_date": "2100-01-01"}
    return {
        endpoint.path: content_of(endpoint.call(owner, project, ever))
        for endpoint in ENDPOINTS
        # Live figures change, and the range before one that goes on grows with the time.
        if endpoint.method == "GET" and not endpoint.path.endswith(("provider-latency", "metrics/cost"))
    }
