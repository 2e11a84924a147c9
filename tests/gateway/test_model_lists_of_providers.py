"""The providers' own lists of models in `GET /models`: read in the background, kept while a provider is down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.cheap_calls import cheap_call, refuses
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.fakes.scripted import Step, raw
from tests.gateway.service import Gateway, GatewayService

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def vendors() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


def project_of(service: GatewayService, vendors: DialectServer, **scripts: list[Step]) -> Gateway:
    """Returns a project with an integration for each provider in `scripts`, which follows these steps."""
    rows = []
    for provider, steps in scripts.items():
        name = f"{provider}-{len(vendors.scripts)}"
        vendors.play(name, *steps)
        fake = FAKES[provider].credentials(vendors.base_url(name))
        rows.append({"provider": provider, "base_url": fake.base_url, "api_key": fake.secret})
    return service.new_project(integrations=rows)


def models_of(gateway: Gateway) -> dict[str, dict[str, Any]]:
    response = gateway.client.get("/api/gateway/v1/models", headers=gateway.headers)
    return {model["id"]: model for model in response.json()["data"]}


def refreshed(gateway: Gateway) -> str:
    return gateway.service.manage("refresh_model_lists", "--project", gateway.project_id)


def listing(*models: dict[str, Any]) -> Step:
    return raw(200, json.dumps({"object": "list", "data": models}).encode(), JSON)


def test_own_list__of_each_form__replaces_the_catalogs(service: GatewayService, vendors: DialectServer) -> None:
    names = {
        "openai": "openai/fake-1",
        "anthropic": "claude-sonnet-5",
        "google": "gemini-2.5-flash",
        "cohere": "command-a-03-2025",
        "mistral": "mistral/fake-1",
        "groq": "groq/fake-1",
        "together": "together/fake-1",
        "openrouter": "openrouter/fake-1",
        "vllm": "vllm/fake-1",
    }
    gateway = project_of(service, vendors, **{provider: [cheap_call(provider)] for provider in names})
    assert len(models_of(gateway)) > len(names)

    assert refreshed(gateway).count(": 1 models") == len(names)

    models = service.until(lambda: models_of(gateway), lambda found: len(found) == len(names))
    assert {model["provider"]: name for name, model in models.items()} == names


def test_own_list__times_sizes_and_kinds__are_the_providers(service: GatewayService, vendors: DialectServer) -> None:
    gateway = project_of(
        service,
        vendors,
        openai=[
            listing(
                {"id": "gpt-next", "created": 1_790_000_000, "context_window": 1000, "max_completion_tokens": 200},
                {"id": "gpt-gone", "active": False},
                {"id": "gpt-paint", "architecture": {"output_modalities": ["image"]}},
                {"id": "whisper-1"},
                {"id": "gpt-realtime"},
                {"id": 7},
                {"id": "two words"},
            )
        ],
    )
    refreshed(gateway)

    models = service.until(lambda: models_of(gateway), lambda found: "gpt-next" in found)
    assert set(models) == {"gpt-next", "whisper-1"}
    assert models["whisper-1"]["operations"] == ["transcriptions"]
    model = models["gpt-next"]
    assert (model["created"], model["context_window"], model["max_output_tokens"]) == (1_790_000_000, 1000, 200)


def test_providers_that_fail_later__keep_their_last_lists(service: GatewayService, vendors: DialectServer) -> None:
    failures = {
        "openai": refuses("openai", 500, "down"),
        "groq": refuses("groq", 401, "wrong key {key}"),
        "vllm": raw(200, b"<html>log in</html>", {"content-type": "text/html"}),
        "mistral": raw(200, b'{"object": "list", "data": []}', JSON),
    }
    names = {f"{provider}/fake-1" for provider in failures}
    scripts = {provider: [cheap_call(provider), failure] for provider, failure in failures.items()}
    gateway = project_of(service, vendors, **scripts)
    refreshed(gateway)
    assert set(service.until(lambda: models_of(gateway), lambda models: set(models) == names)) == names

    assert refreshed(gateway).count("not read") == len(names)

    assert set(models_of(gateway)) == names


def test_provider_that_never_answered__has_the_models_of_the_catalogs(service: GatewayService) -> None:
    gateway = service.new_project(base_urls={"openai": "http://127.0.0.1:9/v1"})

    assert "not read" in refreshed(gateway)

    assert "gpt-5" in models_of(gateway)


def test_integration_moved_to_another_server__loses_the_list_of_the_former(
    service: GatewayService, vendors: DialectServer
) -> None:
    gateway = project_of(service, vendors, openai=[cheap_call("openai")])
    refreshed(gateway)
    service.until(lambda: models_of(gateway), lambda models: list(models) == ["openai/fake-1"])

    moved = {"api_key": "sk-another-0123456789", "base_url": "http://127.0.0.1:9/v1"}
    assert gateway.manage("PUT", "integrations/openai", moved).status_code == 200

    models = service.until(lambda: models_of(gateway), lambda found: "gpt-5" in found)
    assert "openai/fake-1" not in models
