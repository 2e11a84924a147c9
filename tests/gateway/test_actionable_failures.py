"""Failures that a client can act on, as the official SDK sees them: a context that is too long, a filtered answer, a
vendor account without quota, and a time to wait."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import Script, Step
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import assert_error, body, read_stream
from tests.tables.cases import tabled

LONG: dict[str, Any] = {
    "message": "This model's maximum context length is 8192 tokens.",
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
}
FILTERED: dict[str, Any] = {
    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "type": None,
    "param": "prompt",
    "code": "content_filter",
    "status": 400,
    "innererror": {
        "code": "ResponsibleAIPolicyViolation",
        "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
    },
}
EMPTY: dict[str, Any] = {
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "type": "insufficient_quota",
    "param": None,
    "code": "insufficient_quota",
}
CODES = {"context_length_exceeded": LONG, "content_filter": FILTERED}
JSON = {"content-type": "application/json"}
MODELS = {"model": "gpt-4o", "models": ["gpt-4o-mini"]}
# These providers could serve the first model instead.
ELSEWHERE = {"fallback_order": ["azure_openai", "openai_compatible"]}


def refusal(error: dict[str, Any], status: int = 400, headers: dict[str, str] | None = None) -> Step:
    return play.raw(status, json.dumps({"error": error}).encode(), JSON | (headers or {}))


def in_stream(error: dict[str, Any]) -> Step:
    return play.stream(b"data: " + json.dumps({"error": error}).encode() + b"\n\n")


def called_models(scripts: dict[str, Script]) -> dict[str, list[str]]:
    """Returns the models with which each provider was called, in order."""
    return {
        name: [json.loads(request.body)["model"] for request in script.received]
        for name, script in scripts.items()
        if script.received
    }


def errors_of(gateway: Gateway, response: Any) -> list[tuple[str, str]]:
    return [(attempt.provider, attempt.error) for attempt in gateway.record(response).attempts]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("code", CODES)
def test_refused_by_the_model__without_models__bad_request_with_the_vendors_details(
    routed: Routed, code: str, stream: bool
) -> None:
    gateway, scripts = routed(
        ELSEWHERE, openai=[refusal(CODES[code])], azure_openai=[play.answer()], openai_compatible=[play.answer()]
    )

    with pytest.raises(openai.BadRequestError) as caught:
        gateway.openai().chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "hi"}], stream=stream
        )

    error: Any = caught.value.body
    assert (caught.value.code, caught.value.type, caught.value.status_code) == (code, "invalid_request_error", 400)
    assert error["provider_error"] == {"provider": "openai", "status": 400, "error": CODES[code]}
    assert error["message"] == f"openai: {CODES[code]['message']}"
    assert called_models(scripts) == {"openai": ["gpt-4o"]}
    record = gateway.record(caught.value.response.headers["x-request-id"])
    assert (record.status_code, record.error_type, record.error_code) == (400, "invalid_request_error", code)
    assert [(a.provider, a.error, a.status) for a in record.attempts] == [("openai", code, 400)]
    assert record.retry_count == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("code", CODES)
def test_refused_by_the_model__models__next_model_and_not_the_same_elsewhere(
    routed: Routed, code: str, stream: bool
) -> None:
    gateway, scripts = routed(
        ELSEWHERE,
        openai=[refusal(CODES[code]), play.answer("small")],
        azure_openai=[play.answer("the same")],
        openai_compatible=[play.answer("another's")],
    )

    response = gateway.post(body(**MODELS, stream=stream))

    assert response.status_code == 200, response.text
    assert called_models(scripts) == {"openai": ["gpt-4o", "gpt-4o-mini"]}
    assert response.headers["x-svc-model-used"] == "gpt-4o-mini"
    assert response.headers["x-svc-original-model"] == "gpt-4o"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert response.headers["x-svc-retry-count"] == "0"
    assert errors_of(gateway, response) == [("openai", code), ("openai", "")]


def test_refused_by_the_model__error_in_the_stream_before_output__next_model(routed: Routed) -> None:
    gateway, scripts = routed(openai=[in_stream(LONG), play.answer("small")])

    response = gateway.post(body(**MODELS, stream=True))

    assert response.headers["x-svc-model-used"] == "gpt-4o-mini"
    assert called_models(scripts) == {"openai": ["gpt-4o", "gpt-4o-mini"]}


def test_refused_by_the_model__after_output__the_last_event_says_so(routed: Routed) -> None:
    gateway, scripts = routed(
        openai=[
            play.stream(
                play.ROLE,
                play.chunk({"content": "Well"}),
                b"data: " + json.dumps({"error": FILTERED}).encode() + b"\n\n",
            )
        ]
    )

    response = gateway.post(body(**MODELS, stream=True))

    stream = read_stream(response.content)
    assert stream.errors[0]["code"] == "content_filter"
    assert stream.errors[0]["provider_error"]["error"]["innererror"] == FILTERED["innererror"]
    assert stream.done
    assert called_models(scripts) == {"openai": ["gpt-4o"]}
    assert gateway.record(response).error_code == "content_filter"


def test_refused_by_the_model__the_same_name_of_another_provider_in_models__is_passed_over(routed: Routed) -> None:
    gateway, scripts = routed(
        openai=[refusal(LONG)], azure_openai=[play.answer("the same")], groq=[play.answer("another")]
    )

    response = gateway.post(body(models=["azure_openai/gpt-4o", "groq/llama-3.3-70b-versatile"]))

    assert response.headers["x-svc-provider"] == "groq"
    assert "azure_openai" not in called_models(scripts)


def test_refused_by_the_model__allow_fallbacks_false__models_are_called_still(routed: Routed) -> None:
    gateway, scripts = routed(ELSEWHERE, openai=[refusal(LONG), play.answer("small")], azure_openai=[play.answer()])

    response = gateway.post(body(**MODELS, provider={"allow_fallbacks": False}))

    assert response.status_code == 200
    assert called_models(scripts) == {"openai": ["gpt-4o", "gpt-4o-mini"]}


def test_refused_by_the_model__auto__next_preferred_model(routed: Routed) -> None:
    preferred = {"preferred_models": ["openai/gpt-4o", "groq/llama-3.3-70b-versatile"]}
    gateway, _ = routed(preferred, openai=[refusal(LONG)], groq=[play.answer("longer")])

    response = gateway.post(body(model="auto"))

    assert response.headers["x-svc-model-used"] == "llama-3.3-70b-versatile"


def test_refused_by_every_model__the_last_refusal_is_returned(routed: Routed) -> None:
    gateway, scripts = routed(openai=[refusal(LONG), refusal(FILTERED)])

    response = gateway.post(body(**MODELS))

    assert_error(response, 400, "content_filter", naming="content management policy", provider_error_of="openai")
    assert called_models(scripts) == {"openai": ["gpt-4o", "gpt-4o-mini"]}


def test_refused_by_the_model__the_next_one_is_away__it_may_come_back(routed: Routed) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[refusal(LONG), play.status(503)])

    assert_error(gateway.post(body(**MODELS)), 503, "provider_unavailable")


def test_refused_by_the_model__the_next_ones_key_is_wrong__the_refusal_is_returned(routed: Routed) -> None:
    gateway, _ = routed(openai=[refusal(LONG), play.status(401)])

    assert_error(gateway.post(body(**MODELS)), 400, "context_length_exceeded", provider_error_of="openai")


def test_refused_by_the_model__over_and_over__no_circuit_opens(routed: Routed) -> None:
    gateway, scripts = routed({"retry_enabled": False}, openai=[refusal(LONG)] * 12 + [play.answer("fine")])
    port = gateway.service.ports[0]

    for _ in range(12):
        assert gateway.post(body(), port=port).status_code == 400
    response = gateway.post(body(models=["groq/llama-3.3-70b-versatile"]), port=port)

    assert response.headers["x-svc-provider"] == "openai"
    assert len(scripts["openai"].received) == 13


def test_rejected_otherwise__ends_as_before(routed: Routed) -> None:
    gateway, scripts = routed(ELSEWHERE, openai=[play.status(400, "no such field")], azure_openai=[play.answer()])

    assert_error(gateway.post(body(**MODELS)), 400, "provider_rejected", naming="no such field")
    assert called_models(scripts) == {"openai": ["gpt-4o"]}


def test_finish_reason_content_filter__stays_an_answer(routed: Routed) -> None:
    filtered = play.completion("")
    filtered["choices"][0]["finish_reason"] = "content_filter"
    gateway, scripts = routed(ELSEWHERE, openai=[play.raw(200, json.dumps(filtered).encode(), JSON)])

    response = gateway.post(body(**MODELS))

    assert response.status_code == 200
    assert response.json()["choices"][0]["finish_reason"] == "content_filter"
    assert called_models(scripts) == {"openai": ["gpt-4o"]}


@pytest.mark.parametrize("status", [429, 402, 400])
def test_insufficient_quota__is_not_retried_and_has_a_code_of_its_own(routed: Routed, status: int) -> None:
    gateway, scripts = routed(openai=[refusal(EMPTY, status)])

    with pytest.raises(openai.InternalServerError) as caught:
        # The SDK retries by itself unless its retries are switched off.
        gateway.openai().with_options(max_retries=2).chat.completions.create(
            model="openai/gpt-4o", messages=[{"role": "user", "content": "hi"}]
        )

    assert (caught.value.status_code, caught.value.code) == (503, "insufficient_quota")
    error: Any = caught.value.body
    assert error["provider_error"] == {"provider": "openai", "status": status, "error": EMPTY}
    assert called_models(scripts) == {"openai": ["gpt-4o"]}
    record = gateway.record(caught.value.response.headers["x-request-id"])
    assert (record.error_code, record.attempts[0].error) == ("insufficient_quota", "insufficient_quota")


def test_insufficient_quota__fallback__another_account_and_no_other_model_of_this_one(routed: Routed) -> None:
    gateway, scripts = routed(ELSEWHERE, openai=[refusal(EMPTY, 429)], azure_openai=[play.answer("paid for")])

    response = gateway.post(body(model="openai/gpt-4o", models=["openai/gpt-4o-mini", "azure_openai/gpt-4o"]))

    assert response.headers["x-svc-provider"] == "azure_openai"
    assert response.headers["x-svc-fallback-used"] == "true"
    assert called_models(scripts) == {"openai": ["gpt-4o"], "azure_openai": ["gpt-4o"]}


def test_rate_limit__is_retried_and_keeps_its_code(routed: Routed) -> None:
    limit = {"message": "Rate limit reached", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    gateway, scripts = routed(openai=[refusal(limit, 429)])

    assert_error(gateway.post(body()), 503, "provider_unavailable", naming="Rate limit")
    assert len(scripts["openai"].received) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@tabled
def test_retry_after__of_the_last_failure__is_passed_on(
    routed: Routed, stream: bool, status: int, headers: dict[str, str], message: str, seconds: int
) -> None:
    gateway, scripts = routed(openai=[play.status(status, message, headers)])

    response = gateway.post(body(stream=stream))

    assert_error(response, 503, "provider_unavailable")
    assert response.headers["retry-after"] == str(seconds)
    assert len(scripts["openai"].received) == 1
