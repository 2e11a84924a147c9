"""Model groups over HTTP: as model, among `models`, as a preferred model, in the list of models, and in the record."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx2

from tests.fakes.scripted import Step, answer, status
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body

MEMBERS = [{"model": "openai/gpt-4o-mini", "weight": 1}, {"model": "groq/llama-3.3-70b", "weight": 1}]


def make_group(gateway: Gateway, name: str = "fast", **fields: Any) -> None:
    """Makes a group and waits until both workers know it."""
    content = {"name": name, "strategy": "ordered", "members": MEMBERS, **fields}
    made = gateway.manage("POST", "model-groups", content)
    assert made.status_code == 201, made.text
    for port in gateway.service.ports:
        path = f"{gateway.service.base_url(port)}/api/gateway/v1/models/{name}"
        ask = partial(gateway.client.get, path, headers=gateway.headers)
        assert gateway.service.until(ask, lambda response: response.status_code == 200).status_code == 200


def both(routed: Routed, first: Step | None = None) -> Gateway:
    gateway, _ = routed(openai=[first or answer()], groq=[answer()])
    return gateway


def used(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    return f"{response.headers['x-svc-provider']}/{response.headers['x-svc-model-used']}"


def test_group__as_model__answers_with_its_first_and_the_record_has_its_name(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway)
    response = gateway.post(body(model="fast"))
    record = gateway.record(response)

    assert used(response) == "openai/gpt-4o-mini"
    assert "x-svc-fallback-used" not in response.headers
    assert (record.requested_model, record.provider, record.model) == ("fast", "openai", "gpt-4o-mini")


def test_group__first_model_fails__the_next_answers_and_the_headers_say_so(routed: Routed) -> None:
    gateway = both(routed, status(401))
    make_group(gateway)
    response = gateway.post(body(model="fast"))

    assert used(response) == "groq/llama-3.3-70b"
    assert (response.headers["x-svc-fallback-used"], response.headers["x-svc-original-model"]) == ("true", "fast")


def test_group__of_a_vendors_name__takes_its_place_and_the_full_name_means_the_model(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway, name="gpt-4o-mini", members=list(reversed(MEMBERS)))
    path = f"{gateway.service.base_url()}/api/gateway/v1/models"
    listed = gateway.client.get(path, headers=gateway.headers).json()["data"]

    assert used(gateway.post(body(model="gpt-4o-mini"))) == "groq/llama-3.3-70b"
    assert used(gateway.post(body(model="openai/gpt-4o-mini"))) == "openai/gpt-4o-mini"
    owners = {model["id"]: model["owned_by"] for model in listed}
    assert (owners["gpt-4o-mini"], owners["openai/gpt-4o-mini"]) == ("groq", "openai")


def test_group__among_models__stands_for_its_models(routed: Routed) -> None:
    gateway = both(routed, status(401))
    make_group(gateway)

    assert used(gateway.post(body(model="openai/gpt-5", models=["fast"]))) == "groq/llama-3.3-70b"


def test_group__as_preferred_model__is_what_auto_stands_for(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway)
    changed = gateway.manage("PUT", "settings", {"preferred_models": ["fast"]})

    assert (changed.status_code, changed.json()["warnings"]) == (200, [])
    response = gateway.service.until(
        lambda: gateway.post(body(model="auto")), lambda response: response.status_code == 200
    )
    assert used(response) == "openai/gpt-4o-mini"


def test_weighted_group__one_session__keeps_its_model(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway, strategy="weighted")
    sessions = {
        session: {used(gateway.post(body(model="fast"), headers={"x-svc-session-id": session})) for _ in range(3)}
        for session in (f"session-{number}" for number in range(8))
    }

    assert {len(found) for found in sessions.values()} == {1}
    assert len(set.union(*sessions.values())) == 2


def test_group__listed__with_the_models(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway)
    with gateway.openai() as client:
        assert client.models.retrieve("fast").id == "fast"
        assert "fast" in [model.id for model in client.models.list()]


def test_group__deleted__404_within_a_second_on_every_worker(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway)
    assert gateway.manage("DELETE", "model-groups/fast").status_code == 204

    for port in gateway.service.ports:
        response = gateway.service.until(
            partial(gateway.post, body(model="fast"), port=port), lambda response: response.status_code == 404
        )
        assert_error(response, 404, "model_not_found")


def test_group__for_embeddings__400_says_that_it_is_for_chat(routed: Routed) -> None:
    gateway = both(routed)
    make_group(gateway)
    response = gateway.client.post(
        "/api/gateway/v1/embeddings", json={"model": "fast", "input": "a"}, headers=gateway.headers
    )

    assert_error(response, 400, "unsupported_parameter", naming="fast")


def test_group__no_model_served__404_names_the_group(routed: Routed) -> None:
    gateway = both(routed)
    content = {"name": "fast", "strategy": "ordered", "members": [{"model": "anthropic/claude-haiku-4.5"}]}
    assert gateway.manage("POST", "model-groups", content).status_code == 201
    response = gateway.service.until(
        lambda: gateway.post(body(model="fast")), lambda response: "group" in response.json()["error"]["message"]
    )

    assert_error(response, 404, "model_not_found")
