"""The promises of chat completions, kept for completions of texts: budgets, guardrails, cache, one record."""

from __future__ import annotations

import json

import pytest

from tests.factories.analytics import ingested
from tests.fakes.scripted import Step, answer, raw
from tests.gateway.cache.test_cache import wait_until_stored
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.completions.test_completions import (
    CHAT_MODEL,
    MODEL,
    WHOLE,
    native_stream,
    post,
)

WAYS = pytest.mark.parametrize(
    ("model", "stream", "step"),
    [
        (CHAT_MODEL, False, answer("Hello from upstream")),
        (CHAT_MODEL, True, answer("Hello from upstream")),
        (MODEL, False, raw(200, WHOLE)),
        (MODEL, True, native_stream()),
    ],
    ids=["translated", "translated-stream", "native", "native-stream"],
)


@WAYS
def test_cache__same_request_again__is_answered_without_the_provider(
    routed: Routed, model: str, stream: bool, step: Step
) -> None:
    gateway, scripts = routed({"cache_ttl_seconds": 60}, openai=[step])
    body = {"model": model, "prompt": "Once", "stream": stream}

    first = post(gateway, body)
    wait_until_stored(gateway)
    again = post(gateway, body)

    assert (first.headers["x-svc-cache"], again.headers["x-svc-cache"]) == ("miss", "hit")
    # The id of a translated answer is made of the request's.
    theirs, ours = first.headers["x-request-id"].encode(), again.headers["x-request-id"].encode()
    assert again.content.replace(ours, theirs) == first.content
    assert len(scripts["openai"].received) == 1


@WAYS
def test_budget__used_up__is_429_and_calls_no_provider(routed: Routed, model: str, stream: bool, step: Step) -> None:
    gateway, scripts = routed({"rate_limit_enabled": True, "rate_limit_tpm": 10}, openai=[step])

    got = post(gateway, {"model": model, "prompt": "Once", "stream": stream, "max_tokens": 20})

    assert (got.status_code, got.json()["error"]["code"]) == (429, "tokens_per_minute")
    assert not scripts["openai"].received


@WAYS
def test_guardrail__on_the_request__refuses_it(routed: Routed, model: str, stream: bool, step: Step) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "pii_block_on_detect": True}}
    gateway, scripts = routed(settings, openai=[step])

    got = post(gateway, {"model": model, "prompt": "Write to maria.keller@gmx.net", "stream": stream})

    assert (got.status_code, got.json()["error"]["code"]) == (400, "pii_detected")
    assert not scripts["openai"].received


def test_guardrail__which_cannot_read_tokens__refuses_them(routed: Routed) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "pii_block_on_detect": True}}
    gateway, scripts = routed(settings, openai=[raw(200, WHOLE)])

    got = post(gateway, {"model": MODEL, "prompt": [1, 2, 3]})

    assert got.status_code == 400
    assert got.json()["error"]["message"].startswith("prompt: ")
    assert not scripts["openai"].received


@WAYS
def test_record__holds_the_prompt_and_the_text(routed: Routed, model: str, stream: bool, step: Step) -> None:
    gateway, _ = routed(openai=[step])

    got = post(gateway, {"model": model, "prompt": "Once", "stream": stream})

    (entry,) = gateway.service.entries(got.headers["x-request-id"])
    stored = ingested(entry)
    assert stored["operation"] == "completions"
    assert b"Once" in stored["prompt"]
    assert stored["completion"].strip() in (b"Hello from upstream", b"upon a time")
    assert json.loads(stored["response"])["choices"][0]["finish_reason"] in ("stop", "length")
