"""Keys that may call some models and providers, keys with metadata, and rotated keys, at the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.scripted import answer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import assert_error, body
from tests.tables.cases import tabled

MODELS = "/api/gateway/v1/models"


@pytest.fixture(scope="module")
def project(service: GatewayService, upstream: Any) -> Gateway:
    upstream.play("restricted", answer())
    url = upstream.base_url("restricted")
    return service.new_project(base_urls={"openai": url, "groq": url})


def new_key(project: Gateway, **limits: Any) -> dict[str, Any]:
    made = project.manage("POST", "keys", {"name": "k", "scopes": ["gateway"], **limits})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


@tabled
def test_restricted_key__calls_what_its_patterns_name(
    project: Gateway, limits: dict[str, Any], model: str, status: int
) -> None:
    response = project.post(body(model=model), key=new_key(project, **limits)["key"])

    if status == 403:
        assert_error(response, 403, "model_not_allowed", type="permission_error")
        assert project.record(response).error_code == "model_not_allowed"
    else:
        assert response.status_code == 200, response.text


def test_restricted_key__first_choice_excluded__is_served_by_the_next_as_its_first(project: Gateway) -> None:
    key = new_key(project, allowed_providers=["groq"])["key"]

    response = project.post(body(model="gpt-4o", models=["groq/llama-3.3-70b-versatile"]), key=key)

    assert response.status_code == 200, response.text
    assert response.headers["x-svc-provider"] == "groq"
    assert "x-svc-fallback-used" not in response.headers


def test_model_list__of_a_restricted_key__has_what_it_may_call(project: Gateway) -> None:
    key = new_key(project, allowed_models=["gpt-4o*"])["key"]
    headers = {"authorization": f"Bearer {key}"}

    listed = [model["id"] for model in project.client.get(MODELS, headers=headers).json()["data"]]

    assert listed
    assert all(name.removeprefix("openai/").startswith("gpt-4o") for name in listed)
    assert project.client.get(f"{MODELS}/gpt-4o", headers=headers).status_code == 200
    assert project.client.get(f"{MODELS}/o3", headers=headers).status_code == 404
    everything = project.client.get(MODELS, headers=project.headers).json()["data"]
    assert len(everything) > len(listed)


def test_metadata__is_recorded_with_each_request(project: Gateway) -> None:
    key = new_key(project, metadata={"team": "search"})["key"]

    record = project.record(project.post(body(), key=key))

    assert record.attributes["metadata.team"] == "search"


def test_rotated_key__old_and_new_secret__are_one_key(service: GatewayService, project: Gateway) -> None:
    made = new_key(project)
    assert project.post(body(), key=made["key"]).status_code == 200
    new = project.manage("POST", f"keys/{made['id']}/rotate", {"grace_seconds": 600}).json()["key"]

    records = [project.record(project.post(body(), key=key)) for key in (made["key"], new)]

    assert [record.api_key_id for record in records] == [made["id"], made["id"]]
    ended = project.manage("POST", f"keys/{made['id']}/rotate", {"grace_seconds": 0})
    assert ended.status_code == 200
    for key in (made["key"], new):
        refused = service.until(lambda key=key: project.post(body(), key=key), lambda found: found.status_code == 401)  # type: ignore[misc]
        assert_error(refused, 401, "invalid_api_key")
