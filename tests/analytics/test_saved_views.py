"""Saved views of lists belong to who saved them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics import saved_views
from core.models import Project
from core.roles import Role
from tests.factories.core import make_staff
from tests.rights.conftest import signed_in

pytestmark = pytest.mark.django_db

PATH = "/api/llm/views"


def call(client: Client, project: Project, method: str, path: str = PATH, **body: Any) -> Any:
    return client.generic(method, path, json.dumps(body), "application/json", headers={"X-Project-Id": str(project.pk)})


def names(client: Client, project: Project, query: str = "") -> list[str]:
    return [item["name"] for item in call(client, project, "GET", f"{PATH}{query}").json()["results"]]


def test_view__saved_again_under_its_name__is_changed(project: Project) -> None:
    ann = signed_in(make_staff(Role.READER_WITHOUT_CONTENT, project, name="ann"))

    first = call(ann, project, "POST", page="requests", name="slow", query="?sort=-latency_ms&project=x&cursor=y")
    again = call(ann, project, "POST", page="requests", name="slow", query="min_latency_ms=5000")
    call(ann, project, "POST", page="sessions", name="long", query="")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["query"] == "sort=-latency_ms"
    assert again.json()["id"] == first.json()["id"]
    assert names(ann, project) == ["long", "slow"]
    assert names(ann, project, "?page=requests") == ["slow"]


def test_view__of_somebody_else__is_not_there(project: Project) -> None:
    ann = signed_in(make_staff(Role.READER, project, name="ann"))
    bob = signed_in(make_staff(Role.ADMINISTRATOR, project, name="bob"))
    view = call(ann, project, "POST", page="requests", name="mine", query="").json()

    assert names(bob, project) == []
    assert call(bob, project, "DELETE", f"{PATH}/{view['id']}").status_code == 404
    assert call(ann, project, "DELETE", f"{PATH}/{view['id']}").status_code == 204
    assert names(ann, project) == []


def test_view__more_parameters_than_a_list_takes__400_names_the_query(api: APIClient) -> None:
    answer = api.post(PATH, {"page": "requests", "name": "a", "query": "a=1&" * 101})

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == ["query"]


def test_view__more_than_there_may_be__refused_and_not_kept(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    assert api.post(PATH, {"page": "requests", "name": "one"}).status_code == 201

    answer = api.post(PATH, {"page": "requests", "name": "two"})

    assert list(answer.json()["error"]["details"]) == ["name"]
    assert api.get(PATH).json()["count"] == 1
    assert api.post(PATH, {"page": "requests", "name": "one", "query": "a=b"}).status_code == 200
