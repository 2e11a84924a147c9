"""The subjects that an id names: `GET /api/llm/lookup`."""

from __future__ import annotations

from pathlib import Path

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.requests.entries import entry
from tests.factories.analytics import store, uuid7
from tests.factories.core import client_of, make_key, make_project
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

REQUEST = uuid7(1_790_000_000_000_000)


@pytest.fixture
def log(project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, request_id=REQUEST, session_id="chat/42", user_id="ann-7"),
        entry(project, session_id="ann-7", user_id="bob"),
    )


def look_up(api: APIClient, text: str) -> list[tuple[str, str]]:
    answer = api.get("/api/llm/lookup", {"q": text})
    assert answer.status_code == 200, answer.content
    return [(item["kind"], item["id"]) for item in answer.json()["results"]]


_NAMED = [
    (REQUEST, [("request", REQUEST)]),
    (f" {REQUEST.upper()} ", [("request", REQUEST)]),
    ("chat/42", [("session", "chat/42")]),
    ("bob", [("user", "bob")]),
    ("ann-7", [("session", "ann-7"), ("user", "ann-7")]),
    ("ann", []),
    ("%", []),
    ("' OR 1=1 --", []),
    (uuid7(1), []),
]


@pytest.mark.usefixtures("log")
def test_lookup__ids_of_the_log__name_what_they_are(api: APIClient) -> None:
    for text, expected in _NAMED:
        assert look_up(api, text) == expected, text


def test_lookup__key_prompt_and_rollout__by_id_name_and_beginning(api: APIClient, project: Project) -> None:
    row, key = make_key(project)
    config = make_config(project, name="support", versions=2)
    rollout = make_rollout(config)

    assert look_up(api, key) == look_up(api, row.prefix) == [("api_key", str(row.pk))]
    assert look_up(api, str(config.pk)) == look_up(api, "support") == [("prompt", str(config.pk))]
    assert look_up(api, str(rollout.pk)) == [("rollout", str(rollout.pk))]
    assert ("rollout", str(rollout.pk)) in look_up(api, rollout.name)
    assert look_up(api, "svc_") == []


@pytest.mark.usefixtures("log")
def test_lookup__records_of_another_project__are_not_found(project: Project) -> None:
    row, key = make_key(project)
    config = make_config(project, name="support", versions=2)
    stranger = client_of(make_project())

    for text in (REQUEST, "chat/42", "ann-7", key, row.prefix, str(config.pk), "support"):
        assert look_up(stranger, text) == []


def test_lookup__nothing_to_look_for__400_names_q(api: APIClient) -> None:
    answer = api.get("/api/llm/lookup", {"q": " "})

    assert answer.status_code == 400
    assert list(answer.json()["error"]["details"]) == ["q"]
    assert look_up(api, "") == []
