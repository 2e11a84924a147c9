"""The routing of a request as its client sees it: `auto`, `models`, `provider`, parameters that providers lack."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes import scripted as play
from tests.gateway.conftest import Routed
from tests.gateway.wire import assert_error, body

PREFERRED = {"preferred_models": ["groq/llama-3.3-70b-versatile", "openai/gpt-4o"]}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PICTURE: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}]


def test_auto__first_preferred_model__is_named_in_the_headers(routed: Routed) -> None:
    gateway, scripts = routed(PREFERRED, groq=[play.answer("quick")], openai=[play.answer("other")])

    response = gateway.post(body(model="auto"))

    assert response.json()["choices"][0]["message"]["content"] == "quick"
    assert response.headers["x-svc-model-used"] == "llama-3.3-70b-versatile"
    assert response.headers["x-svc-provider"] == "groq"
    assert "x-svc-fallback-used" not in response.headers
    assert json.loads(scripts["groq"].received[0].body)["model"] == "llama-3.3-70b-versatile"
    record = gateway.record(response)
    assert (record.requested_model, record.model) == ("auto", "llama-3.3-70b-versatile")


def test_auto__picture__goes_to_the_first_model_that_sees(routed: Routed) -> None:
    gateway, scripts = routed(PREFERRED, groq=[play.answer()], openai=[play.answer("a cat")])

    response = gateway.post(body(model="auto", messages=PICTURE))

    assert response.headers["x-svc-model-used"] == "gpt-4o"
    assert not scripts["groq"].received


def test_auto__first_preferred_model_fails__next_one_serves(routed: Routed) -> None:
    gateway, _ = routed(PREFERRED, groq=[play.status(503)], openai=[play.answer("saved")])

    response = gateway.post(body(model="auto"))

    assert response.status_code == 200
    assert response.headers["x-svc-model-used"] == "gpt-4o"
    assert response.headers["x-svc-original-model"] == "auto"
    assert response.headers["x-svc-fallback-used"] == "true"


def test_auto__without_preferred_models__is_404(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer()])

    assert_error(gateway.post(body(model="auto")), 404, "model_not_found", naming="preferred models")


def test_models__nobody_serves_the_first__says_so_in_the_headers(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer()])

    response = gateway.post(body(model="claude-sonnet-4-5", models=["gpt-4o"]))

    assert response.headers["x-svc-model-used"] == "gpt-4o"
    assert response.headers["x-svc-original-model"] == "claude-sonnet-4-5"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert gateway.record(response).fallback_used


def test_request__nested_to_the_limit__is_the_clients_fault(routed: Routed) -> None:
    gateway, scripts = routed(anthropic=[play.answer()])
    statuses = []
    for depth in range(900, 1000, 3):
        tool = {"type": "function", "function": {"name": "look", "parameters": {"deep": "@"}}}
        content = json.dumps(body(model="anthropic/claude-sonnet-4-5", tools=[tool]))
        response = gateway.post(content.replace('"@"', "[" * depth + "]" * depth).encode())
        statuses.append((response.status_code, response.json().get("error", {}).get("code")))

    assert scripts["anthropic"].received
    # The scripted upstream does not answer in Anthropic's dialect.
    assert set(statuses) == {(500, "provider_error"), (400, "invalid_value"), (400, "invalid_json")}


def test_provider_object__is_obeyed_and_never_sent(routed: Routed) -> None:
    gateway, scripts = routed(openai=[play.answer("one")], azure_openai=[play.answer("two")])

    response = gateway.post(body(model="gpt-4o", provider={"order": ["azure_openai"], "allow_fallbacks": False}))

    assert response.headers["x-svc-provider"] == "azure_openai"
    assert "provider" not in json.loads(scripts["azure_openai"].received[0].body)


def test_fallback__request_of_the_next_provider__is_built_from_the_clients_own(routed: Routed) -> None:
    marked = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]
    gateway, scripts = routed({"fallback_order": ["groq"]}, openrouter=[play.status(503)], groq=[play.answer()])

    response = gateway.post(body(model="openrouter/anthropic/claude-haiku-4.5", messages=marked, temperature=0.5))

    assert response.status_code == 200
    first, second = scripts["openrouter"].received[0], scripts["groq"].received[0]
    assert json.loads(first.body)["messages"] == marked
    assert b"cache_control" not in second.body
    assert json.loads(second.body)["temperature"] == 0.5
    assert first.headers["authorization"] == second.headers["authorization"]


def test_unsupported__by_the_requested_provider__is_400_naming_the_parameter(routed: Routed) -> None:
    gateway, scripts = routed({"fallback_order": ["openai"]}, anthropic=[play.answer()], openai=[play.answer()])

    response = gateway.post(body(model="anthropic/claude-sonnet-4-5", n=2))

    assert_error(response, 400, "unsupported_parameter", naming="n:")
    assert not scripts["anthropic"].received
    assert not scripts["openai"].received


def test_unsupported__by_a_fallback__is_passed_over(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_order": ["anthropic", "azure_openai"]},
        openai=[play.status(503)],
        anthropic=[play.answer()],
        azure_openai=[play.answer("two of them")],
    )

    response = gateway.post(body(n=2))

    assert response.status_code == 200
    assert response.headers["x-svc-provider"] == "azure_openai"
    assert not scripts["anthropic"].received
    errors = [(attempt.provider, attempt.error) for attempt in gateway.record(response).attempts]
    assert ("anthropic", "unsupported_parameter") in errors


def test_unsupported__by_all_fallbacks__is_the_first_providers_failure(routed: Routed) -> None:
    gateway, _ = routed({"fallback_order": ["anthropic"]}, openai=[play.status(503)], anthropic=[play.answer()])

    assert_error(gateway.post(body(n=2)), 503, "provider_unavailable", naming="openai")


def test_dropped_parameter__is_named_in_the_warning_and_the_answer_comes(routed: Routed) -> None:
    gateway, _ = routed(xai=[play.answer()])

    response = gateway.post(body(model="xai/grok-4", thinking={"type": "enabled", "budget_tokens": 2048}))

    assert response.status_code == 200
    assert "thinking" in response.headers["x-svc-warning"]


def test_circuit__opened_by_one_worker__is_seen_by_the_other(routed: Routed) -> None:
    gateway, _ = routed(
        {"fallback_order": ["openai"], "retry_enabled": False},
        anthropic=[play.status(500)],
        openai=[play.answer("well")],
    )
    here, there = gateway.service.ports
    model = "anthropic/claude-sonnet-4-5"

    def avoided_here() -> bool:
        response = gateway.post(body(model=model), port=here)
        assert response.headers["x-svc-provider"] == "openai"
        return gateway.record(response).attempts[0].error == "circuit_open"

    def avoided_there() -> bool:
        """Returns whether the other worker leaves anthropic alone, by a request that teaches it nothing: anthropic
        supports no `n`."""
        # On a busy machine the circuit may be half open by now: a try that fails opens it for longer.
        avoided_here()
        return gateway.post(body(model=model, n=2), port=there).status_code == 200

    assert not any(avoided_here() for _ in range(5))
    assert gateway.service.until(avoided_here, bool)
    assert gateway.service.until(avoided_there, bool)
