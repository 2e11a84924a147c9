"""Embeddings of providers that speak OpenAI's dialect, asked for with OpenAI's own SDK."""

from __future__ import annotations

import json

import openai
import pytest

from tests.fakes.embeddings import vector
from tests.fakes.scripted import raw, status
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.surfaces.embeddings.vectors import embedding, packed

MODEL = "text-embedding-3-small"
PATH = "/api/gateway/v1/embeddings"
# The blanks show whether a request was written anew.
REQUEST = b'{ "model": "text-embedding-3-small",\n "input": ["one", "three"], "dimensions": 3, "user": "u" }'


def ask(gateway: Gateway, body: object, **headers: str) -> tuple[int, str, bytes]:
    """Returns status, request id and body of the answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    own = {**gateway.headers, "content-type": "application/json", **headers}
    answer = gateway.client.post(PATH, content=content, headers=own)
    return answer.status_code, answer.headers["x-request-id"], answer.content


def test_request_and_answer__pass_byte_by_byte(routed: Routed) -> None:
    rows = [{"object": "embedding", "index": n, "embedding": vector(text)} for n, text in enumerate(("one", "three"))]
    usage = {"prompt_tokens": 6, "total_tokens": 6}
    given = json.dumps({"object": "list", "data": rows, "model": MODEL, "usage": usage, "vendor": 1}, indent=2).encode()
    gateway, scripts = routed(openai=[raw(200, given)])

    code, request_id, body = ask(gateway, REQUEST)

    (sent,) = scripts["openai"].received
    assert (code, body, sent.body) == (200, given, REQUEST)
    assert sent.path.endswith("/embeddings")
    record = gateway.record(request_id)
    assert (record.operation, record.is_native, record.provider, record.model) == ("embeddings", True, "openai", MODEL)
    assert (record.prompt_tokens, record.completion_tokens, record.tokens_estimated) == (6, 0, False)
    assert (record.user_id, record.status_code, record.is_stream) == ("u", 200, False)


def test_record__keeps_the_texts_and_no_vectors(routed: Routed) -> None:
    gateway, _ = routed(openai=[embedding()])

    _, request_id, _ = ask(gateway, REQUEST)

    (entry,) = gateway.service.entries(request_id)
    assert [message["content"] for message in json.loads(entry.request)["messages"]] == ["one", "three"]
    assert json.loads(entry.response) == {
        "object": "list",
        "model": MODEL,
        "embeddings": 2,
        "usage": {"prompt_tokens": 6, "total_tokens": 6},
    }


@pytest.mark.parametrize("floats_only", [False, True])
def test_sdk__which_asks_for_base64__reads_the_vectors(routed: Routed, floats_only: bool) -> None:
    gateway, scripts = routed(openai=[embedding(floats_only=floats_only)])

    with gateway.openai() as client:
        answer = client.embeddings.create(model=MODEL, input=["one", "three"])
        floats = client.embeddings.create(model=MODEL, input="one", encoding_format="float")

    assert json.loads(scripts["openai"].received[0].body)["encoding_format"] == "base64"
    assert [row.embedding for row in answer.data] == [vector("one"), vector("three")]
    assert floats.data[0].embedding == vector("one")
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (6, 6)


def test_vendor_of_floats__gives_base64_to_a_client_that_asks_for_it(routed: Routed) -> None:
    gateway, scripts = routed(dashscope=[embedding(floats_only=True)])

    body = {"model": "text-embedding-v4", "input": "one", "encoding_format": "base64"}
    code, _, answer = ask(gateway, body)

    assert code == 200
    assert json.loads(answer)["data"] == [{"object": "embedding", "index": 0, "embedding": packed(vector("one"))}]
    assert "encoding_format" not in json.loads(scripts["dashscope"].received[0].body)


def test_batch__larger_than_the_vendor_takes__is_split_and_joined_in_order(routed: Routed) -> None:
    gateway, scripts = routed(dashscope=[embedding()])
    texts = ["x" * length for length in range(1, 26)]

    with gateway.openai() as client:
        answer = client.embeddings.create(model="text-embedding-v4", input=texts)

    sizes = sorted(len(json.loads(sent.body)["input"]) for sent in scripts["dashscope"].received)
    assert sizes == [5, 10, 10]
    assert [row.embedding for row in answer.data] == [vector(text) for text in texts]
    assert [row.index for row in answer.data] == list(range(25))
    assert answer.usage.prompt_tokens == 75


@pytest.mark.parametrize("given", [[1, 2, 3], [[1, 2, 3], [4]]])
def test_tokens__reach_a_vendor_that_takes_them(routed: Routed, given: list[int]) -> None:
    gateway, scripts = routed(openai=[embedding()])

    code, _, _ = ask(gateway, {"model": MODEL, "input": given})

    assert code == 200
    assert json.loads(scripts["openai"].received[0].body)["input"] == given


def test_answer_without_counts__is_estimated_and_says_so(routed: Routed) -> None:
    gateway, _ = routed(openai=[embedding(counted=False)])

    _, request_id, body = ask(gateway, {"model": MODEL, "input": "abcdefghi"})

    assert json.loads(body)["usage"] == {"prompt_tokens": 3, "total_tokens": 3, "estimated": True}
    record = gateway.record(request_id)
    assert (record.prompt_tokens, record.tokens_estimated) == (3, True)


def test_azure__is_asked_at_the_deployments_address(routed: Routed) -> None:
    gateway, scripts = routed(azure_openai=[embedding()])

    code, _, _ = ask(gateway, {"model": MODEL, "input": "one"})

    (sent,) = scripts["azure_openai"].received
    assert code == 200
    assert sent.path.split("?")[0].endswith(f"/openai/deployments/{MODEL}/embeddings")
    assert "api-version=" in sent.path
    assert sent.headers["api-key"]


def test_provider_that_fails__is_followed_by_another_of_the_same_model(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_enabled": True, "retry_enabled": False, "fallback_order": ["groq"]},
        openai=[status(503)],
        azure_openai=[embedding()],
        groq=[embedding()],
    )

    code, request_id, _ = ask(gateway, {"model": MODEL, "input": "one"})

    assert code == 200
    record = gateway.record(request_id)
    assert (record.provider, record.model, record.fallback_used) == ("azure_openai", MODEL, True)
    assert [attempt.provider for attempt in record.attempts] == ["openai", "azure_openai"]
    assert not scripts["groq"].received


def test_providers_that_all_fail__are_followed_by_no_other_model(routed: Routed) -> None:
    gateway, scripts = routed(
        {"fallback_enabled": True, "retry_enabled": False, "fallback_order": ["mistral"]},
        openai=[status(503)],
        mistral=[embedding()],
    )

    code, _, body = ask(gateway, {"model": MODEL, "input": "one"})

    assert (code, json.loads(body)["error"]["code"]) == (503, "provider_unavailable")
    assert not scripts["mistral"].received


def test_model_whose_providers_have_no_embeddings__is_not_found(routed: Routed) -> None:
    gateway, scripts = routed(anthropic=[raw(200, b"{}")])

    with gateway.openai() as client, pytest.raises(openai.NotFoundError, match="no embeddings") as raised:
        client.embeddings.create(model="claude-sonnet-5", input="one")

    assert raised.value.code == "model_not_found"
    assert not scripts["anthropic"].received


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"input": None}, "invalid_value", "input"),
        ({"input": []}, "invalid_value", "input"),
        ({"input": ["a", ""]}, "invalid_value", "input[1]"),
        ({"input": ["a", 1]}, "invalid_value", "input"),
        ({"input": [[2**70]]}, "invalid_value", "input"),
        ({"input": ["a"] * 2049}, "invalid_value", "input"),
        ({"input": "a" * (1 << 20) + "a"}, "message_too_large", "input"),
        ({"dimensions": 0}, "invalid_value", "dimensions"),
        ({"encoding_format": "hex"}, "invalid_value", "encoding_format"),
        ({"prompt_config": "support"}, "unsupported_parameter", "prompt_config"),
        ({"models": ["text-embedding-3-large"]}, "unsupported_parameter", "models"),
        ({"model": "auto"}, "unsupported_parameter", "model"),
    ],
)
def test_field_at_fault__is_named(gateway: Gateway, change: dict[str, object], code: str, field: str) -> None:
    status_code, _, body = ask(gateway, {"model": MODEL, "input": "one", **change})

    error = json.loads(body)["error"]
    assert (status_code, error["code"]) == (400, code)
    assert error["message"].startswith(field)
    assert not gateway.upstream.received


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"data": []}', b'{"object": "list", "data": [{"index": 0}]}'])
def test_answer_that_is_none__is_the_providers_fault(routed: Routed, answer: bytes) -> None:
    gateway, _ = routed({"retry_enabled": False}, openai=[raw(200, answer)])

    code, _, body = ask(gateway, {"model": MODEL, "input": "one"})

    assert (code, json.loads(body)["error"]["code"]) == (500, "provider_error")


def test_refusal_of_the_vendor__is_passed_on(routed: Routed) -> None:
    gateway, _ = routed(openai=[status(400, "This model does not support dimensions")])

    code, _, body = ask(gateway, {"model": MODEL, "input": "one", "dimensions": 3})

    error = json.loads(body)["error"]
    assert (code, error["code"]) == (400, "provider_rejected")
    assert "does not support dimensions" in error["message"]


def test_part_that_fails__fails_the_request_and_bills_the_parts_that_were_answered(routed: Routed) -> None:
    gateway, scripts = routed({"retry_enabled": False}, dashscope=[embedding(), status(503)])

    code, request_id, _ = ask(gateway, {"model": "text-embedding-v4", "input": ["a"] * 15})

    assert code == 503
    assert len(scripts["dashscope"].received) == 2
    assert gateway.record(request_id).attempts[0].status == 503
