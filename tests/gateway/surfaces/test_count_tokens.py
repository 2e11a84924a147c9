"""The count of a prompt's tokens, asked with Anthropic's SDK: at the provider where it counts, else as an estimate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import anthropic
import pytest
from anthropic.types import MessageParam

from analytics.request_log.record import Outcome
from tests.fakes.scripted import raw, status
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway

ASK: list[MessageParam] = [{"role": "user", "content": "How many tokens are these?"}]
OUTPUT_GUARD = {"trust_mode": "enforce", "mask_output_pii": True}
COUNTED = b'{"input_tokens": 1742, "vendor_extra": 1}'


@contextmanager
def client_of(gateway: Gateway, base: str = "/api/gateway") -> Iterator[anthropic.Anthropic]:
    url = f"{gateway.service.base_url()}{base}"
    with anthropic.Anthropic(api_key=gateway.key, base_url=url, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("base", ["/api/gateway", "/api/gateway/v1"])
def test_count__at_a_provider_that_counts__is_the_providers_and_costs_nothing(routed: Routed, base: str) -> None:
    gateway, scripts = routed(anthropic=[raw(200, COUNTED)])

    with client_of(gateway, base) as client:
        answer = client.messages.with_raw_response.count_tokens(model="claude-sonnet-5", messages=ASK)

    assert answer.parse().input_tokens == 1742
    (sent,) = scripts["anthropic"].received
    assert sent.path.endswith("/v1/messages/count_tokens")
    assert json.loads(sent.body) == {"model": "claude-sonnet-5", "messages": ASK}
    record = gateway.record(answer.headers["x-request-id"])
    assert (record.operation, record.is_native, record.provider) == ("count_tokens", True, "anthropic")
    assert (record.prompt_tokens, record.tokens_estimated) == (0, False)
    assert record.cost_known
    assert Decimal(record.cost_usd) == 0


def test_count__in_a_project_that_guards_answers__passes_byte_by_byte(routed: Routed) -> None:
    gateway, scripts = routed({"guardrails": OUTPUT_GUARD}, anthropic=[raw(200, COUNTED)])
    body = (
        b'{ "model": "claude-sonnet-5","thinking": {"type":"adaptive"},'
        b'"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},'
        b'"messages":[{"role": "user", "content": "Hi"}] }'
    )

    answer = gateway.client.post(
        "/api/gateway/v1/messages/count_tokens", content=body, headers={"x-api-key": gateway.key}
    )

    assert answer.content == COUNTED
    assert scripts["anthropic"].received[0].body == body


def test_count__at_a_provider_that_does_not_count__is_an_estimate_without_a_call(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, b"{}")])
    text = "word " * 400

    with client_of(gateway) as client:
        answer = client.messages.with_raw_response.count_tokens(
            model="gpt-5", messages=[{"role": "user", "content": text}]
        )

    assert 500 <= answer.parse().input_tokens <= 540
    assert "estimate" in answer.headers["x-svc-warning"]
    assert not scripts["openai"].received
    record = gateway.record(answer.headers["x-request-id"])
    assert (record.operation, record.is_native, record.tokens_estimated) == ("count_tokens", False, True)
    assert record.outcome is Outcome.SUCCESS
    assert Decimal(record.cost_usd) == 0


def test_count__at_a_provider_that_is_away__is_an_estimate(routed: Routed) -> None:
    gateway, scripts = routed(anthropic=[status(529, "overloaded")])

    with client_of(gateway) as client:
        answer = client.messages.with_raw_response.count_tokens(model="claude-sonnet-5", messages=ASK)

    assert 0 < answer.parse().input_tokens < 100
    assert "estimate" in answer.headers["x-svc-warning"]
    assert len(scripts["anthropic"].received) == 1


def test_count__that_the_provider_refuses__is_its_refusal(routed: Routed) -> None:
    gateway, _ = routed(anthropic=[status(400, "messages: the first one has to be the user's")])

    with client_of(gateway) as client, pytest.raises(anthropic.BadRequestError, match="the first one"):
        client.messages.count_tokens(model="claude-sonnet-5", messages=ASK)


def test_count__above_the_limit_of_requests__is_refused(routed: Routed) -> None:
    gateway, _ = routed({"rate_limit_enabled": True, "rate_limit_rpm": 1}, anthropic=[raw(200, COUNTED)])

    with client_of(gateway) as client:
        client.messages.count_tokens(model="claude-sonnet-5", messages=ASK)
        with pytest.raises(anthropic.RateLimitError):
            client.messages.count_tokens(model="claude-sonnet-5", messages=ASK)


def test_count__without_a_key__is_refused(routed: Routed) -> None:
    gateway, _ = routed(anthropic=[raw(200, COUNTED)])

    with client_of(gateway) as client, pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="wrong").messages.count_tokens(model="claude-sonnet-5", messages=ASK)
