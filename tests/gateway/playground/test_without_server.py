"""The playground where no ASGI server brought the call: it makes a runtime that ends with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from core.models import Project
from tests.factories.core import make_key, make_project
from tests.gateway.playground.calls import MESSAGES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return make_project()


def post(project: Project, path: str, content: dict[str, Any]) -> Any:
    _, key = make_key(project, scopes=["manage"])
    headers = {"authorization": f"Bearer {key}", "x-project-id": str(project.pk)}
    return Client().post(f"/api/llm/{path}", json.dumps(content), content_type="application/json", headers=headers)


def test_playground__called_twice_without_a_server__answers_each_time(project: Project) -> None:
    for _ in range(2):
        response = post(project, "playground", {"model": "gpt-4o", "messages": MESSAGES})
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "model_not_found"


def test_compare__without_a_server__answers(project: Project) -> None:
    response = post(project, "playground/compare", {"compare_models": ["a", "b"], "messages": MESSAGES})
    assert [result["error"]["code"] for result in response.json()["results"]] == ["model_not_found"] * 2


def test_stream__without_a_server__comes_whole(project: Project) -> None:
    response = post(project, "playground", {"model": "gpt-4o", "messages": MESSAGES, "stream": True})
    content = b"".join(response.streaming_content)
    assert b"model_not_found" in content
    assert content.count(b"event: result") == 1
