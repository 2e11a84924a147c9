"""Several deployments of one provider, as a client and an operator see them over HTTP."""

from __future__ import annotations

import json

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import ScriptedServer
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.wire import assert_error, body

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
PRICE = {"model": "gpt-4o", "input_cost_per_1m": "1", "output_cost_per_1m": "10"}
EU = {"models": [{"model": "gpt-4o", "deployment": "my-gpt4o-eu"}], "prices": [PRICE], "weight": 1}


@pytest.fixture
def gateway(service: GatewayService, upstream: ScriptedServer) -> Gateway:
    """A project with `openai`, and with `openai-eu` behind it."""
    gateway = service.new_project(base_urls={"openai": upstream.base_url("d-own")}, routing={"retry_enabled": False})
    fields = {"name": "openai-eu", "provider": "openai", "api_key": "sk-eu-0123456789", "priority": 1, **EU}
    added = gateway.manage("POST", "integrations", {**fields, "base_url": upstream.base_url("d-eu")})
    assert added.status_code == 201, added.text
    upstream.play("d-eu", play.answer("eu"))
    named = body(model="openai-eu/gpt-4o")
    for port in service.ports:
        service.until(lambda: gateway.post(named, port=port).status_code, lambda status: status == 200)  # noqa: B023
    return gateway


def test_deployments__first_one_fails__its_sibling_answers_under_its_own_name(
    gateway: Gateway, upstream: ScriptedServer
) -> None:
    upstream.play("d-own", play.status(503))
    eu = upstream.play("d-eu", play.answer("from the EU", usage=USAGE))

    response = gateway.post(body(model="gpt-4o"))

    assert response.json()["choices"][0]["message"]["content"] == "from the EU"
    assert (response.headers["x-svc-provider"], response.headers["x-svc-deployment"]) == ("openai", "openai-eu")
    assert response.headers["x-svc-model-used"] == "gpt-4o"
    sent = eu.received[-1]
    assert json.loads(sent.body)["model"] == "my-gpt4o-eu"
    record = gateway.record(response)
    assert [(one.provider, one.deployment, one.model) for one in record.attempts] == [
        ("openai", "openai", "gpt-4o"),
        ("openai", "openai-eu", "gpt-4o"),
    ]
    # The first choice did not answer, and yet nobody else did than the model and provider that were asked.
    assert (record.fallback_used, record.other_used) == (True, False)
    # The price is the deployment's own: 1,000 tokens of input and 100 of output.
    assert (record.provider, record.model, record.cost_usd) == ("openai", "gpt-4o", "0.0020000000")


def test_deployments__chosen_by_name__that_one_alone(gateway: Gateway, upstream: ScriptedServer) -> None:
    own, eu = upstream.play("d-own", play.answer("own")), upstream.play("d-eu", play.answer("eu"))
    asked = len(own.received)

    for fields in ({"model": "openai-eu/gpt-4o"}, {"model": "gpt-4o", "provider": {"order": ["openai-eu"]}}):
        assert gateway.post(body(**fields)).headers["x-svc-deployment"] == "openai-eu"
    refused = gateway.post(body(model="openai-eu/gpt-4o-mini"))

    assert_error(refused, 404, "model_not_found", naming="gpt-4o-mini")
    assert (len(own.received), len(eu.received) > 1) == (asked, True)


def test_model_list__key_of_one_deployment__has_what_that_deployment_serves(gateway: Gateway) -> None:
    fields = {"name": "eu", "scopes": ["gateway"], "allowed_providers": ["openai-eu"]}
    made = gateway.manage("POST", "keys", fields)
    headers = {"authorization": f"Bearer {made.json()['key']}"}

    listed = gateway.client.get("/api/gateway/v1/models", headers=headers).json()["data"]

    assert [model["id"] for model in listed if model["id"] != "auto"] == ["gpt-4o"]
    assert gateway.client.get("/api/gateway/v1/models/gpt-4o-mini", headers=headers).status_code == 404
    assert len(gateway.client.get("/api/gateway/v1/models", headers=gateway.headers).json()["data"]) > len(listed)


def test_settings__order_of_fallbacks__takes_names_of_this_project_alone(
    gateway: Gateway, service: GatewayService
) -> None:
    settings = {"fallback_order": ["openai-eu", "openai"]}
    assert gateway.manage("PUT", "settings", settings).json()["fallback_order"] == ["openai-eu", "openai"]
    other = service.new_project()
    refused = other.manage("PUT", "settings", settings)
    assert (refused.status_code, list(refused.json()["error"]["details"])) == (400, ["fallback_order"])


SESSIONS = [f"session-{number}" for number in range(24)]


def answered_by(gateway: Gateway, session: str, port: int) -> str:
    response = gateway.post(body(model="gpt-4o"), port=port, headers={"x-svc-session-id": session})
    assert response.status_code == 200, response.text
    return response.headers["x-svc-deployment"]


def test_sessions__one_of_three_dies_and_comes_back__no_client_error_and_only_its_own_move(
    service: GatewayService, upstream: ScriptedServer
) -> None:
    """Two workers choose the same deployment for a session, and learn of a circuit from each other."""
    names = ("openai", "openai-eu", "openai-us")
    gateway = service.new_project(base_urls={"openai": upstream.base_url("s-openai")})
    for name in names:
        upstream.play(f"s-{name}", play.answer(name))
    for name in names[1:]:
        fields = {
            "name": name,
            "provider": "openai",
            "api_key": "sk-0123456789",
            "base_url": upstream.base_url(f"s-{name}"),
        }
        assert gateway.manage("POST", "integrations", fields).status_code == 201
    for port in service.ports:
        named = body(model="openai-us/gpt-4o")
        service.until(lambda: gateway.post(named, port=port).status_code, lambda status: status == 200)  # noqa: B023

    first, second = ({one: answered_by(gateway, one, port) for one in SESSIONS} for port in service.ports)
    assert first == second
    assert set(first.values()) == set(names)

    upstream.play("s-openai-eu", play.status(503))
    for port in service.ports:
        moved = {one: answered_by(gateway, one, port) for one in SESSIONS}
        assert "openai-eu" not in moved.values()
        assert {one for one in SESSIONS if moved[one] != first[one]} == {
            one for one in SESSIONS if first[one] == "openai-eu"
        }

    upstream.play("s-openai-eu", play.answer("openai-eu"))
    mine = next(one for one in SESSIONS if first[one] == "openai-eu")
    for port in service.ports:
        service.until(lambda: answered_by(gateway, mine, port), lambda name: name == "openai-eu")  # noqa: B023
    assert {one: answered_by(gateway, one, service.ports[0]) for one in SESSIONS} == first
