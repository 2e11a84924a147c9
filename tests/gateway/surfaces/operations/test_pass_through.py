"""Moderations, reranking, images and speech: forwarded to a vendor that has them, recorded, and priced where the vendor
counts what the price list has."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import openai
import pytest

from tests.fakes.scripted import raw, status
from tests.gateway.conftest import Routed
from tests.gateway.service import PRICED_MODEL, Gateway
from tests.tables.cases import tabled

JSON = {"content-type": "application/json"}
MODERATED = {
    "id": "m1",
    "model": "omni-moderation-latest",
    "results": [{"flagged": True, "categories": {"hate": True}}],
}
RANKED = {"id": "r1", "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}
IMAGES = {
    "created": 1,
    "data": [{"b64_json": "aW1hZ2U="}],
    "usage": {
        "input_tokens": 10,
        "output_tokens": 100,
        "total_tokens": 110,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 0},
    },
}
AUDIO = b"ID3\x04not really music"
PRICED = f"openai/{PRICED_MODEL}"


def ask(gateway: Gateway, path: str, body: dict[str, Any]) -> Any:
    return gateway.client.post(f"/api/gateway/v1/{path}", json=body, headers=gateway.headers)


@pytest.mark.parametrize(
    ("path", "operation", "body", "answer"),
    [
        ("moderations", "moderations", {"model": "omni-moderation-latest", "input": ["a", "b"]}, MODERATED),
        ("images/generations", "images", {"model": "gpt-image-1", "prompt": "a cat", "size": "1024x1024"}, IMAGES),
    ],
)
def test_request_and_answer__pass_byte_by_byte(
    routed: Routed, path: str, operation: str, body: dict[str, Any], answer: dict[str, Any]
) -> None:
    given = json.dumps(answer, indent=1).encode()
    gateway, scripts = routed(openai=[raw(200, given, JSON)])

    got = ask(gateway, path, body)

    (sent,) = scripts["openai"].received
    assert (got.status_code, got.content) == (200, given)
    assert json.loads(sent.body) == body
    assert sent.path.endswith(f"/{path}")
    record = gateway.record(got)
    assert (record.operation, record.is_native, record.provider) == (operation, True, "openai")


def test_moderation__without_a_model__is_that_of_openais_default(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, json.dumps(MODERATED).encode(), JSON)])

    with gateway.openai() as client:
        answer = client.moderations.create(input="I hate this")

    assert answer.results[0].flagged
    assert json.loads(scripts["openai"].received[0].body)["model"] == "omni-moderation-latest"


def test_moderation_of_mistral__has_a_verdict(routed: Routed) -> None:
    results = [{"categories": {"pii": True, "hate": False}, "category_scores": {"pii": 0.9, "hate": 0.0}}]
    answer = {"id": "m1", "model": "mistral-moderation-latest", "results": results}
    gateway, _ = routed(mistral=[raw(200, json.dumps(answer).encode(), JSON)])

    with gateway.openai() as client:
        moderated = client.moderations.create(model="mistral-moderation-latest", input="maria@example.org")

    assert moderated.results[0].flagged


def test_rerank__by_cohere__bills_its_searches(routed: Routed) -> None:
    answer = {**RANKED, "meta": {"billed_units": {"search_units": 1}}}
    gateway, scripts = routed(cohere=[raw(200, json.dumps(answer).encode(), JSON)])

    got = ask(
        gateway,
        "rerank",
        {"model": "rerank-v3.5", "query": "q", "documents": ["a", {"text": "b"}], "return_documents": True},
    )

    (sent,) = scripts["cohere"].received
    assert sent.path.endswith("/v2/rerank")
    assert json.loads(sent.body) == {"model": "rerank-v3.5", "query": "q", "documents": ["a", "b"]}
    assert got.json()["results"] == RANKED["results"]
    assert "return_documents" in got.headers["x-svc-warning"]
    assert gateway.record(got).operation == "rerank"


def test_rerank__documents_of_several_fields__are_texts_for_cohere(routed: Routed) -> None:
    gateway, scripts = routed(cohere=[raw(200, json.dumps(RANKED).encode(), JSON)])
    document = {"title": "Grüße", "number": 2**70}

    got = ask(gateway, "rerank", {"model": "rerank-v3.5", "query": "q", "documents": [document, {"text": "b"}]})

    assert got.status_code == 200
    first, second = json.loads(scripts["cohere"].received[0].body)["documents"]
    assert (json.loads(first), second) == (document, "b")


def test_rerank__by_a_vendor_of_openais_dialect__passes(routed: Routed) -> None:
    answer = {**RANKED, "usage": {"prompt_tokens": 9, "total_tokens": 9}}
    gateway, scripts = routed(together=[raw(200, json.dumps(answer).encode(), JSON)])

    got = ask(gateway, "rerank", {"model": "together/Salesforce/Llama-Rank-V1", "query": "q", "documents": ["a", "b"]})

    assert got.status_code == 200
    assert json.loads(scripts["together"].received[0].body)["model"] == "Salesforce/Llama-Rank-V1"
    assert gateway.record(got).prompt_tokens == 9


def test_images__cost_their_tokens_and_stay_out_of_the_record(routed: Routed) -> None:
    gateway, _ = routed(openai=[raw(200, json.dumps(IMAGES).encode(), JSON)])

    with gateway.openai() as client:
        answer = client.images.generate(model=PRICED, prompt="a cat")
    got = ask(gateway, "images/generations", {"model": PRICED, "prompt": "a cat"})

    assert answer.data is not None
    assert answer.data[0].b64_json == "aW1hZ2U="
    record = gateway.record(got)
    assert (record.prompt_tokens, record.completion_tokens) == (10, 100)
    assert Decimal(record.cost_usd) == (Decimal(10) * 2 + Decimal(100) * 8) / 1_000_000
    (entry,) = gateway.service.entries(got.headers["x-request-id"])
    assert json.loads(entry.response)["images"] == 1
    assert b"aW1hZ2U=" not in entry.response


def test_speech__is_audio_whose_cost_is_unknown(routed: Routed) -> None:
    gateway, scripts = routed(openai=[raw(200, AUDIO, {"content-type": "audio/mpeg"})])

    with gateway.openai() as client:
        answer = client.audio.speech.create(model=PRICED, voice="alloy", input="Hello")

    assert answer.content == AUDIO
    assert answer.response.headers["content-type"] == "audio/mpeg"
    assert "cost unknown" in answer.response.headers["x-svc-warning"]
    assert scripts["openai"].received[0].path.endswith("/audio/speech")
    record = gateway.record(answer.response.headers["x-request-id"])
    assert (record.operation, record.cost_known, record.cost_usd) == ("speech", False, "")
    (entry,) = gateway.service.entries(record.request_id)
    assert json.loads(entry.response) == {"bytes": len(AUDIO)}


def test_speech__in_another_format__has_its_content_type(routed: Routed) -> None:
    gateway, _ = routed(openai=[raw(200, b"RIFF", {"content-type": "audio/wav"})])

    got = ask(gateway, "audio/speech", {"model": "tts-1", "voice": "alloy", "input": "Hi", "response_format": "wav"})

    assert (got.status_code, got.headers["content-type"]) == (200, "audio/wav")


def test_error_of_speech__is_json_in_openais_form(routed: Routed) -> None:
    gateway, _ = routed(openai=[status(400, "no such voice")])

    with gateway.openai() as client, pytest.raises(openai.BadRequestError, match="no such voice"):
        client.audio.speech.create(model="tts-1", voice="nobody", input="Hello")


def test_models__of_a_request__are_its_fallbacks(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_enabled": True, "retry_enabled": False},
        openai=[status(503)],
        cohere=[raw(200, json.dumps(RANKED).encode(), JSON)],
        together=[status(503)],
    )

    body = {
        "model": "together/Salesforce/Llama-Rank-V1",
        "models": ["rerank-v3.5"],
        "query": "q",
        "documents": ["a", "b"],
    }
    got = ask(gateway, "rerank", body)

    assert (got.status_code, got.headers["x-svc-provider"]) == (200, "cohere")
    assert not scripts["openai"].received


def test_guardrail__reads_the_query_and_the_documents(routed: Routed) -> None:
    settings = {"guardrails": {"trust_mode": "enforce", "pii_block_on_detect": True}}
    gateway, scripts = routed(settings, cohere=[raw(200, b"{}")])

    got = ask(
        gateway, "rerank", {"model": "rerank-v3.5", "query": "q", "documents": ["a", "mail maria.keller@gmx.net"]}
    )

    assert (got.status_code, got.json()["error"]["code"]) == (400, "pii_detected")
    assert not scripts["cohere"].received


@tabled
def test_field_at_fault__is_named(gateway: Gateway, path: str, body: dict[str, Any], field: str) -> None:
    got = ask(gateway, path, body)

    assert got.status_code == 400
    assert got.json()["error"]["message"].startswith(field)
    assert not gateway.upstream.received


@pytest.mark.parametrize("path", ["moderations", "rerank", "images/generations"])
def test_answer_that_is_none__is_the_providers_fault(routed: Routed, path: str) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai_compatible=[raw(200, b"{}", JSON)])
    fields = {"input": "a", "query": "q", "documents": ["a"], "prompt": "p"}

    got = ask(gateway, path, {"model": "openai_compatible/m", **fields})

    assert (got.status_code, got.json()["error"]["code"]) == (500, "provider_error")


@tabled
def test_limit_of_requests__counts_every_operation_and_says_what_is_left(
    routed: Routed, path: str, body: dict[str, Any], answer: dict[str, Any]
) -> None:
    settings = {"rate_limit_enabled": True, "rate_limit_rpm": 1}
    gateway, scripts = routed(settings, openai=[raw(200, json.dumps(answer).encode(), JSON)])

    first, second = ask(gateway, path, body), ask(gateway, path, body)

    assert (first.status_code, first.headers["x-ratelimit-remaining-requests"]) == (200, "0")
    assert (second.status_code, second.json()["error"]["code"]) == (429, "requests_per_minute")
    assert len(scripts["openai"].received) == 1
