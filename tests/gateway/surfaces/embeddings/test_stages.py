"""The stages that embeddings share with chat completions: prices, limits, guardrails, cache, prompts, health."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from tests.fakes.scripted import ScriptedServer, status
from tests.gateway.cache.test_cache import wait_until_stored
from tests.gateway.conftest import Routed
from tests.gateway.service import PRICED_MODEL, PROVIDER_SECRET, GatewayService
from tests.gateway.surfaces.embeddings.test_openai_dialect import MODEL, ask
from tests.gateway.surfaces.embeddings.vectors import embedding

PRICED = f"openai/{PRICED_MODEL}"
PERSONAL = "Write to maria.keller@gmx.net about the invoice"


def test_cost__is_that_of_the_input_alone(routed: Routed) -> None:
    gateway, scripts = routed(openai=[embedding()])

    code, request_id, _ = ask(gateway, {"model": PRICED, "input": ["one", "two"]})

    assert code == 200
    assert json.loads(scripts["openai"].received[0].body)["model"] == PRICED_MODEL
    record = gateway.record(request_id)
    assert Decimal(record.cost_usd) == Decimal(record.cost_input_usd) == Decimal(6) * 2 / 1_000_000
    assert Decimal(record.cost_output_usd) == 0


def test_limit_of_requests__counts_embeddings(routed: Routed) -> None:
    gateway, _ = routed({"rate_limit_enabled": True, "rate_limit_rpm": 1}, openai=[embedding()])

    first = ask(gateway, {"model": MODEL, "input": "one"})
    code, _, body = ask(gateway, {"model": MODEL, "input": "one"})

    assert (first[0], code) == (200, 429)
    assert json.loads(body)["error"]["code"] == "requests_per_minute"


def test_budget__reserves_the_input_and_no_output(routed: Routed) -> None:
    # A chat completion of this project would have to reserve thousands of tokens of output.
    gateway, scripts = routed({"session_budget_usd": "0.001"}, openai=[embedding()])
    session = {"x-svc-session-id": "s"}

    fits = ask(gateway, {"model": PRICED, "input": "one"}, **session)
    code, _, body = ask(gateway, {"model": PRICED, "input": "long " * 1000}, **session)

    assert (fits[0], code) == (200, 429)
    assert json.loads(body)["error"]["code"] == "session_budget_exceeded"
    assert len(scripts["openai"].received) == 1


@pytest.mark.parametrize("given", [PERSONAL, ["fine", PERSONAL]])
def test_guardrail__reads_every_input(routed: Routed, given: object) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "pii_block_on_detect": True}}
    gateway, scripts = routed(settings, openai=[embedding()])

    refused = ask(gateway, {"model": MODEL, "input": given})
    passed = ask(gateway, {"model": MODEL, "input": "fine"})

    assert (refused[0], json.loads(refused[2])["error"]["code"]) == (400, "pii_detected")
    assert passed[0] == 200
    assert len(scripts["openai"].received) == 1


def test_guardrail__which_cannot_read_tokens__refuses_them(routed: Routed) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "pii_block_on_detect": True}}
    gateway, scripts = routed(settings, openai=[embedding()])

    code, _, body = ask(gateway, {"model": MODEL, "input": [1, 2, 3]})

    error = json.loads(body)["error"]
    assert (code, error["code"]) == (400, "unsupported_parameter")
    assert error["message"].startswith("input: ")
    assert not scripts["openai"].received


def test_guardrails_of_answers__have_no_text_to_read(routed: Routed) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "mask_output_pii": True}}
    gateway, _ = routed(settings, openai=[embedding()])

    assert ask(gateway, {"model": MODEL, "input": "one"})[0] == 200


def test_cache__gives_the_same_vectors_again(routed: Routed) -> None:
    gateway, scripts = routed({"cache_ttl_seconds": 60}, openai=[embedding()])
    body = {"model": PRICED, "input": ["one", "three"]}

    first = ask(gateway, body)
    wait_until_stored(gateway)
    again = ask(gateway, body)
    other = ask(gateway, {**body, "dimensions": 3})

    assert again[2] == first[2]
    assert other[0] == 200
    record = gateway.record(again[1])
    assert (record.cache_status, Decimal(record.cost_usd), record.operation) == ("hit", Decimal(0), "embeddings")
    assert gateway.record(other[1]).cache_status == "miss"
    assert "dimensions" in json.loads(scripts["openai"].received[-1].body)


def test_managed_prompt_of_a_header__is_left_out_with_a_warning(routed: Routed) -> None:
    gateway, _ = routed(openai=[embedding()])
    headers = {**gateway.headers, "x-svc-prompt-config": "support"}

    answer = gateway.client.post("/api/gateway/v1/embeddings", json={"model": PRICED, "input": "one"}, headers=headers)

    assert answer.status_code == 200
    assert answer.headers["x-svc-warning"] == "managed prompts do not apply to embeddings"


def test_parameters_of_the_integration__are_those_of_chat_completions(
    service: GatewayService, upstream: ScriptedServer
) -> None:
    script = upstream.play("with-parameters", embedding())
    integration = {"provider": "openai", "base_url": upstream.base_url("with-parameters"), "api_key": PROVIDER_SECRET}
    gateway = service.new_project(integrations=[{**integration, "forced_parameters": {"temperature": 0}}])

    assert ask(gateway, {"model": MODEL, "input": "one"})[0] == 200
    assert "temperature" not in json.loads(script.received[0].body)


def test_circuit__opens_for_an_embedding_model_as_for_any(routed: Routed) -> None:
    gateway, scripts = routed(
        {"retry_enabled": False, "fallback_enabled": True}, openai=[status(503)], azure_openai=[embedding()]
    )

    for _ in range(12):
        assert ask(gateway, {"model": MODEL, "input": "one"})[0] == 200

    assert len(scripts["azure_openai"].received) == 12
    assert len(scripts["openai"].received) < 12
