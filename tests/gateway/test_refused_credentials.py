"""Credentials that a vendor refuses with the status of a wrong request, on every surface: the next provider answers,
and without one the failure is the provider's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import Step
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.ways import WHOLE_AND_STREAMED, Way
from tests.gateway.wire import assert_error, bearer, body
from tests.integrations.vendor_failures import XAI, api_key_invalid, openai

WRONG = api_key_invalid("API key not valid. Please pass a valid API key.")
EXPIRED = api_key_invalid("API key expired. Please renew the API key.")
REFUSALS: dict[str, tuple[str, Any]] = {
    "google wrong": ("google/gemini-2.5-flash", WRONG),
    "google expired": ("google/gemini-2.5-flash", EXPIRED),
    "google list": ("google/gemini-2.5-flash", [WRONG]),
    "xai": ("xai/grok-4", XAI),
}
SURFACES = ("chat", "messages", "responses")


def refuses(error_body: Any) -> Step:
    return play.raw(400, json.dumps(error_body).encode(), {"content-type": "application/json"})


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_credential_refused_with_400__another_model__answers(
    routed: Routed, refusal: str, surface: str, stream: bool
) -> None:
    model, error_body = REFUSALS[refusal]
    provider = model.partition("/")[0]
    gateway, scripts = routed(vllm=[play.answer()], **{provider: [refuses(error_body)]})
    way = Way(surface, model)

    response = way.ask(gateway, way.body(models=["vllm/qwen3"], stream=stream))

    assert response.status_code == 200, response.text
    assert (response.headers["x-svc-provider"], response.headers["x-svc-fallback-used"]) == ("vllm", "true")
    assert (len(scripts[provider].received), len(scripts["vllm"].received)) == (1, 1)
    assert [attempt.error for attempt in gateway.record(response).attempts] == ["credentials", ""]


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_credential_refused_with_400__alone__failure_of_the_provider(
    routed: Routed, refusal: str, surface: str, stream: bool
) -> None:
    model, error_body = REFUSALS[refusal]
    gateway, scripts = routed(**{model.partition("/")[0]: [refuses(error_body)]})
    way = Way(surface, model)

    response = way.ask(gateway, way.body(stream=stream))

    assert response.status_code == 500
    assert gateway.record(response).error_code == "provider_error"
    assert len(scripts[model.partition("/")[0]].received) == 1


@pytest.mark.parametrize(("model", "error_body"), [("google/gemini-embedding-001", WRONG), ("openai/text-e", XAI)])
def test_credential_refused_with_400__embeddings__failure_of_the_provider(
    routed: Routed, model: str, error_body: Any
) -> None:
    gateway, _ = routed(**{model.partition("/")[0]: [refuses(error_body)]})
    url = f"{gateway.service.base_url()}/api/gateway/v1/embeddings"

    response = gateway.client.post(url, json={"model": model, "input": "hi"}, headers=bearer(gateway.key))

    assert_error(response, 500, "provider_error")


def test_credential_refused_with_400__over_and_over__circuit_opens(routed: Routed) -> None:
    gateway, scripts = routed(vllm=[play.answer()], xai=[refuses(XAI)])

    asked = body(model="xai/grok-4", models=["vllm/qwen3"])
    records = [gateway.record(gateway.post(asked)) for _ in range(30)]

    assert records[-1].attempts[0].error == "circuit_open"
    assert len(scripts["xai"].received) < 30


@WHOLE_AND_STREAMED
@pytest.mark.parametrize("surface", SURFACES)
def test_request_that_mentions_a_key__refused_with_400__at_fault_itself(
    routed: Routed, surface: str, stream: bool
) -> None:
    words = "Invalid schema for function 'log_in': In context=('properties', 'api_key'), 'type' is not valid"
    gateway, scripts = routed(vllm=[play.answer()], xai=[refuses(openai(words))])
    way = Way(surface, "xai/grok-4")

    response = way.ask(gateway, way.body(models=["vllm/qwen3"], stream=stream))

    assert response.status_code == 400
    assert gateway.record(response).error_code == "provider_rejected"
    assert not scripts["vllm"].received
