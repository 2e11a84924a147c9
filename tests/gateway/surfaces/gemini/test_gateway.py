"""The Gemini API through the gateway: streams in both forms, failures, keys, and embeddings of other vendors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.dialects.story import Story
from tests.fakes.scripted import status
from tests.gateway.conftest import Routed
from tests.gateway.surfaces.embeddings.vectors import embedding
from tests.gateway.surfaces.gemini.clients import ASK
from tests.gateway.surfaces.ways import answering

BASE = "/api/gateway/v1beta/models"
GROQ = f"{BASE}/groq/llama-3.3-70b-versatile"


def test_stream__without_a_form__is_one_json_array(routed: Routed) -> None:
    story = answering("groq", Story(text="Hello there"))
    gateway, _ = routed(groq=[story, story])

    array = gateway.client.post(f"{GROQ}:streamGenerateContent", json=ASK, headers=gateway.headers)
    events = gateway.client.post(f"{GROQ}:streamGenerateContent?alt=sse", json=ASK, headers=gateway.headers)

    assert array.headers["content-type"] == "application/json"
    texts = [part["text"] for one in array.json() for part in one["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == "Hello there"
    sent = [json.loads(line.removeprefix("data: ")) for line in events.text.splitlines() if line]
    assert [one["candidates"] for one in sent] == [one["candidates"] for one in array.json()]


def test_key__in_any_of_its_headers__is_taken_and_in_the_address_refused(routed: Routed) -> None:
    gateway, _ = routed(groq=[answering("groq", Story(text="Hi"))])
    address = f"{GROQ}:generateContent"

    taken = gateway.client.post(address, json=ASK, headers={"x-goog-api-key": gateway.key})
    refused = gateway.client.post(f"{address}?key={gateway.key}", json=ASK, headers=gateway.headers)
    absent = gateway.client.post(address, json=ASK, headers={"api-key": gateway.key})

    assert taken.status_code == 200, taken.text
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert gateway.key not in refused.text
    assert (absent.status_code, absent.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    assert gateway.record(taken).operation == "generate_content"


@pytest.mark.parametrize(
    ("path", "method", "code", "name"),
    [
        (f"{BASE}/gemini-2.5-pro:explain", "POST", 405, "UNIMPLEMENTED"),
        (f"{BASE}/gemini-2.5-pro:generateContent", "GET", 405, "UNIMPLEMENTED"),
        ("/api/gateway/v1beta/caches", "POST", 404, "NOT_FOUND"),
        (f"{BASE}/nothing-like-it", "GET", 404, "NOT_FOUND"),
    ],
)
def test_path__that_is_no_method__is_refused_in_googles_form(
    routed: Routed, path: str, method: str, code: int, name: str
) -> None:
    gateway, _ = routed(groq=[])

    answer = gateway.client.request(method, path, headers=gateway.headers)

    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["status"]) == (code, code, name)


def test_embeddings__of_another_vendor__have_googles_form(routed: Routed) -> None:
    gateway, scripts = routed(openai=[embedding(), embedding()])
    content = {"parts": [{"text": "Hello"}]}
    settings = {"taskType": "RETRIEVAL_QUERY", "outputDimensionality": 8}
    address = f"{BASE}/openai/text-embedding-3-small"

    one = gateway.client.post(f"{address}:embedContent", json={"content": content, **settings}, headers=gateway.headers)
    many = gateway.client.post(
        f"{address}:batchEmbedContents", json={"requests": [{"content": content}] * 2}, headers=gateway.headers
    )

    assert one.status_code == many.status_code == 200, one.text + many.text
    sent: dict[str, Any] = json.loads(scripts["openai"].received[0].body)
    assert sent == {"model": "text-embedding-3-small", "input": ["Hello"], "dimensions": 8}
    assert one.json()["embedding"]["values"]
    assert len(many.json()["embeddings"]) == 2
    assert gateway.record(one).operation == "embeddings"


def test_content__of_a_provider_that_fails__is_googles_error(routed: Routed) -> None:
    gateway, _ = routed(groq=[status(503)])

    answer = gateway.client.post(f"{GROQ}:generateContent", json=ASK, headers=gateway.headers)

    assert (answer.status_code, answer.json()["error"]["status"]) == (503, "UNAVAILABLE")
    assert answer.json()["error"]["details"][0]["reason"] == "PROVIDER_UNAVAILABLE"
