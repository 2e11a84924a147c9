"""The headers about limits, on every answer to a client of each protocol, and what SDKs make of them."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.fakes.scripted import answer, status
from tests.gateway.conftest import Routed
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way

RATES = {"rate_limit_enabled": True, "rate_limit_rpm": 1000, "rate_limit_tpm": 1_000_000, "retry_enabled": False}
SPENT = {"monthly_budget_usd": "0.0000001", "budget_hard_stop": True}
REQUESTS = {f"x-ratelimit-{name}-requests" for name in ("limit", "remaining", "reset")}
TOKENS = {f"x-ratelimit-{name}-tokens" for name in ("limit", "remaining", "reset")}


def limits_of(response: httpx2.Response) -> set[str]:
    return {name for name in response.headers if name.startswith("x-ratelimit-")}


def project_of(routed: Routed, way: Way, settings: dict[str, Any] | None) -> Gateway:
    gateway, _ = routed(settings, **{way.provider: [way.answer(text="Hello")]})
    return gateway


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_answer__of_a_project_with_limits__says_what_is_left(routed: Routed, way: Way, stream: bool) -> None:
    gateway = project_of(routed, way, RATES)

    response = way.ask(gateway, way.body(stream=stream))

    assert response.status_code == 200
    assert limits_of(response) == REQUESTS | TOKENS
    assert response.headers["x-ratelimit-limit-requests"] == "1000"
    assert int(response.headers["x-ratelimit-remaining-requests"]) == 999
    assert response.headers["x-ratelimit-reset-requests"].endswith("s")


@EVERY_WAY
def test_answer__of_a_project_with_requests_alone__says_nothing_of_tokens(routed: Routed, way: Way) -> None:
    gateway = project_of(routed, way, RATES | {"rate_limit_tpm": None})

    assert limits_of(way.ask(gateway)) == REQUESTS


@EVERY_WAY
def test_answer__of_a_project_without_limits__has_no_such_header(routed: Routed, way: Way) -> None:
    gateway = project_of(routed, way, None)

    assert limits_of(way.ask(gateway)) == limits_of(way.ask(gateway, way.body(model=7))) == set()


@EVERY_WAY
def test_answer__from_the_cache__says_what_is_left(routed: Routed, way: Way) -> None:
    gateway = project_of(routed, way, RATES | {"cache_ttl_seconds": 600})
    way.ask(gateway)

    hit = gateway.service.until(lambda: way.ask(gateway), lambda found: found.headers["x-svc-cache"] == "hit")

    assert hit.headers["x-svc-cache"] == "hit"
    assert limits_of(hit) == REQUESTS | TOKENS


@EVERY_WAY
def test_failure__of_the_provider__says_what_is_left(routed: Routed, way: Way) -> None:
    gateway, _ = routed(RATES, **{way.provider: [status(500)]})

    response = way.ask(gateway)

    assert response.status_code >= 500
    assert limits_of(response) == REQUESTS | TOKENS


@EVERY_WAY
def test_failure__before_the_limits_count__says_the_limits(routed: Routed, way: Way) -> None:
    gateway = project_of(routed, way, RATES)

    response = way.ask(gateway, way.body(model="nothing"))

    assert response.status_code == 404
    assert limits_of(response) == {name for name in REQUESTS | TOKENS if "remaining" not in name}


def test_budget__used_up__is_not_asked_again_by_the_sdks(routed: Routed) -> None:
    gateway, _ = routed(SPENT, openai=[answer()])
    base_url = f"{gateway.service.base_url()}/api/gateway"
    hello: Any = [{"role": "user", "content": "Hello"}]
    model = f"openai/{PRICED_MODEL}"

    with gateway.openai().with_options(max_retries=3) as client, pytest.raises(openai.RateLimitError) as first:
        client.chat.completions.create(model=model, messages=hello)
    with (
        anthropic.Anthropic(api_key=gateway.key, base_url=base_url, max_retries=3) as claude,
        pytest.raises(anthropic.RateLimitError) as second,
    ):
        claude.messages.create(model=model, max_tokens=10, messages=hello)

    for error in (first.value, second.value):
        assert error.response.headers["x-should-retry"] == "false"
        assert "retry-after" not in error.response.headers
    entries = [entry for entry in gateway.service.spooled.entries() if entry.record.project_id == gateway.project_id]
    assert len(entries) == 2


def test_tokens__more_than_a_minute_has__are_not_to_be_asked_again(routed: Routed) -> None:
    gateway, _ = routed(RATES | {"rate_limit_tpm": 10}, openai=[answer()])
    way = Way("chat", f"openai/{PRICED_MODEL}")

    response = way.ask(gateway)

    assert response.status_code == 429
    assert response.headers["x-should-retry"] == "false"


def test_rate__reached__is_to_be_asked_again_later(routed: Routed) -> None:
    gateway, _ = routed(RATES | {"rate_limit_rpm": 1}, openai=[answer()])
    way = Way("chat", f"openai/{PRICED_MODEL}")

    refused = gateway.service.until(lambda: way.ask(gateway), lambda found: found.status_code == 429)

    assert "x-should-retry" not in refused.headers
    assert 1 <= int(refused.headers["retry-after"]) <= 60
