"""A model named `provider/model` is served by that provider alone, and a disabled provider hands no request on,
although other providers could serve any model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import Script
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body

# These providers route models of others, or serve whatever they were set up with.
TAKERS = ("openrouter", "huggingface", "together", "groq", "openai_compatible", "vllm", "ollama")
NO_FALLBACK = {"fallback_enabled": False}


def takers() -> dict[str, Any]:
    return {name: [play.answer(name)] for name in TAKERS}


def assert_untouched(scripts: dict[str, Script]) -> None:
    assert {name: len(script.received) for name, script in scripts.items() if script.received} == {}


def switch(gateway: Gateway, provider: str, *, on: bool) -> None:
    assert gateway.manage("PUT", f"integrations/{provider}", {"enabled": on}).status_code == 200


def until_status(gateway: Gateway, status: int, **fields: Any) -> None:
    answer = gateway.service.until(
        lambda: gateway.post(body(**fields)), lambda response: response.status_code == status
    )
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("model", ["xai/grok-4", "anthropic/claude-haiku-4.5", "openai/gpt-oss-20b"])
def test_provider_model__no_such_integration__404_and_no_provider_is_called(routed: Routed, model: str) -> None:
    gateway, scripts = routed(NO_FALLBACK, **takers())

    response = gateway.post(body(model=model))

    assert_error(response, 404, "model_not_found", naming=model.partition("/")[0])
    assert "no integration" in response.json()["error"]["message"]
    assert_untouched(scripts)
    assert gateway.record(response).attempts == ()


def test_provider_model__switched_off__404_that_says_so_and_back_when_it_is_on_again(routed: Routed) -> None:
    gateway, scripts = routed(NO_FALLBACK, xai=[play.answer("grok")], **takers())
    switch(gateway, "xai", on=False)
    until_status(gateway, 404, model="xai/grok-4")
    received = len(scripts["xai"].received)

    response = gateway.post(body(model="xai/grok-4"))

    assert "'xai' is disabled" in assert_error(response, 404, "model_not_found")
    assert len(scripts.pop("xai").received) == received
    assert_untouched(scripts)

    switch(gateway, "xai", on=True)
    until_status(gateway, 200, model="xai/grok-4")
    assert_untouched(scripts)


def test_provider_model__switched_off_and_a_fallback_order__is_no_failure_to_fall_back_from(routed: Routed) -> None:
    """A fallback is for a provider that fails: a disabled one hands no request on."""
    order = {"fallback_order": ["openrouter", "openai_compatible"], "preferred_models": ["openrouter/x-ai/grok-4"]}
    gateway, scripts = routed(order, xai=[play.answer("grok")], **takers())
    switch(gateway, "xai", on=False)
    until_status(gateway, 404, model="xai/grok-4")

    assert_error(gateway.post(body(model="xai/grok-4")), 404, "model_not_found", naming="disabled")
    scripts.pop("xai")
    assert_untouched(scripts)


def test_provider_model__switched_off_and_models__those_are_called_and_the_headers_say_so(routed: Routed) -> None:
    gateway, scripts = routed(NO_FALLBACK, xai=[play.answer("grok")], **takers())
    switch(gateway, "xai", on=False)
    until_status(gateway, 404, model="xai/grok-4")

    response = gateway.post(body(model="xai/grok-4", models=["openrouter/x-ai/grok-4"]))

    assert response.status_code == 200
    assert response.headers["x-svc-provider"] == "openrouter"
    assert response.headers["x-svc-model-used"] == "x-ai/grok-4"
    assert response.headers["x-svc-original-model"] == "xai/grok-4"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert gateway.record(response).fallback_used
    assert json.loads(scripts["openrouter"].received[0].body)["model"] == "x-ai/grok-4"


def test_aggregator_model__aggregator_switched_off__nobody_else(routed: Routed) -> None:
    gateway, scripts = routed(NO_FALLBACK, anthropic=[play.answer("claude")], **takers())
    model = "openrouter/anthropic/claude-haiku-4.5"
    switch(gateway, "openrouter", on=False)
    until_status(gateway, 404, model=model)
    scripts.pop("openrouter")

    assert_error(gateway.post(body(model=model)), 404, "model_not_found", naming="'openrouter' is disabled")
    assert_untouched(scripts)


def test_bare_model__vendor_switched_off__not_handed_to_who_serves_anything(routed: Routed) -> None:
    gateway, scripts = routed(openai=[play.answer("openai")], **takers())
    switch(gateway, "openai", on=False)
    until_status(gateway, 404, model="gpt-4o")
    scripts.pop("openai")

    assert_error(gateway.post(body(model="gpt-4o")), 404, "model_not_found", naming="gpt-4o")
    assert_untouched(scripts)


def test_bare_model__vendor_never_set_up__served_by_who_serves_anything(routed: Routed) -> None:
    gateway, _ = routed(NO_FALLBACK, openai_compatible=[play.answer("proxied")])

    response = gateway.post(body(model="gpt-4o"))

    assert response.headers["x-svc-provider"] == "openai_compatible"
    assert "x-svc-fallback-used" not in response.headers


def test_provider_model__new_integration__is_called_alone_once_workers_know_it(routed: Routed) -> None:
    gateway, scripts = routed(NO_FALLBACK, xai=[play.answer("grok")], **takers())
    assert gateway.manage("DELETE", "integrations/xai").status_code == 204
    until_status(gateway, 404, model="xai/grok-4")
    elsewhere = gateway.upstream.base_url("late"), gateway.upstream.play("late", play.answer("late"))
    added = {"provider": "xai", "api_key": "xai-0123456789", "base_url": elsewhere[0]}
    assert gateway.manage("POST", "integrations", added).status_code == 201

    for port in gateway.service.ports:
        answer = gateway.service.until(
            lambda port=port: gateway.post(body(model="xai/grok-4"), port=port),  # type: ignore[misc]
            lambda response: response.status_code == 200,
        )
        assert answer.headers["x-svc-provider"] == "xai"
    scripts.pop("xai")
    assert elsewhere[1].received
    assert_untouched(scripts)


def test_provider_object__leaves_the_provider_out__404_and_no_provider_is_called(routed: Routed) -> None:
    gateway, scripts = routed(xai=[play.answer("grok")], **takers())

    for preferences in ({"ignore": ["xai"]}, {"only": list(TAKERS)}):
        response = gateway.post(body(model="xai/grok-4", provider=preferences))
        assert_error(response, 404, "model_not_found", naming="provider object leaves out")
    assert_untouched(scripts)


@pytest.mark.parametrize(
    ("settings", "preferences"),
    [(NO_FALLBACK, ...), ({}, {"allow_fallbacks": False})],
    ids=["fallback_enabled off", "allow_fallbacks false"],
)
def test_failing_provider__fallback_is_off__no_other_is_called(
    routed: Routed, settings: dict[str, Any], preferences: Any
) -> None:
    order = {"fallback_order": ["openrouter", "openai_compatible"], "retry_enabled": False, **settings}
    gateway, scripts = routed(order, xai=[play.status(503)], **takers())

    response = gateway.post(body(model="xai/grok-4", provider=preferences))

    assert_error(response, 503, "provider_unavailable", naming="xai")
    assert "x-svc-fallback-used" not in response.headers
    assert len(scripts.pop("xai").received) == 1
    assert_untouched(scripts)
    assert not gateway.record(response).fallback_used


def test_failing_provider__fallback_is_switched_off__gets_nothing(routed: Routed) -> None:
    order = {"fallback_order": ["groq"], "retry_enabled": False}
    gateway, scripts = routed(order, xai=[play.status(503)], groq=[play.answer("off")])
    switch(gateway, "groq", on=False)
    until_status(gateway, 404, model="groq/llama-3.3-70b-versatile")
    received = len(scripts["groq"].received)

    assert_error(gateway.post(body(model="xai/grok-4")), 503, "provider_unavailable", naming="xai")
    assert len(scripts["groq"].received) == received


def test_failing_provider__fallback_is_on__next_one_of_the_order_and_the_headers_say_so(routed: Routed) -> None:
    order = {"fallback_order": ["openai_compatible"], "retry_enabled": False}
    gateway, scripts = routed(order, xai=[play.status(503)], **takers())

    response = gateway.post(body(model="xai/grok-4"))

    assert response.status_code == 200
    assert response.headers["x-svc-provider"] == "openai_compatible"
    assert response.headers["x-svc-model-used"] == "grok-4"
    assert response.headers["x-svc-original-model"] == "xai/grok-4"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert gateway.record(response).fallback_used
    assert {name for name, script in scripts.items() if script.received} == {"xai", "openai_compatible"}


def test_failing_provider__preferred_model_of_the_fallback__serves_and_the_headers_say_so(routed: Routed) -> None:
    order = {"fallback_order": ["openrouter"], "preferred_models": ["openrouter/x-ai/grok-4"], "retry_enabled": False}
    gateway, _ = routed(order, xai=[play.status(503)], **takers())

    response = gateway.post(body(model="xai/grok-4", stream=True))

    assert response.status_code == 200
    assert response.headers["x-svc-provider"] == "openrouter"
    assert response.headers["x-svc-model-used"] == "x-ai/grok-4"
    assert response.headers["x-svc-original-model"] == "xai/grok-4"
    assert response.headers["x-svc-fallback-used"] == "true"


def test_served_provider__warning_is_of_the_one_that_answered(routed: Routed) -> None:
    """The fields that the first choice would have dropped are not in the warning of another provider's answer."""
    order = {"fallback_order": ["openai"], "retry_enabled": False}
    gateway, _ = routed(order, xai=[play.status(503)], openai=[play.answer()])

    response = gateway.post(
        body(model="xai/grok-4", models=["openai/gpt-5.1"], thinking={"type": "enabled", "budget_tokens": 2048})
    )

    assert response.status_code == 200
    assert response.headers["x-svc-provider"] == "openai"
    assert "thinking" not in response.headers.get("x-svc-warning", "")
